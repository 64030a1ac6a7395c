"""What the leader of a pool says of pods whose constraints reach across pools."""

from __future__ import annotations

import asyncio
import threading

from scheduler.cycle.pool_rounds import REFUSED, PoolRounds, QueuedPods
from scheduler.cycle.reports import Reports
from scheduler.metrics import Metrics
from scheduler.pools.options import PoolOptions
from scheduler.pools.own_pool import OwnPool
from tests.builders import pod
from tests.fakes.clock import FakeClock
from tests.fakes.ports import fake_ports
from tests.scheduler.pools.pools import A
from tests.scheduler.queueing.queues import make_queue


class Said:
    """Stands where Events and statuses are written."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.conditions: list[tuple[str, str]] = []

    def event(self, pod, kind, reason, action, note) -> None:
        self.events.append((pod.metadata.name, note))

    def unscheduled(self, pod, reason, message, nominated) -> None:
        self.conditions.append((pod.metadata.name, reason))

    async def quiet(self, uid: str) -> None:
        """Nothing is written."""


def test_a_pod_that_the_gate_keeps_out_is_reported_once() -> None:
    async def main() -> None:
        pool = OwnPool.of(PoolOptions("a", A.node_selector), lambda: 0.0, threading.Lock)
        queue = make_queue(FakeClock(), pre_enqueue=pool.gated(lambda _: None))
        said, made = Said(), pod("web").spread("topology.kubernetes.io/zone", app="web")
        reports = Reports(said, said, Metrics())
        pods = QueuedPods(queue, lambda *_: made.build(), lambda _: None, reports)
        rounds = PoolRounds(fake_ports(), pool, pods, {}, 60, reports, queue)
        queue.add(made.info())
        for _ in range(2):
            await rounds._round()
        ((name, note),) = said.events
        assert name == "web"
        assert "a topology spread constraint with the topology key" in note
        assert said.conditions == [("web", REFUSED)]
        queue.delete(made.info().uid)
        await rounds._round()
        queue.add(made.info())
        await rounds._round()
        assert len(said.events) == 2

    asyncio.run(main())
