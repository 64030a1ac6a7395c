"""What tests of preemptions share: a queue, an executor, and a preemptor with its victims."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cache.scheduler_cache import SchedulerCache
from plugins.framework.cluster_events import ASSIGNED_POD_DELETE
from plugins.framework.status import SUCCESS, unresolvable
from plugins.framework.victims import Victims
from scheduler.api_writes.event_recorder import EventRecorder
from scheduler.api_writes.eviction import Evictor
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from scheduler.client.errors import ApiError
from scheduler.cycle.preemption_executor import (
    PreemptionExecutor,
    PreemptionReports,
)
from scheduler.cycle.reports import Reports
from scheduler.metrics import Metrics
from scheduler.runtime.known_pods import KnownPods
from scheduler.runtime.waiting_pods import WaitingPods
from tests.builders import pod
from tests.fakes.clock import FakeClock
from tests.fakes.eviction_api import FakeEvictionApi
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.fakes.write_api import FakeWriteApi
from tests.scheduler.queueing.queues import make_queue

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from plugins.framework.status import Status
    from scheduler.queueing import QueuedPod
    from scheduler.queueing.queue_states import QueueState
    from tests.builders import PodBuilder

PREEMPTOR = pod("preemptor").uid("u-p").scheduler("berth").priority(10)
FORBIDDEN = ApiError(403, "Forbidden", "no")


def victims(count: int) -> list[PodInfo]:
    return [pod(f"v{i}").uid(f"u-{i}").on("n1").info() for i in range(count)]


class GangLog:
    """What is reported of gangs, with the deletes so far."""

    def __init__(self, api: FakeEvictionApi) -> None:
        self._api = api
        self.lines: list[tuple[str, str, int]] = []

    def evicting(self, key: GroupKey, message: str) -> None:
        self.lines.append(("evicting", str(key), len(self._api.deleted)))

    async def told(self, key: GroupKey) -> None:
        await asyncio.sleep(0)
        self.lines.append(("told", str(key), len(self._api.deleted)))

    def spared(self, key: GroupKey, message: str) -> None:
        self.lines.append(("spared", str(key), len(self._api.deleted)))


class Scene:
    """A queue with one pod that preempts, and an executor for it.

    ``live`` is what the watch has shown, by name.
    """

    def __init__(self, api: FakeEvictionApi, *present: PodInfo) -> None:
        loop = asyncio.get_running_loop()
        self.api, self.writes = api, FakeWriteApi()
        self.clock = FakeClock()
        self.live: dict[str, Pod] = {each.name: each.pod for each in present}
        self.live["preemptor"] = PREEMPTOR.build()
        self.metrics = Metrics()
        self.queue = make_queue(self.clock, pre_enqueue=self._pre_enqueue)
        ports = fake_ports(self.writes)
        self.recorder = EventRecorder(ports, instance="test")
        self.writer = PodStatusWriter(ports, lambda uid: False)
        self.held: set[str] = set()
        self.unplaced: set[str] = set()
        self.gangs = GangLog(api)
        evictor = Evictor(
            fake_ports(api, executor=FakeExecutor(no_wait)),
            self._live_pod,
            lambda uid, plugin: uid in self.held,
            lambda uid: uid not in self.unplaced,
        )
        self.pods = KnownPods(SchedulerCache(), self.queue, WaitingPods())
        self.executor = PreemptionExecutor(
            loop,
            self.clock,
            evictor,
            self._live_pod,
            self.pods,
            PreemptionReports(Reports(self.recorder, self.writer, self.metrics), self.gangs),
        )
        self.queued = self._pop(PREEMPTOR)

    def _live_pod(self, namespace: str, name: str) -> Pod | None:
        return self.live.get(name)

    def _pre_enqueue(self, made: Pod) -> Status:
        return unresolvable("wait") if self.executor.is_running(made.metadata.uid) else SUCCESS

    def _pop(self, made: PodBuilder) -> QueuedPod:
        self.queue.add(made.info())
        popped = self.queue.pop(timeout_s=0)
        assert popped is not None
        return popped

    def refuse(self, node_name: str = "n1", queued: QueuedPod | None = None) -> None:
        """End the attempt as the failure handler does."""
        queued = queued or self.queued
        queued.unschedulable_plugins = frozenset({"NodeResourcesFit"})
        self.queue.add_unschedulable(queued)
        self.queue.nominator.add(queued.info, node_name)

    def preempt(self, listed: list[PodInfo]) -> None:
        self.executor.start(self.queued.info, "n1", Victims(tuple(listed)), "DefaultPreemption")

    def watch_shows_gone(self, name: str) -> None:
        """What the watch brings of a pod that is gone: the store first, then the handlers."""
        self.queue.move_all(ASSIGNED_POD_DELETE, self.live.pop(name), None)

    async def play(self, listed: list[PodInfo]) -> Scene:
        self.recorder.start()
        self.writer.start()
        self.preempt(listed)
        self.refuse()
        await self.executor.drain(30)
        await self.writer.drain(30)
        await self.recorder.drain(30)
        await self.writer.stop()
        await self.recorder.stop()
        return self

    @property
    def state(self) -> QueueState:
        return self.queue.state_of("u-p")

    def counter(self, name: str) -> float:
        body, _ = self.metrics.render()
        lines = [line for line in body.decode().splitlines() if line.startswith(name + " ")]
        return float(lines[0].split()[-1]) if lines else 0.0


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


async def evicting_one() -> Scene:
    """Return a scene in which the API server has not answered yet to the deletion of ``v0``."""
    api = FakeEvictionApi()
    api.gate.clear()
    made = Scene(api, *victims(1))
    made.preempt(victims(1))
    made.refuse()
    await eventually(lambda: api.under_way > 0)
    return made


def play(listed: list[PodInfo], api: FakeEvictionApi | None = None, **held: Any) -> Scene:
    async def scene() -> Scene:
        made = Scene(api or FakeEvictionApi(), *listed)
        made.held |= set(held.get("held", ()))
        return await made.play(listed)

    return asyncio.run(scene())
