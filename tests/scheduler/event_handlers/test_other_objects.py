"""Changes of all kinds but pods and nodes become known, and wake the pods that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from cache.known import Known
from cache.objects import LabelSelector, ObjectMeta, PodMeta
from cache.pod_group_objects import GroupKey, GroupSource, UnreadableXPodGroup, XPodGroup
from cache.storage_objects import CSIStorageCapacity
from cache.workload_objects import PodDisruptionBudget, PodDisruptionBudgetSpec
from plugins.framework.cluster_events import Action, ClusterEvent, EventRegistration, Resource
from scheduler.event_handlers.other_objects import OtherObjects
from scheduler.informers import Delta
from scheduler.informers.store import DeltaKind
from scheduler.kinds import (
    CSI_STORAGE_CAPACITIES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    WATCHED,
    X_POD_GROUPS,
)
from scheduler.metrics import Metrics
from tests.builders import pod
from tests.device_builders import allocated, device, device_class, resource_claim, resource_slice
from tests.scheduler.queueing.stage import Stage
from tests.storage_builders import claim, version_of, volume

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.kinds import WatchedKind

ROOM = CSIStorageCapacity(ObjectMeta(name="c"), storage_class_name="fast", capacity="5Gi")

OTHERS = [pytest.param(kind, id=kind.name) for kind in WATCHED if kind.goes_to is not None]
WAKING = [
    pytest.param(kind, kind.event.value, id=kind.name)
    for kind in WATCHED
    if kind.goes_to is not None and kind.event is not None and kind.announced_by is None
]


class Scene:
    """What is known, and a queue in which one pod waits for whatever happens to one resource."""

    def __init__(self, resource: str = "PersistentVolume", action: Action = Action.ALL) -> None:
        wanted = EventRegistration(ClusterEvent(Resource(resource), action))
        self.stage = Stage({"Volumes": (wanted,)})
        self.stage.refused(pod("web"), "Volumes")
        self.stage.incoming.clear()
        self.known, self.metrics = Known.nothing(), Metrics()
        self.storage = self.known.storage
        self.others = OtherObjects(self.known, self.stage.queue, self.metrics)

    def tell(self, kind: WatchedKind[Any], old: Any, new: Any) -> list[str]:
        """Tell of a change; return the labels of the events that woke the pod."""
        change = DeltaKind.ADDED if old is None else DeltaKind.UPDATED
        if new is None:
            change = DeltaKind.DELETED
        return self.woken_by(lambda: self.others.handler(kind)(Delta(change, old, new)))

    def woken_by(self, happen: Callable[[], object]) -> list[str]:
        """Let something happen; return the labels of the events that woke the pod."""
        before = len(self.stage.incoming)
        happen()
        return [event for _, event in self.stage.incoming[before:]]

    def wait_again(self) -> None:
        """Let the pod be tried and refused once more."""
        self.stage.queue.delete(pod("web").build().metadata.uid)
        self.stage.refused(pod("web"), "Volumes")


def some(kind: WatchedKind[Any]) -> Any:
    """Return an object of a kind."""
    return kind.struct(metadata=replace(kind.struct().metadata, name="some", uid="some"))


@pytest.mark.parametrize(("kind", "resource"), WAKING)
def test_an_addition_wakes_with_the_kinds_own_event(kind: WatchedKind[Any], resource: str) -> None:
    assert Scene(resource).tell(kind, None, some(kind)) == [f"{resource}Add"]


@pytest.mark.parametrize(("kind", "resource"), WAKING)
def test_an_update_wakes_with_the_kinds_own_event(kind: WatchedKind[Any], resource: str) -> None:
    assert Scene(resource).tell(kind, some(kind), some(kind)) == [f"{resource}Update"]


@pytest.mark.parametrize(("kind", "resource"), WAKING)
def test_a_deletion_wakes_with_the_kinds_own_event(kind: WatchedKind[Any], resource: str) -> None:
    assert Scene(resource).tell(kind, some(kind), None) == [f"{resource}Delete"]


@pytest.mark.parametrize("kind", OTHERS)
def test_a_kind_without_an_event_wakes_nobody(kind: WatchedKind[Any]) -> None:
    woken = Scene("*").tell(kind, None, some(kind))
    assert bool(woken) == (kind.event is not None)


KNOWN_BY: Mapping[str, Callable[[Known], object]] = {
    "namespaces": lambda known: len(known.namespaces._labels),
    "services": lambda known: known.workloads.version,
    "replicationcontrollers": lambda known: known.workloads.version,
    "replicasets": lambda known: known.workloads.version,
    "statefulsets": lambda known: known.workloads.version,
    "poddisruptionbudgets": lambda known: known.disruption_budgets.version,
    "deviceclasses": lambda known: known.devices.classes.class_of("example.com/gpu"),
    "resourceslices": lambda known: sum(map(len, known.devices.slices.view().by_pool.values())),
    "resourceclaims": lambda known: len(known.devices.claims.all()),
    "podgroups.scheduling.k8s.io": lambda known: known.pod_groups.keys(),
    "podgroups.scheduling.x-k8s.io": lambda known: known.pod_groups.keys(),
}
"""By what it shows that a change was taken over; for all others by the version of the storage."""

READABLE: Mapping[str, Any] = {
    "deviceclasses": device_class("gpu").extended_resource("example.com/gpu").build(),
    "poddisruptionbudgets": PodDisruptionBudget(
        ObjectMeta(name="web"),
        PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "web"})),
    ),
}
"""Objects of kinds of which an empty one says nothing."""


@pytest.mark.parametrize("kind", OTHERS)
def test_a_change_is_known(kind: WatchedKind[Any]) -> None:
    scene = Scene()
    seen = KNOWN_BY.get(kind.name, lambda known: version_of(known.storage))
    before = seen(scene.known)
    scene.tell(kind, None, READABLE.get(kind.name, some(kind)))
    assert seen(scene.known) != before


@pytest.mark.parametrize("kind", [PODS, NODES])
def test_pods_and_nodes_are_not_taken(kind: WatchedKind[Any]) -> None:
    with pytest.raises(ValueError, match=kind.name):
        Scene().others.handler(kind)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        pytest.param(
            PERSISTENT_VOLUMES,
            volume("v").build(),
            volume("v").size("much").version(2).build(),
            id="volume",
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIMS,
            claim("c").build(),
            claim("c").size("much").version(2).build(),
            id="claim",
        ),
        pytest.param(CSI_STORAGE_CAPACITIES, ROOM, replace(ROOM, capacity="much"), id="capacity"),
        pytest.param(
            RESOURCE_SLICES,
            resource_slice("s").build(),
            resource_slice("s").devices(device("d").capacity(memory="much")).build(),
            id="slice",
        ),
        pytest.param(
            RESOURCE_CLAIMS,
            resource_claim("c").build(),
            resource_claim("c")
            .resource_version("2")
            .request("r", "gpu", capacity={"memory": "much"})
            .build(),
            id="resource claim",
        ),
    ],
)
def test_an_amount_that_is_none_costs_only_its_object(
    kind: WatchedKind[Any], good: Any, bad: Any
) -> None:
    scene = Scene()
    scene.tell(kind, None, good)
    before = versions(scene.known)
    assert scene.tell(kind, good, bad) == []
    assert versions(scene.known) == before


def versions(known: Known) -> tuple[object, ...]:
    devices = known.devices
    return version_of(known.storage), devices.slices.version, devices.claims.all()


# --- what is announced by the cache: claims ---------------------------------------------------

CLAIM = "resource.k8s.io/ResourceClaim"
FREE = resource_claim("c").build()
TAKEN = resource_claim("c").resource_version("2").allocated(allocated("gpu")).build()


def test_a_claim_that_the_watch_brings_wakes_once_for_each_version() -> None:
    scene = Scene(CLAIM)
    assert scene.tell(RESOURCE_CLAIMS, None, FREE) == [f"{CLAIM}Add"]
    scene.wait_again()
    assert scene.tell(RESOURCE_CLAIMS, FREE, TAKEN) == [f"{CLAIM}Update"]
    scene.wait_again()
    assert scene.tell(RESOURCE_CLAIMS, TAKEN, TAKEN) == []
    assert scene.tell(RESOURCE_CLAIMS, TAKEN, None) == [f"{CLAIM}Delete"]


def test_a_claim_that_was_written_wakes_before_the_watch_brings_it_and_not_again() -> None:
    scene = Scene(CLAIM)
    scene.tell(RESOURCE_CLAIMS, None, FREE)
    scene.wait_again()
    claims = scene.known.devices.claims
    assert scene.woken_by(lambda: claims.stored(TAKEN)) == [f"{CLAIM}Update"]
    scene.wait_again()
    assert scene.tell(RESOURCE_CLAIMS, FREE, TAKEN) == []


def test_devices_that_are_given_up_wake() -> None:
    scene = Scene(CLAIM)
    claims = scene.known.devices.claims
    scene.tell(RESOURCE_CLAIMS, None, FREE)
    scene.wait_again()
    assert scene.woken_by(lambda: claims.begin_flight(TAKEN)) == []
    assert scene.woken_by(lambda: claims.end_flight(TAKEN.metadata.uid)) == [f"{CLAIM}Update"]


def test_a_restored_claim_is_taken_whatever_its_version() -> None:
    scene = Scene(CLAIM)
    scene.tell(RESOURCE_CLAIMS, None, TAKEN)
    scene.others.handler(RESOURCE_CLAIMS)(Delta(DeltaKind.UPDATED, TAKEN, FREE, restored=True))
    assert scene.known.devices.claims.get("default", "c") == FREE


# --- objects that cannot be decoded -----------------------------------------------------------


def unreadable(name: str) -> UnreadableXPodGroup:
    return UnreadableXPodGroup(PodMeta(name=name, namespace="ns", uid=name), problem="spec: none")


def test_groups_that_cannot_be_decoded_are_counted_refused_and_warned_of_once() -> None:
    scene = Scene()
    with capture_logs() as lines:
        for name in ("a", "b"):
            scene.tell(X_POD_GROUPS, None, unreadable(name))
    key = GroupKey("ns", "b", GroupSource.LABEL)
    rules = scene.known.pod_groups.rules(key)
    assert rules is not None
    assert rules.problem == "the PodGroup cannot be read: spec: none"
    counted = 'berth_malformed_objects_total{resource="podgroups.scheduling.x-k8s.io"} 2'
    assert counted in scene.metrics.render()[0].decode()
    assert [(each["log_level"], each["object"]) for each in lines] == [
        ("warning", "ns/a"),
        ("debug", "ns/b"),
    ]


def test_a_group_that_can_be_read_again_is_tried_again() -> None:
    scene = Scene()
    bad = unreadable("a")
    scene.tell(X_POD_GROUPS, None, bad)
    scene.tell(X_POD_GROUPS, bad, XPodGroup(bad.metadata))
    rules = scene.known.pod_groups.rules(GroupKey("ns", "a", GroupSource.LABEL))
    assert rules is not None
    assert rules.problem == ""
