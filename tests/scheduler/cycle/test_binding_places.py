"""A pod that waits for a plugin holds up no other pod's binding."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from unittest.mock import patch

from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import PreBindPlugin
from plugins.framework.results import PRE_BIND, SKIP_PRE_BIND, PreFlight
from plugins.framework.status import SUCCESS, Status
from plugins.priority_sort import PrioritySort
from scheduler import assembly
from scheduler.assembly import Setting, assemble
from scheduler.config import default_config
from scheduler.cycle.binding_cycle import BindingJob
from scheduler.decision.decision import Decision
from scheduler.metrics import Metrics
from scheduler.options import Options
from scheduler.runtime.framework_runner import FrameworkRunner
from tests.builders import node, pod
from tests.fakes.ports import fake_ports
from tests.fakes.watched import FakeWatched
from tests.fakes.write_api import FakeWriteApi
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from cache.pod_info import PodInfo
    from plugins.framework.handle import Handle


class WatchedHandle(RecordingHandle):
    """Binds as the other, and tells when."""

    def __init__(self) -> None:
        super().__init__()
        self.has_bound = asyncio.Event()

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        status = await super().bind_pod(info, node_name)
        self.has_bound.set()
        return status


class Slow(PreBindPlugin):
    """Lets pods named ``slow`` and ``brief`` wait until it is told to go on."""

    name = "Slow"

    def __init__(self, handle: Handle) -> None:
        super().__init__(None, handle)
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()

    def pre_bind_pre_flight(self, state: CycleState, info: PodInfo, node_name: str) -> PreFlight:
        if info.name == "brief":
            return PreFlight(is_brief=True)
        return PRE_BIND if info.name == "slow" else SKIP_PRE_BIND

    async def pre_bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        self.entered.set()
        await self.go_on.wait()
        return SUCCESS


class Scene:
    """Bindings of which one may be under way."""

    def __init__(self) -> None:
        self.handle, setting = (
            WatchedHandle(),
            Setting(default_config("berth"), Options(), Metrics()),
        )
        with patch.object(assembly, "MAX_BINDING", 1):
            made = assemble(
                fake_ports(FakeWriteApi()), lambda handlers, others: FakeWatched(), setting
            )
        self.pods, self.bindings = made.known.pods, made.acting.bindings
        self.pods.cache.add_node(node("n1").build())
        self.slow = Slow(self.handle)
        self.framework = FrameworkRunner(
            "berth",
            {
                "queueSort": [PrioritySort(None, self.handle)],
                "preBind": [self.slow],
                "bind": [DefaultBinder(None, self.handle)],
            },
            {},
        )
        made.deciding.profiles.swap([self.framework])

    def start(self, name: str) -> None:
        """Hand a pod over to be bound, from the thread that calls."""
        made = pod(name)
        self.pods.queue.add(made.info())
        queued = self.pods.queue.pop(timeout_s=0)
        assert queued is not None
        info = made.info()
        self.pods.cache.assume_pod(info, "n1")
        decision = Decision(1, "berth", info, node_name="n1")
        self.bindings.start(BindingJob(queued, decision, CycleState(), self.framework))


def test_a_pod_that_waits_in_pre_bind_leaves_its_place_to_others() -> None:

    async def play() -> tuple[list[str], int]:
        scene = Scene()
        try:
            async with asyncio.timeout(30):
                scene.start("slow")
                await scene.slow.entered.wait()
                await asyncio.to_thread(scene.start, "quick")
                await scene.handle.has_bound.wait()
                bound = [uid for uid, _ in scene.handle.bound]
                return bound, len(scene.bindings._slots)
        finally:
            scene.slow.go_on.set()
            await scene.bindings.drain(10)

    bound, pressing = asyncio.run(play())
    assert bound == [pod("quick").build().metadata.uid]
    assert pressing <= 1


def test_a_pod_whose_pre_bind_only_writes_keeps_its_place_for_as_long() -> None:

    async def play() -> tuple[int, int]:
        scene = Scene()
        async with asyncio.timeout(30):
            scene.start("brief")
            await scene.slow.entered.wait()
            during = len(scene.bindings._slots)
            scene.slow.go_on.set()
            await scene.bindings.drain(10)
        return during, len(scene.bindings._slots)

    assert asyncio.run(play()) == (1, 0)


def test_places_are_given_back_once() -> None:

    async def play() -> tuple[int, int]:
        scene = Scene()
        scene.slow.go_on.set()
        for name in ("slow", "quick", "slow-too", "last"):
            await asyncio.to_thread(scene.start, name)
            await scene.bindings.drain(10)
        return scene.bindings.in_flight, len(scene.bindings._slots)

    assert asyncio.run(play()) == (0, 0)
