"""Against a real Prometheus that scrapes a real page."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from plugins.framework.go_duration import GoDuration
from scheduler.node_metrics import (
    MetricQuery,
    MetricSource,
    NodeMetricsBoard,
    NodeMetricsConfig,
    NodeMetricsPoller,
)
from tests.scheduler.node_metrics.debian_prometheus import DebianPrometheus, Exporter
from tests.scheduler.node_metrics.scripted_prometheus import poll_once

PAGE = """# TYPE cpu_used gauge
cpu_used{node="a",core="0"} 0.25
cpu_used{node="a",core="1"} 0.75
cpu_used{node="b",core="0"} 0.125
"""
MEAN = MetricQuery("used", "avg by (node) (cpu_used)")
RAW = MetricQuery("raw", "cpu_used")
BROKEN = MetricQuery("broken", "avg by (node (")


@contextlib.contextmanager
def running(folder):
    with contextlib.ExitStack() as stack:
        exporter = Exporter(PAGE)
        stopping = stack.enter_context(contextlib.ExitStack())
        stopping.callback(exporter.stop)
        prometheus = DebianPrometheus(folder, exporter.address)
        stack.callback(prometheus.stop)
        yield prometheus, stopping.close


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    with running(tmp_path_factory.mktemp("prometheus")) as (made, _):
        yield made


def poll_until(prometheus, condition, *metrics):
    """Poll until a condition on the board and the statistics holds."""

    async def run():
        board = NodeMetricsBoard()
        source = MetricSource(prometheus.url, metrics, interval=GoDuration(50_000_000))
        poller = NodeMetricsPoller(NodeMetricsConfig((source,)), board)
        try:
            async with asyncio.timeout(60):
                while not condition(board, poller.statistics):
                    await poll_once(poller)
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{poller.statistics}\n{prometheus.log_tail()}") from None
        finally:
            await poller.stop()

    asyncio.run(run())


def has(name, expected):
    def condition(board, statistics):
        reading = board.latest(name)
        return reading is not None and dict(reading.by_node) == expected

    return condition


def test_what_it_scraped_comes_to_the_board(prometheus):
    poll_until(prometheus, has("used", {"a": 0.5, "b": 0.125}), MEAN)


def test_of_two_series_for_one_node_none_counts(prometheus):
    poll_until(prometheus, has("raw", {"b": 0.125}), RAW)


def test_its_own_words_about_a_bad_query_are_told(prometheus):
    poll_until(prometheus, lambda board, told: "parse error" in told["broken"].error, BROKEN)


def test_nodes_that_are_not_measured_any_more_become_unknown(tmp_path):
    with running(tmp_path) as (prometheus, stop_exporter):
        poll_until(prometheus, has("used", {"a": 0.5, "b": 0.125}), MEAN)
        stop_exporter()
        poll_until(prometheus, has("used", {}), MEAN)
