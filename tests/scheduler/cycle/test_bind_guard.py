"""A pod whose node others take between the decision and the binding goes back to the queue."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from plugins.framework.interfaces import PreBindPlugin
from plugins.framework.results import PreFlight
from plugins.framework.status import SUCCESS, Code, Status
from scheduler.api_writes.event_recorder import EventRecorder
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from scheduler.cycle.bind_guard import BindGuard
from scheduler.cycle.failure_handler import TRIES_AT_ONCE, Failure, FailureHandler
from scheduler.cycle.reports import Reports
from scheduler.informers import Delta, DeltaKind
from scheduler.queueing import QueueState
from tests.builders import node, pod
from tests.fakes.ports import fake_ports
from tests.fakes.write_api import FakeWriteApi
from tests.scheduler.cycle.test_one_pod import FITS, Stage
from tests.scheduler.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.pod_info import PodInfo
    from tests.builders import NodeBuilder, PodBuilder

OTHERS = pod("other").scheduler("default-scheduler").on("n1")
TOLERANT = FITS.toleration("node.kubernetes.io/unschedulable", operator="Exists")
N1 = node("n1").capacity(cpu="4", memory="8Gi")


def binds(*pods: PodBuilder) -> Callable[[Parts], object]:
    """Another scheduler binds pods."""
    deltas = [Delta(DeltaKind.ADDED, None, each.build()) for each in pods]
    return lambda parts: parts.handlers.on_pods(deltas)


def becomes(changed: NodeBuilder | None) -> Callable[[Parts], object]:
    """The node changes, or is deleted."""
    made = None if changed is None else changed.build()
    kind = DeltaKind.DELETED if made is None else DeltaKind.UPDATED
    return lambda parts: parts.handlers.on_nodes([Delta(kind, N1.build(), made)])


def assumes(other: PodBuilder) -> Callable[[Parts], object]:
    """The next cycle puts another pod on the node."""
    return lambda parts: parts.cache.assume_pod(other.info(), "n1")


def nominates(other: PodBuilder) -> Callable[[Parts], object]:
    """A pod of ours is nominated for the node."""
    return lambda parts: parts.queue.nominator.add(other.info(), "n1")


class Meanwhile(PreBindPlugin):
    """Lets something happen while a pod is on its way to its node."""

    name = "Meanwhile"

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__(None, None)  # type: ignore[arg-type]
        self.happens = happens

    def pre_bind_pre_flight(self, state, info, node_name):
        return PreFlight(SUCCESS)

    async def pre_bind(self, state, info, node_name):
        self.happens()
        return SUCCESS


def play(tried: PodBuilder, happens: Callable[[Parts], object], *, guarded: bool = True) -> Stage:
    async def scene() -> Stage:
        stage = Stage(tried.build(), [None])
        stage._plugins = (Meanwhile(lambda: happens(stage.parts)),)
        if guarded:
            stage.guard = BindGuard(stage.parts.cache, stage.parts.profiles)
        return await stage.play()

    return asyncio.run(scene())


TAKEN = [
    pytest.param(FITS, binds(OTHERS.request(cpu="3001m")), "NodeResourcesFit", id="cpu"),
    pytest.param(
        FITS.request(memory="1Gi"),
        binds(OTHERS.request(memory="8Gi")),
        "NodeResourcesFit",
        id="memory",
    ),
    pytest.param(
        FITS, becomes(N1.capacity(cpu="500m")), "NodeResourcesFit", id="the node comes back smaller"
    ),
    pytest.param(
        FITS, becomes(N1.capacity(pods="0")), "NodeResourcesFit", id="no pod may run there"
    ),
    pytest.param(FITS.host_port(80), binds(OTHERS.host_port(80)), "NodePorts", id="a host port"),
    pytest.param(FITS, becomes(N1.unschedulable()), "NodeUnschedulable", id="cordoned"),
    pytest.param(FITS, becomes(N1.taint("gone")), "TaintToleration", id="tainted"),
    pytest.param(FITS, becomes(None), "NodeDeleted", id="deleted"),
    pytest.param(
        FITS,
        assumes(pod("second").scheduler("berth").request(cpu="3500m")),
        "NodeResourcesFit",
        id="pods that are assumed count",
    ),
]


@pytest.mark.parametrize(("tried", "happens", "cause"), TAKEN)
def test_a_pod_whose_node_was_taken_goes_back(tried, happens, cause):
    stage = play(tried, happens)
    assert stage.api.bound_to == []
    assert not stage.parts.cache.is_placed_pod(stage.pod.metadata.uid)
    assert stage.parts.queue.counts().active == 1
    assert stage.parts.counter(f'berth_bindings_withheld_total{{cause="{cause}"}}') == 1


@pytest.mark.parametrize(
    ("tried", "happens"),
    [
        pytest.param(FITS, binds(OTHERS.request(cpu="3")), id="just enough is left"),
        pytest.param(
            FITS, binds(OTHERS.request(memory="9Gi")), id="a resource that the pod does not request"
        ),
        pytest.param(FITS, nominates(pod("later").request(cpu="4")), id="a nominated pod"),
        pytest.param(TOLERANT, becomes(N1.unschedulable()), id="a tolerated cordon"),
        pytest.param(
            FITS.host_port(80), binds(OTHERS.host_port(80, protocol="UDP")), id="another protocol"
        ),
        pytest.param(FITS, becomes(N1.label("a", "b")), id="a label"),
        pytest.param(
            FITS,
            becomes(N1.taint("soft", effect="PreferNoSchedule")),
            id="a soft taint",
        ),
    ],
)
def test_a_pod_whose_place_is_left_is_bound(tried, happens):
    assert play(tried, happens).api.bound_to == ["n1"]


@pytest.mark.parametrize(("tried", "happens", "cause"), TAKEN)
def test_without_the_guard_it_is_bound_all_the_same(tried, happens, cause):
    assert play(tried, happens, guarded=False).api.bound_to == ["n1"]


def test_the_world_reads_why_a_pod_was_not_bound():
    stage = play(FITS, binds(OTHERS.request(cpu="4")))
    (condition,) = stage.conditions
    why = "binding to node n1 withheld: Insufficient cpu since the decision"
    assert (condition["reason"], condition["message"]) == ("SchedulerError", why)
    assert stage.events == ["FailedScheduling"]


@pytest.mark.parametrize(
    ("lost_before", "place"),
    [
        pytest.param(0, QueueState.ACTIVE, id="the first time at once"),
        pytest.param(TRIES_AT_ONCE, QueueState.BACKOFF, id="one race after another: a pause"),
    ],
)
def test_when_a_pod_is_tried_again(lost_before, place):
    parts, tried = Parts(), FITS.build()
    ports = fake_ports(FakeWriteApi(), parts.clock)
    writers = (
        EventRecorder(ports, instance="test"),
        PodStatusWriter(ports, parts.cache.is_placed_pod),
    )
    reports = Reports(*writers, parts.metrics)
    failures = FailureHandler(parts.queue, lambda namespace, name: tried, reports, parts.clock)
    parts.queue.add(FITS.info())
    queued = parts.queue.pop(timeout_s=0)
    assert queued is not None
    queued.consecutive_errors = lost_before
    taken = Status(Code.ERROR, ("taken",))
    failures.handle(queued, replace(Failure.of_status("berth", taken), is_node_taken=True))
    assert parts.queue.state_of(queued.info.uid) is place


class TakenBeforeTheLook(BindGuard):
    """Others fill the node right before the guard looks at it."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts.cache, parts.profiles)
        self.parts = parts

    def check(self, info):
        binds(OTHERS.request(cpu="4"))(self.parts)
        return super().check(info)


