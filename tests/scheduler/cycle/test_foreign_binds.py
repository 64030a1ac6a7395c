"""Pods that others place: collisions with our bindings, and how often others bind on a node."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from cache.objects import OwnerReference, PodCondition
from scheduler.cycle import foreign_binds
from scheduler.cycle.bind_guard import BindGuard
from scheduler.cycle.foreign_binds import (
    FORGOTTEN_S,
    HALF_LIFE_S,
    MAX_RESOURCES,
    RECENT_S,
    WINDOW_S,
    ForeignBinds,
)
from scheduler.event_handlers.pods_and_nodes import EventHandlers
from scheduler.informers import Delta, DeltaKind
from tests.builders import node, pod
from tests.fakes.clock import FakeClock
from tests.scheduler.parts import Parts

OURS = pod("ours").scheduler("berth").request(cpu="3")
THEIRS = pod("theirs").scheduler("default-scheduler").request(cpu="2")
NOW_S = 1_800_000_000.0


class Scene:
    """A node of 4 CPUs that we have just bound a pod to, and the watch."""

    def __init__(self) -> None:
        self.parts = parts = Parts()
        self.foreign = ForeignBinds(parts.cache, parts.metrics, parts.clock, FakeClock(NOW_S))
        self.guard = BindGuard(parts.cache, parts.profiles, self.foreign)
        arrived = self.foreign.arrived
        self.handlers = EventHandlers(
            parts.pods, parts.pod_groups, parts.profiles, parts.metrics, on_foreign=arrived
        )
        parts.cache.add_node(node("n1").capacity(cpu="4", memory="8Gi").build())

    def bind(self, made=OURS, node_name: str = "n1") -> None:
        self.handlers.on_pods([Delta(DeltaKind.ADDED, None, made.build())])
        self.parts.cache.assume_pod(made.info(), node_name)
        self.guard.sends(node_name)

    def show(self, made, node_name: str = "n1", *, was_seen: bool = True) -> None:
        """Let the watch show that a pod has a node."""
        pending, placed = made.build(), made.on(node_name).build()
        if was_seen:
            self.handlers.on_pods([Delta(DeltaKind.ADDED, None, pending)])
        old = pending if was_seen else None
        self.handlers.on_pods([Delta(DeltaKind.UPDATED, old, placed)])

    def collisions(self, resource: str = "cpu") -> float:
        return self.parts.counter(f'berth_collisions_total{{resource="{resource}"}}')


@pytest.mark.parametrize(
    ("theirs", "was_seen", "resource"),
    [
        pytest.param(THEIRS, True, "cpu", id="another scheduler's"),
        pytest.param(THEIRS, False, "cpu", id="one that was never seen without a node"),
        pytest.param(
            OURS.named("twin").uid("twin"), True, "cpu", id="ours, bound by somebody else"
        ),
        pytest.param(pod("m").request(memory="9Gi"), True, "memory", id="memory"),
        pytest.param(pod("p").host_port(80), True, "host_ports", id="a host port"),
    ],
)
def test_a_pod_of_others_that_overcommits_a_node_of_ours_is_a_collision(theirs, was_seen, resource):
    scene = Scene()
    scene.bind(OURS.host_port(80))
    scene.show(theirs, was_seen=was_seen)
    assert scene.collisions(resource) == 1


def test_pods_that_have_room_are_none():
    scene = Scene()
    scene.bind()
    scene.show(THEIRS.request(cpu="1"))
    assert scene.collisions() == 0


def test_our_own_pods_are_none():
    scene = Scene()
    scene.bind()
    scene.bind(OURS.named("second").uid("second"))
    scene.show(OURS)
    scene.show(OURS.named("second").uid("second"))
    assert scene.collisions() == 0


def test_on_a_node_that_we_did_not_bind_to_of_late_it_is_none():
    scene = Scene()
    scene.bind()
    scene.parts.clock.advance(WINDOW_S + 1)
    scene.show(THEIRS)
    assert scene.collisions() == 0


def test_what_was_sent_is_forgotten_after_its_window():
    scene = Scene()
    for number in range(5):
        scene.guard.sends(f"n{number}")
        scene.parts.clock.advance(WINDOW_S)
    assert len(scene.foreign._sent_s) <= 2


def owned(kind: str):
    made = THEIRS.request(cpu="0").named(kind).uid(kind).build()
    owners = (OwnerReference(kind=kind, uid="owner", controller=True),)
    metadata = msgspec.structs.replace(made.metadata, owner_references=owners)
    return msgspec.structs.replace(made, metadata=metadata)


def test_how_often_others_bind_fades_away():
    scene = Scene()
    scene.show(THEIRS)
    assert scene.foreign.rates(["n1", "n2"]) == [1, 0]
    scene.parts.clock.advance(HALF_LIFE_S)
    assert scene.foreign.rates(["n1"]) == [0.5]
    scene.show(THEIRS.named("second").uid("second"))
    assert scene.foreign.rates(["n1"]) == [1.5]
    assert scene.foreign.is_any()
    scene.parts.clock.advance(FORGOTTEN_S)
    assert not scene.foreign.is_any()


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_pods_that_go_to_every_node_do_not_count(kind):
    scene, pending = Scene(), owned(kind)
    spec = msgspec.structs.replace(pending.spec, node_name="n1")
    placed = msgspec.structs.replace(pending, spec=spec)
    scene.handlers.on_pods([Delta(DeltaKind.UPDATED, pending, placed)])
    assert scene.foreign.rates(["n1"]) == [0]


def bound(age_s: float, scheduled: str = "True"):
    """Return a pod of others that was bound to ``n1`` before the watch has shown it."""
    made = THEIRS.on("n1").build()
    if not scheduled:
        return made
    since = datetime.fromtimestamp(NOW_S - age_s, UTC).isoformat()
    condition = PodCondition("PodScheduled", scheduled, last_transition_time=since)
    status = msgspec.structs.replace(made.status, conditions=(condition,))
    return msgspec.structs.replace(made, status=status)


@pytest.mark.parametrize(
    ("listed", "rate"),
    [
        pytest.param(bound(0), 1, id="just bound"),
        pytest.param(bound(HALF_LIFE_S), 0.5, id="bound a minute ago"),
        pytest.param(bound(FORGOTTEN_S - 1), 0.5**9.98, id="bound ten minutes ago"),
        pytest.param(bound(-1), 1, id="bound a second later by the other clock"),
        pytest.param(bound(FORGOTTEN_S), 0, id="bound too long ago"),
        pytest.param(bound(-FORGOTTEN_S), 0, id="bound far in the future"),
        pytest.param(bound(0, ""), 0, id="never bound, as far as is known"),
        pytest.param(bound(0, "False"), 0, id="not bound, by its condition"),
    ],
)
def test_pods_of_a_first_list_count_from_the_time_at_which_they_were_bound(listed, rate):
    scene = Scene()
    scene.handlers.on_pods([Delta(DeltaKind.ADDED, None, listed)])
    assert scene.foreign.rates(["n1"]) == [pytest.approx(rate, rel=0.01)]
    assert scene.foreign.sizes() == ({"pods": [1], "cpu": [2000]} if rate else {})
    assert scene.foreign.is_any() == bool(rate)


def test_others_of_a_first_list_are_forgotten_as_if_their_bindings_had_been_seen():
    scene = Scene()
    scene.handlers.on_pods([Delta(DeltaKind.ADDED, None, bound(FORGOTTEN_S - 1))])
    scene.parts.clock.advance(1)
    assert (scene.foreign.is_any(), scene.foreign.sizes()) == (False, {})


def test_our_own_pods_of_a_first_list_are_none_of_others():
    scene = Scene()
    listed = bound(0)
    spec = msgspec.structs.replace(listed.spec, scheduler_name="berth")
    scene.handlers.on_pods(
        [Delta(DeltaKind.ADDED, None, msgspec.structs.replace(listed, spec=spec))]
    )
    assert not scene.foreign.is_any()


def test_pods_of_others_that_are_not_bound_do_not_count():
    scene = Scene()
    scene.handlers.on_pods([Delta(DeltaKind.ADDED, None, THEIRS.build())])
    assert (scene.foreign.is_any(), scene.foreign.sizes()) == (False, {})


def test_the_nodes_that_are_counted_are_bounded(monkeypatch):
    monkeypatch.setattr(foreign_binds, "MAX_NODES", 3)
    scene = Scene()
    for number in range(10):
        name = f"pod-{number}"
        scene.show(THEIRS.named(name).uid(name), f"n{number}")
    assert len(scene.foreign._counts) <= 3


def test_the_sizes_of_what_others_bind_are_known_for_a_while():
    scene = Scene()
    scene.show(THEIRS.request(cpu="3", memory="1Gi"))
    scene.show(THEIRS.request(cpu="2100m").named("second").uid("second"))
    scene.show(THEIRS.request(cpu="500m").named("third").uid("third"))
    largest = {"pods": [1], "cpu": [500, 3000], "memory": [1 << 30]}
    assert scene.foreign.sizes() == largest
    scene.parts.clock.advance(RECENT_S)
    scene.show(THEIRS.request(cpu="500m").named("fourth").uid("fourth"))
    assert scene.foreign.sizes() == largest
    scene.parts.clock.advance(RECENT_S)
    scene.show(THEIRS.named("fifth").uid("fifth"))
    assert scene.foreign.sizes() == {"pods": [1], "cpu": [500, 2000]}


def test_the_last_sizes_are_known_until_others_are_forgotten():
    scene = Scene()
    scene.show(THEIRS.request(cpu="3"))
    scene.parts.clock.advance(FORGOTTEN_S - 1)
    assert scene.foreign.sizes() == {"pods": [1], "cpu": [3000]}
    scene.show(THEIRS.request(cpu="500m").named("second").uid("second"))
    assert scene.foreign.sizes() == {"pods": [1], "cpu": [500, 3000]}
    scene.parts.clock.advance(FORGOTTEN_S)
    assert scene.foreign.sizes() == {}
    scene.show(THEIRS.named("third").uid("third"))
    assert scene.foreign.sizes() == {"pods": [1], "cpu": [2000]}


def test_without_a_reserve_no_sizes_are_known():
    parts = Parts()
    foreign = ForeignBinds(parts.cache, parts.metrics, parts.clock, parts.clock, reserves=False)
    foreign.arrived(THEIRS.on("n1").info(), is_choice=True, was_pending=True)
    assert (foreign.is_any(), foreign.sizes()) == (True, {})


def test_the_resources_whose_sizes_are_known_are_bounded():
    scene = Scene()
    invented = {f"example.com/r{number}": "1" for number in range(2 * MAX_RESOURCES)}
    scene.show(THEIRS.request(invented))
    scene.show(THEIRS.request(memory="1").named("second").uid("second"))
    sizes = scene.foreign.sizes()
    assert len(sizes) <= MAX_RESOURCES + 3
    assert (sizes["cpu"], sizes["memory"]) == ([2000], [1])
