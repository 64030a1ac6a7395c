"""Node metrics as a part of a running berth: who is lent them, and what is told of them."""

from __future__ import annotations

import asyncio
import random

import pytest

from cache.disruption_budgets import DisruptionBudgets
from cache.namespaces import Namespaces
from cache.storage import Storage
from cache.workloads import Workloads
from plugins.framework.node_metrics import NoMetrics
from scheduler import cli
from scheduler.metrics import Metrics
from scheduler.node_metrics import NodeMetricsConfig, measure_nodes
from scheduler.plugin_handle import PluginHandle
from scheduler.storage_writer import StorageWriter
from scheduler.waiting_pods import WaitingPods
from tests.fakes.object_api import FakeObjectApi
from tests.scheduler.node_metrics.scripted_prometheus import Reply, ScriptedPrometheus, of_nodes
from tests.scheduler.parts import NoBinding


@pytest.fixture
def handle():
    return PluginHandle(
        binder=NoBinding(),
        namespaces=Namespaces(),
        workloads=Workloads(),
        disruption_budgets=DisruptionBudgets(),
        storage=Storage(),
        storage_writer=StorageWriter(FakeObjectApi(), random.Random(1)),
        waiting_pods=WaitingPods(),
        live_node=lambda name: None,
    )


def after_a_round(handle, **script):
    """Return the lines that are exposed after one round of questions."""

    async def run():
        server = ScriptedPrometheus(script)
        await server.start()
        metrics = Metrics()
        poller = measure_nodes(NodeMetricsConfig((server.source(*script),)), handle, metrics)
        try:
            await poller.poll_once()
            return metrics.render()[0].decode().splitlines()
        finally:
            await poller.stop()
            await server.stop()

    return asyncio.run(run())


def test_plugins_see_what_is_measured(handle):
    after_a_round(handle, load=lambda: of_nodes(a=0.5))
    assert handle.node_metrics.latest("load").by_node == {"a": 0.5}


def test_of_how_many_nodes_something_is_known_is_exposed(handle):
    lines = after_a_round(handle, load=lambda: of_nodes(a=0.5, b=0.5))
    assert 'berth_node_metric_nodes{metric="load"} 2' in lines


def test_what_failed_is_counted(handle):
    lines = after_a_round(handle, load=lambda: Reply(status=500))
    assert 'berth_node_metric_failures_total{metric="load"} 1' in lines


@pytest.mark.parametrize(
    ("reply", "count"),
    [pytest.param(of_nodes(a=1), 1, id="has come"), pytest.param(Reply(status=500), 0, id="not")],
)
def test_how_old_it_is_is_exposed_once_it_has_come(handle, reply, count):
    lines = after_a_round(handle, load=lambda: reply)
    assert (
        sum(line.startswith('berth_node_metric_age_seconds{metric="load"} ') for line in lines)
        == count
    )


def test_without_a_source_nothing_changes(handle):
    metrics = Metrics()
    measure_nodes(NodeMetricsConfig(), handle, metrics)
    assert isinstance(handle.node_metrics, NoMetrics)
    assert b"berth_node_metric" not in metrics.render()[0]


def test_a_bad_file_is_told_before_anything_starts(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli, "configure_logging", lambda log_format, level: None)
    file = tmp_path / "metrics.yaml"
    file.write_text("kind: NodeMetricsConfiguration\nsources: [{url: here}]\n")
    assert cli.main(["run", "--node-metrics", str(file)]) == 1
    assert "metrics.yaml: sources[0].metrics: is required" in capsys.readouterr().err
