"""Query each source for its metrics periodically, and publish the responses."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Final

import structlog

from cache.value import MutableValue
from plugins.framework.node_metrics import NoMetrics
from scheduler.metrics.instruments import Pulled
from scheduler.node_metrics.latest_values import NodeMetricsBoard
from scheduler.node_metrics.query_client import QueryClient
from scheduler.node_metrics.query_response import MetricAnswerError, read_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.framework.node_metrics import NodeMetrics
    from scheduler.metrics import Metrics
    from scheduler.node_metrics.configuration import (
        MetricQuery,
        MetricSource,
        NodeMetricsConfig,
    )
    from scheduler.node_metrics.query_response import Readings

log = structlog.get_logger(__name__)

_MAX_NAMED: Final = 5
"""Nodes that one log line names."""

_JITTER: Final = 0.1
"""Part of an interval by which rounds differ, so that replicas do not ask all at once."""


class MetricStatistics(MutableValue):
    """How the questions for one metric went, since the start."""

    answered: int = 0
    failed: int = 0
    error: str = ""
    """Why the last question failed; empty when it did not."""


class NodeMetricsPoller:
    """Keeps a board up to date.

    Parameters
    ----------
    config
        What to ask whom.
    board
        Where answers go. All names of metrics are expected there from the start.
    clock
        Monotonic seconds; the board's.
    rng
        For the jitter between rounds.

    Raises
    ------
    ClientConfigError
        When a source's TLS configuration or the environment's proxy cannot be used.

    Notes
    -----
    *Concurrency*: loop-confined, but for the construction and :attr:`statistics`.

    A source that fails costs nobody else anything: its last answers count until they are too
    old, and it is asked again in the next round. Standbys poll too, so that one that becomes
    leader knows what it needs.
    """

    def __init__(
        self,
        config: NodeMetricsConfig,
        board: NodeMetricsBoard,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._board = board
        self._clock = clock
        self._rng = random.Random() if rng is None else rng
        self._sources = [
            (source, QueryClient(source, f"sources[{index}]"))
            for index, source in enumerate(config.sources)
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._told: dict[str, str] = {}
        self.statistics: dict[str, MetricStatistics] = {}
        """By metric."""
        for source in config.sources:
            for metric in source.metrics:
                board.expect(metric.name)
                self.statistics[metric.name] = MetricStatistics()

    @property
    def measured(self) -> NodeMetrics:
        """What plugins see of it."""
        return self._board if self._sources else NoMetrics()

    def start(self) -> None:
        """Begin with a first round at once."""
        self._tasks = [
            asyncio.create_task(self._poll(source, client)) for source, client in self._sources
        ]

    async def stop(self) -> None:
        """Ask no more; questions under way are given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for _, client in self._sources:
            await client.close()

    async def _poll(self, source: MetricSource, client: QueryClient) -> None:
        while True:
            started = self._clock()
            await self._round(source, client)
            spread = 1.0 + _JITTER * (self._rng.random() - 0.5)
            left_s = started + source.interval.seconds * spread - self._clock()
            await asyncio.sleep(max(left_s, 0.0))

    async def _round(self, source: MetricSource, client: QueryClient) -> None:
        # One after another: a server that is in trouble is not helped by many questions at once.
        for metric in source.metrics:
            await self._ask(source, client, metric)

    async def _ask(self, source: MetricSource, client: QueryClient, metric: MetricQuery) -> None:
        asked_s = self._clock()
        statistics = self.statistics[metric.name]
        try:
            readings = read_answer(await client.query(metric.query), metric.node_label)
        except MetricAnswerError as error:
            statistics.failed += 1
            statistics.error = str(error)
            self._tell(metric.name, str(error))
            return
        except Exception as error:
            # Whatever it is, the next round shall come, and somebody shall read of it.
            statistics.failed += 1
            statistics.error = repr(error)
            log.exception("a node metric could not be read", metric=metric.name)
            return
        self._board.publish(
            metric.name,
            readings.values,
            taken_s=asked_s,
            stale_after_s=source.stale_after.seconds,
        )
        statistics.answered += 1
        statistics.error = ""
        self._tell(metric.name, _complaint(readings))

    def _tell(self, metric: str, complaint: str) -> None:
        """Log a complaint when it differs from the last one, and once that it is over."""
        before = self._told.get(metric, "")
        if complaint == before:
            return
        self._told[metric] = complaint
        if complaint:
            log.warning("node metric", metric=metric, problem=complaint)
        else:
            log.info("node metric recovered", metric=metric)


def _complaint(readings: Readings) -> str:
    """Return what is wrong with an answer that can be used."""
    parts = []
    if not readings.values:
        parts.append("the response has no value for any node")
    if readings.repeated:
        parts.append(
            f"more than one series for {_some(readings.repeated)}: aggregate them in the query"
        )
    if readings.not_finite:
        parts.append(f"no finite number for {_some(readings.not_finite)}")
    if readings.unnamed:
        parts.append(f"{readings.unnamed} series name no node")
    return "; ".join(parts)


def _some(names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:_MAX_NAMED])
    more = len(names) - _MAX_NAMED
    return f"{listed} and {more} more" if more > 0 else listed


# --- as one part of a running berth -----------------------------------------------------------


def measure_nodes(config: NodeMetricsConfig, metrics: Metrics) -> NodeMetricsPoller:
    """Return what polls the sources, once it is started.

    `metrics` tells how old is what it brings; where there is no source, nothing.

    Raises
    ------
    ClientConfigError
        When a source's TLS configuration or the environment's proxy cannot be used.
    """
    board = NodeMetricsBoard()
    poller = NodeMetricsPoller(config, board)
    if config.sources:
        for family in _families(board, poller):
            metrics.pull(family)
    return poller


def _families(board: NodeMetricsBoard, poller: NodeMetricsPoller) -> tuple[Pulled, ...]:
    label = ("metric",)
    return (
        Pulled(
            "gauge",
            "berth_node_metric_age_seconds",
            "Time since the question was sent whose answer plugins see; nothing before the first.",
            label,
            lambda: {(name,): age_s for name, age_s in board.ages_s().items()},
        ),
        Pulled(
            "gauge",
            "berth_node_metric_nodes",
            "Nodes of which a metric is known and not too old.",
            label,
            lambda: {(name,): float(count) for name, count in board.known_nodes().items()},
        ),
        Pulled(
            "counter",
            "berth_node_metric_failures_total",
            "Questions for a metric that got no answer which could be used.",
            label,
            lambda: {(name,): float(each.failed) for name, each in poller.statistics.items()},
        ),
    )
