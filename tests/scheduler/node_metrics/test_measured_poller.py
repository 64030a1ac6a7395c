"""Node metrics as a part of a running berth: who is lent them, and what is told of them."""

from __future__ import annotations

import asyncio

import pytest

from plugins.framework.node_metrics import NoMetrics
from scheduler import cli, run_command
from scheduler.metrics import Metrics
from scheduler.node_metrics import NodeMetricsConfig, measure_nodes
from tests.scheduler.node_metrics.scripted_prometheus import (
    Reply,
    ScriptedPrometheus,
    of_nodes,
    poll_once,
)


def lines_after_a_round(**script):
    """Return the lines that are exposed after one round of questions."""
    return after_a_round(**script)[1]


def after_a_round(**script):
    """Return what plugins see after one round of questions, and the lines that are exposed."""

    async def run():
        server = ScriptedPrometheus(script)
        await server.start()
        metrics = Metrics()
        poller = measure_nodes(NodeMetricsConfig((server.source(*script),)), metrics)
        try:
            await poll_once(poller)
            return poller.measured, metrics.render()[0].decode().splitlines()
        finally:
            await poller.stop()
            await server.stop()

    return asyncio.run(run())


def test_plugins_see_what_is_measured():
    measured, _ = after_a_round(load=lambda: of_nodes(a=0.5))
    assert measured.latest("load").by_node == {"a": 0.5}


def test_of_how_many_nodes_something_is_known_is_exposed():
    lines = lines_after_a_round(load=lambda: of_nodes(a=0.5, b=0.5))
    assert 'berth_node_metric_nodes{metric="load"} 2' in lines


def test_what_failed_is_counted():
    lines = lines_after_a_round(load=lambda: Reply(status=500))
    assert 'berth_node_metric_failures_total{metric="load"} 1' in lines


@pytest.mark.parametrize(
    ("reply", "count"),
    [pytest.param(of_nodes(a=1), 1, id="has come"), pytest.param(Reply(status=500), 0, id="not")],
)
def test_how_old_it_is_is_exposed_once_it_has_come(reply, count):
    lines = lines_after_a_round(load=lambda: reply)
    assert (
        sum(line.startswith('berth_node_metric_age_seconds{metric="load"} ') for line in lines)
        == count
    )


def test_without_a_source_nothing_changes():
    metrics = Metrics()
    poller = measure_nodes(NodeMetricsConfig(), metrics)
    assert isinstance(poller.measured, NoMetrics)
    assert b"berth_node_metric" not in metrics.render()[0]


@pytest.mark.usefixtures("interpreter_as_it_is")
def test_a_bad_file_is_told_before_anything_starts(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run_command, "configure_logging", lambda log_format, level: None)
    file = tmp_path / "metrics.yaml"
    file.write_text("kind: NodeMetricsConfiguration\nsources: [{url: here}]\n")
    assert cli.main(["run", "--node-metrics", str(file)]) == 1
    assert "metrics.yaml: sources[0].metrics: is required" in capsys.readouterr().err
