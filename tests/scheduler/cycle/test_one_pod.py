"""The way of one pod through cycle and binding, with everything real but the API server."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cache.known import Known
from cache.objects import AzureDiskVolumeSource, Volume
from cache.snapshot import Snapshot
from cache.storage import Storage
from plugins.framework.interfaces import PermitPlugin, PreBindPlugin, ReservePlugin
from plugins.framework.results import PreFlight
from plugins.framework.status import SUCCESS, Code, Status, unschedulable
from plugins.registry import PLUGINS
from scheduler.api_writes.binder import Binder
from scheduler.api_writes.binding_slots import BindingSlots
from scheduler.api_writes.event_recorder import EventRecorder
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from scheduler.api_writes.volume_writer import StorageWriter
from scheduler.client.errors import ApiError
from scheduler.config import default_config, effective_profiles
from scheduler.cycle.bind_guard import BindGuard
from scheduler.cycle.binding_cycle import MAX_BINDING, BindingCycles
from scheduler.cycle.failure_handler import FailureHandler
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.reports import Reports
from scheduler.cycle.schedule_one import Deciders, Outcomes, SchedulingLoop
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.queueing import QueueState
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.runtime.plugin_handle import PluginActions, PluginServices
from scheduler.runtime.profile_map import Profiles
from tests.builders import node, pod
from tests.fakes.binding_api import FakeBindingApi
from tests.fakes.nobody import Nobody
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.fakes.refusals import refusal
from tests.fakes.watched import FakeWatched
from tests.fakes.write_api import FakeWriteApi
from tests.plugins.conformance import IdlePreemption
from tests.profiles import build_profiles
from tests.scheduler.parts import Parts
from tests.storage_builders import csi_node, storage_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.tracing.traces import Traces

FITS = pod("a").scheduler("berth").request(cpu="1")
TOO_LARGE = pod("a").scheduler("berth").request(cpu="64")


class Stage:
    """One node of 4 CPUs, one pod, and an API server that answers as told."""

    def __init__(self, made: Pod, binds: list[ApiError | None], *plugins: Plugin) -> None:
        self.parts = parts = Parts()
        self.storage = Storage()
        self.end: Callable[[BindingCycles], Awaitable[object]] = lambda cycles: cycles.drain(10)
        self.clock: Callable[[], float] = parts.clock
        self.pod = made
        self.live: Pod | None = made
        parts.handlers.on_nodes([])
        parts.cache.add_node(node("n1").capacity(cpu="4", memory="8Gi").build())
        self.api = FakeBindingApi(binds, [made] * 9)
        self.writes = FakeWriteApi()
        self._plugins = plugins
        self.profiles = Profiles
        self.traces: Traces | None = None
        self.guard = BindGuard(parts.cache, parts.profiles, enabled=False)
        self.assumed: list[tuple[str, str]] = []

    async def play(self) -> Stage:
        """Queue the pod, run its cycle, and wait until its binding has ended."""
        parts = self.parts

        async def no_wait(seconds: float) -> None:
            await asyncio.sleep(0)

        slots = BindingSlots(MAX_BINDING)
        executor = FakeExecutor(no_wait)
        binder = Binder(
            fake_ports(self.api, executor=executor), slots, parts.metrics.binding_abandoned
        )
        writes = StorageWriter(fake_ports(FakeObjectApi(), executor=executor))
        handle = PluginServices(
            replace(Known.nothing(), storage=self.storage),
            FakeWatched((), () if self.live is None else (self.live,)),
            parts.pods,
            PluginActions(binder, writes, IdlePreemption(), Nobody(), Nobody()),
        )
        built = build_profiles(effective_profiles(default_config("berth")), PLUGINS, handle)
        framework = self._with_more(next(iter(built)))
        ports = self.ports = fake_ports(self.writes, self.clock)
        self.recorder = EventRecorder(ports, instance="test")
        writer = PodStatusWriter(ports, parts.cache.is_placed_pod)
        reports = self.reports = Reports(self.recorder, writer, parts.metrics, traces=self.traces)
        failures = FailureHandler(
            parts.queue,
            lambda namespace, name: self.live,
            reports,
            parts.clock,
        )
        self.bindings = BindingCycles(ports, parts.pods, failures, reports, slots, self.guard)
        self.scheduling = SchedulingLoop(
            ports,
            parts.pods,
            Deciders(self.profiles([framework]), SchedulingCycle(Snapshot(), HostSelector(1))),
            Outcomes(
                self.bindings,
                failures,
                lambda pod, node_name: self.assumed.append((pod.metadata.name, node_name)),
            ),
            reports,
        )
        self.recorder.start()
        writer.start()
        parts.queue.add(FITS.info() if self.pod is None else pod_info(self.pod))
        queued = parts.queue.pop(timeout_s=0)
        assert queued is not None
        self.scheduling.schedule_one(queued)
        await self.end(self.bindings)
        await writer.drain(10)
        await self.recorder.drain(10)
        await writer.stop()
        await self.recorder.stop()
        return self

    def _with_more(self, framework: FrameworkRunner) -> FrameworkRunner:
        points: dict[str, list[Plugin]] = {k: list(v) for k, v in framework.points.items()}
        for plugin in self._plugins:
            for point, kind in (
                ("reserve", ReservePlugin),
                ("permit", PermitPlugin),
                ("preBind", PreBindPlugin),
            ):
                if isinstance(plugin, kind):
                    points[point].append(plugin)
        return FrameworkRunner("berth", points, framework.score_weights)

    @property
    def events(self) -> list[str]:
        return [call.body["reason"] for call in self.writes.calls if call.verb == "create"]

    @property
    def conditions(self) -> list[dict[str, Any]]:
        calls = [call for call in self.writes.calls if call.verb == "status"]
        return [condition for call in calls for condition in call.body.get("conditions", ())]


def pod_info(made: Pod):
    from cache.pod_info import PodInfo

    return PodInfo(made)


def play(made: Pod, binds: list[ApiError | None], *plugins: Plugin) -> Stage:
    async def scene() -> Stage:
        return await Stage(made, binds, *plugins).play()

    return asyncio.run(scene())


def test_a_pod_that_fits_is_bound_and_told():
    stage = play(FITS.build(), [None])
    assert stage.api.bound_to == ["n1"]
    assert stage.events == ["Scheduled"]
    assert stage.conditions == []
    assert stage.assumed == [(stage.pod.metadata.name, "n1")]
    assert stage.parts.queue.counts().in_flight == 0
    assert stage.parts.milli_cpu_on("n1") == 1000


def test_a_pod_that_does_not_fit_waits_and_says_why():
    stage = play(TOO_LARGE.build(), [])
    assert stage.api.bound_to == []
    assert stage.assumed == []
    assert stage.events == ["FailedScheduling"]
    (condition,) = stage.conditions
    assert (condition["reason"], condition["message"]) == (
        "Unschedulable",
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: "
        "1 Preemption is not helpful for scheduling.",
    )
    assert stage.parts.queue.counts().unschedulable == 1


def test_a_pod_that_a_filter_cannot_judge_is_an_error_of_ours():
    unserved = Volume("v", azure_disk=AzureDiskVolumeSource(kind="Shared"))
    stage = Stage(FITS.volume(unserved).build(), [])
    stage.storage = storage_of(csi_node("n1").driver("csi.example.com", limit=1).build())
    asyncio.run(stage.play())
    (condition,) = stage.conditions
    assert (condition["reason"], condition["message"]) == (
        "SchedulerError",
        'running "NodeVolumeLimits" filter plugin: converting volume(v) from inline to csi: '
        "azureDisk.kind: no driver serves 'Shared'",
    )
    (waiting,) = stage.parts.queue.pending().backoff
    assert not waiting.unschedulable_plugins
    attempts = 'scheduler_schedule_attempts_total{profile="berth",result="error"}'
    assert stage.parts.counter(attempts) == 1


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError(403, "Forbidden", "no"), id="forbidden"),
        pytest.param(ApiError(422, "Invalid", "no"), id="refused"),
    ],
)
def test_a_binding_that_fails_is_undone_and_is_an_error_of_ours(error):
    stage = play(FITS.build(), [error])
    assert stage.parts.milli_cpu_on("n1") == 0
    assert stage.parts.cache.counts().assumed_pods == 0
    assert [c["reason"] for c in stage.conditions] == ["SchedulerError"]
    counts = stage.parts.queue.counts()
    assert (counts.backoff, counts.in_flight) == (1, 0)


def test_the_room_of_a_failed_binding_wakes_who_waits_for_it():
    stage = Stage(FITS.build(), [ApiError(422, "Invalid", "no")])
    queue = stage.parts.queue
    queue.add(pod("waits").scheduler("berth").request(cpu="4").info())
    waits = queue.pop(timeout_s=0)
    assert waits is not None
    waits.unschedulable_plugins = frozenset({"NodeResourcesFit"})
    queue.add_unschedulable(waits)
    asyncio.run(stage.play())
    assert queue.counts().unschedulable == 0


def test_a_pod_that_is_still_there_after_a_404_is_tried_again():
    stage = play(FITS.build(), [refusal("POST", 404)])
    assert stage.events == ["FailedScheduling"]
    counts = stage.parts.queue.counts()
    assert (counts.backoff, counts.in_flight) == (1, 0)
    assert stage.parts.milli_cpu_on("n1") == 0


def test_a_pod_that_is_gone_goes_nowhere():
    stage = Stage(FITS.build(), [refusal("POST", 404)])
    stage.api = FakeBindingApi([refusal("POST", 404)], [None])
    asyncio.run(stage.play())
    assert stage.events == []
    assert stage.parts.milli_cpu_on("n1") == 0
    counts = stage.parts.queue.counts()
    assert (counts.active, counts.backoff, counts.unschedulable, counts.in_flight) == (0, 0, 0, 0)


def test_a_pod_bound_by_somebody_else_is_counted_as_a_conflict():
    stage = Stage(FITS.build(), [ApiError(409, "Conflict", "already assigned")])
    stage.api = FakeBindingApi(
        [ApiError(409, "Conflict", "already assigned")], [FITS.on("n2").build()]
    )
    asyncio.run(stage.play())
    assert stage.parts.counter("berth_bind_conflicts_total") == 1
    assert stage.parts.milli_cpu_on("n1") == 0
    assert stage.parts.queue.counts().in_flight == 0


def test_a_pod_that_is_being_deleted_is_skipped():
    stage = play(FITS.terminating().build(), [])
    assert stage.api.bound_to == []
    assert stage.events == ["FailedScheduling"]
    assert stage.conditions == []
    assert stage.parts.queue.counts().in_flight == 0


class Keeper(ReservePlugin):
    name = "Keeper"

    def __init__(self, answer: Status = SUCCESS) -> None:
        super().__init__(None, None)  # type: ignore[arg-type]
        self.answer = answer
        self.log: list[str] = []

    def reserve(self, state, info, node_name):
        self.log.append("reserve")
        return self.answer

    def unreserve(self, state, info, node_name):
        self.log.append("unreserve")


class Doorman(PermitPlugin):
    name = "Doorman"

    def __init__(self, status: Status, timeout_s: float = 0.0) -> None:
        super().__init__(None, None)  # type: ignore[arg-type]
        self.answer = (status, timeout_s)

    def permit(self, state, info, node_name):
        return self.answer


class Preparer(PreBindPlugin):
    name = "Preparer"

    def __init__(self, status: Status, flight: Status = SUCCESS) -> None:
        super().__init__(None, None)  # type: ignore[arg-type]
        self.status, self.flight = status, flight

    def pre_bind_pre_flight(self, state, info, node_name):
        return PreFlight(self.flight)

    async def pre_bind(self, state, info, node_name):
        return self.status


NO = unschedulable("not today")


@pytest.mark.parametrize(
    "plugin",
    [
        pytest.param(Keeper(NO), id="Reserve refuses"),
        pytest.param(Doorman(NO), id="Permit refuses"),
        pytest.param(Doorman(Status(Code.WAIT), 0.01), id="Permit waits in vain"),
    ],
)
def test_a_refusal_after_the_choice_is_undone_and_blames_the_plugin(plugin):
    keeper = Keeper()
    stage = play(FITS.build(), [], keeper, plugin)
    assert stage.api.bound_to == []
    assert keeper.log == ["reserve", "unreserve"]
    assert stage.parts.milli_cpu_on("n1") == 0
    assert [c["reason"] for c in stage.conditions] == ["Unschedulable"]
    (waiting,) = stage.parts.queue.pending().unschedulable
    assert set(waiting.unschedulable_plugins) == {plugin.name}


def test_what_fails_after_permit_is_tried_again_whoever_refused():
    keeper = Keeper()
    stage = play(FITS.build(), [], keeper, Preparer(NO))
    assert keeper.log == ["reserve", "unreserve"]
    assert [c["reason"] for c in stage.conditions] == ["Unschedulable"]
    (waiting,) = stage.parts.queue.pending().backoff
    assert not waiting.unschedulable_plugins


class Slow(PreBindPlugin):
    """A PreBind that ends once the other one has begun."""

    def __init__(self, name: str, mine: asyncio.Event, other: asyncio.Event, flight: PreFlight):
        super().__init__(None, None)  # type: ignore[arg-type]
        self.name = name  # type: ignore[misc]
        self.mine, self.other, self.flight = mine, other, flight

    def pre_bind_pre_flight(self, state, info, node_name):
        return self.flight

    async def pre_bind(self, state, info, node_name):
        self.mine.set()
        await self.other.wait()
        return SUCCESS


def test_pre_binds_that_allow_it_run_side_by_side():
    one, other = asyncio.Event(), asyncio.Event()
    parallel = PreFlight(allow_parallel=True)
    stage = play(
        FITS.build(), [None], Slow("A", one, other, parallel), Slow("B", other, one, parallel)
    )
    assert stage.events == ["Scheduled"]


def test_a_pre_bind_that_fails_stops_those_beside_it():
    never = asyncio.Event()
    slow = Slow("A", asyncio.Event(), never, PreFlight(allow_parallel=True))
    stage = play(FITS.build(), [], slow, Hasty(NO))
    assert [c["message"] for c in stage.conditions] == ["not today"]


class Hasty(Preparer):
    name = "Hasty"

    def pre_bind_pre_flight(self, state, info, node_name):
        return PreFlight(allow_parallel=True)


@pytest.mark.parametrize(
    "flight",
    [
        pytest.param(Status(Code.ERROR, ("no",)), id="error"),
        pytest.param(NO, id="a rejection has no meaning there"),
    ],
)
def test_a_pre_flight_that_fails_is_an_error_of_ours(flight):
    stage = play(FITS.build(), [], Preparer(SUCCESS, flight), Doorman(Status(Code.WAIT), 60))
    assert [c["reason"] for c in stage.conditions] == ["SchedulerError"]
    assert len(stage.parts.waiting_pods.list()) == 0


class Brief(Preparer):
    name = "Brief"

    def pre_bind_pre_flight(self, state, info, node_name):
        return PreFlight(self.flight, is_brief=True)


@pytest.mark.parametrize(
    ("plugins", "nominated"),
    [
        pytest.param((), [], id="nothing to wait for"),
        pytest.param((Preparer(SUCCESS, Status(Code.SKIP)),), [], id="nothing to prepare"),
        pytest.param((Preparer(SUCCESS),), ["n1"], id="PreBind has something to do"),
        pytest.param((Brief(SUCCESS),), [], id="PreBind only writes"),
        pytest.param((Brief(SUCCESS), Preparer(SUCCESS)), ["n1"], id="one of two waits"),
        pytest.param((Doorman(Status(Code.WAIT), 0),), ["n1", None], id="Permit waits"),
    ],
)
def test_the_world_is_told_where_a_pod_is_going_that_has_to_wait(plugins, nominated):
    stage = play(FITS.build(), [None], *plugins)
    told = [call.body for call in stage.writes.calls if call.verb == "status"]
    assert [body["nominatedNodeName"] for body in told if "nominatedNodeName" in body] == nominated


def test_a_victim_that_is_not_bound_yet_is_tried_again():
    class Victim(Preparer):
        name = "Victim"

        async def pre_bind(self, state, info, node_name):
            assert stage.bindings.turn_back(info.uid, "DefaultPreemption")
            await asyncio.Event().wait()

    stage = Stage(FITS.build(), [], Victim(SUCCESS))
    asyncio.run(stage.play())
    assert stage.api.bound_to == []
    assert [c["message"] for c in stage.conditions] == ["preempted by DefaultPreemption"]
    assert stage.parts.queue.counts().backoff == 1


class Endless(Preparer):
    name = "Endless"

    def __init__(self) -> None:
        super().__init__(SUCCESS)
        self.begun = 0

    async def pre_bind(self, state, info, node_name):
        self.begun += 1
        await asyncio.Event().wait()


class TestToldToStop:
    """A pod that is on its way when the scheduler is told to stop."""

    @staticmethod
    def stop(*plugins: Plugin, in_s: float = 0.02, hold: bool = False) -> tuple[Stage, Keeper]:
        """Let the pod be on its way, and end the bindings in so many seconds.

        With ``hold`` the API server gives no answer until then.
        """

        async def scene() -> tuple[Stage, Keeper]:
            keeper = Keeper()
            stage = Stage(FITS.build(), [None], keeper, *plugins)
            stage.clock = time.monotonic

            if hold:
                stage.writes.hold()

            async def end(bindings: BindingCycles) -> None:
                await bindings.end(in_s)
                stage.writes.gate.set()
                assert await bindings.drain(30) == 0

            stage.end = end
            return await stage.play(), keeper

        return asyncio.run(scene())

    @pytest.mark.parametrize(
        "plugin",
        [
            pytest.param(Endless, id="its PreBind is at work"),
            pytest.param(lambda: Doorman(Status(Code.WAIT), 600), id="Permit holds it"),
        ],
    )
    def test_it_gives_back_what_it_was_assumed_to_have(self, plugin):
        stage, keeper = self.stop(plugin())
        assert keeper.log == ["reserve", "unreserve"]
        assert stage.parts.milli_cpu_on("n1") == 0
        assert stage.parts.cache.counts().assumed_pods == 0
        assert stage.parts.queue.state_of(FITS.build().metadata.uid) is QueueState.NOWHERE
        assert stage.api.bound_to == []

    def test_the_next_scheduler_finds_it_nominated_and_nothing_said(self):
        stage, _ = self.stop(Endless())
        assert stage.events == []
        (told,) = (call.body for call in stage.writes.calls if call.verb == "status")
        assert told == {"nominatedNodeName": "n1"}

    def test_it_is_bound_if_its_pre_bind_ends_in_time(self):
        stage, keeper = self.stop(Preparer(SUCCESS), in_s=60)
        assert (stage.api.bound_to, keeper.log) == (["n1"], ["reserve"])

    def test_no_pre_bind_begins_once_they_are_turned_back(self):
        endless = Endless()
        _, keeper = self.stop(endless, hold=True)
        assert (endless.begun, keeper.log) == (0, ["reserve", "unreserve"])


def test_a_pending_answer_of_permit_lets_the_plugin_call_the_pod_back():
    stage = play(FITS.build(), [], Doorman(Status(Code.PENDING, ("later",))))
    (waiting,) = stage.parts.queue.pending().unschedulable
    assert set(waiting.pending_plugins) == {"Doorman"}
    assert not waiting.unschedulable_plugins


def test_a_skipped_pre_bind_is_not_run():
    stage = play(FITS.build(), [None], Preparer(NO, flight=Status(Code.SKIP)))
    assert stage.events == ["Scheduled"]


class LateProfiles(Profiles):
    """Serves the pod's schedulerName a moment too late for the cycle that asks."""

    def get(self, scheduler_name: str) -> FrameworkRunner | None:
        return None


class GoneProfiles(LateProfiles):
    """Serves another schedulerName."""

    def is_ours(self, pod: Pod) -> bool:
        return False


@pytest.mark.parametrize(
    ("profiles", "room"),
    [
        pytest.param(LateProfiles, QueueState.ACTIVE, id="comes back meanwhile"),
        pytest.param(GoneProfiles, QueueState.NOWHERE, id="is gone"),
    ],
)
def test_a_pod_whose_profile_went_while_it_was_popped(profiles, room):
    async def scene() -> Stage:
        stage = Stage(FITS.build(), [])
        stage.profiles = profiles
        return await stage.play()

    stage = asyncio.run(scene())
    assert stage.parts.queue.state_of(FITS.build().metadata.uid) is room