def test_nothing_is_written_for_a_node_that_was_taken_before_pre_bind():
    wrote: list[PodInfo] = []

    async def scene() -> Stage:
        stage = Stage(FITS.build(), [None])
        stage._plugins = (Meanwhile(lambda: wrote.append(FITS.info())),)
        stage.guard = TakenBeforeTheLook(stage.parts)
        return await stage.play()

    stage = asyncio.run(scene())
    assert (wrote, stage.api.bound_to) == ([], [])


def test_of_two_pods_that_lose_their_place_together_the_second_keeps_it():
    parts = Parts()
    parts.cache.add_node(N1.build())
    guard = BindGuard(parts.cache, parts.profiles)
    one, two = (pod(name).scheduler("berth").request(cpu="2").info() for name in ("one", "two"))
    parts.cache.assume_pod(one, "n1")
    parts.cache.assume_pod(two, "n1")
    parts.cache.add_pod(OTHERS.request(cpu="1").info())
    assert not guard.check(one).is_success
    parts.cache.forget_pod(one)
    assert guard.check(two).is_success


def test_a_pod_that_is_not_assumed_is_left_to_the_api_server():
    parts = Parts()
    parts.cache.add_node(N1.build())
    gone = FITS.request(cpu="64").info()
    assert BindGuard(parts.cache, parts.profiles).check(gone).is_success


def test_a_second_look_judges_only_a_node_that_has_changed(monkeypatch):
    parts, judged = Parts(), []
    parts.cache.add_node(N1.build())
    guard = BindGuard(parts.cache, parts.profiles)
    one, other = (pod(name).scheduler("berth").request(cpu="1").info() for name in ("one", "other"))
    parts.cache.assume_pod(one, "n1")
    around = parts.cache.usage_around
    monkeypatch.setattr(parts.cache, "usage_around", lambda uid: judged.append(uid) or around(uid))

    assert guard.check(one).is_success
    assert guard.check(one).is_success
    assert len(judged) == 1

    assert guard.check(one).is_success
    parts.cache.assume_pod(other, "n1")
    assert guard.check(one).is_success
    assert len(judged) == 3

    assert guard.check(one).is_success
    parts.cache.add_node(N1.unschedulable().build())
    assert not guard.check(one).is_success


def test_what_is_remembered_of_pods_that_fitted_is_bounded(monkeypatch):
    monkeypatch.setattr("scheduler.cycle.bind_guard.MAX_REMEMBERED", 3)
    parts = Parts()
    parts.cache.add_node(N1.build())
    guard = BindGuard(parts.cache, parts.profiles)
    for number in range(10):
        each = pod(f"pod-{number}").scheduler("berth").request(cpu="1m").info()
        parts.cache.assume_pod(each, "n1")
        assert guard.check(each).is_success
        assert len(guard._fitted) <= 3
