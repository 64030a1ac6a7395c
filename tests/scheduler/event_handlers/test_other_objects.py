"""Changes of all kinds but pods and nodes become known, and wake the pods that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cache.device_objects import DeviceClass, DeviceClassSpec
from cache.known import Known
from cache.objects import LabelSelector, ObjectMeta
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
    WATCHED,
)
from scheduler.metrics import Metrics
from tests.builders import pod
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
    if kind.goes_to is not None and kind.event is not None
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
        before = len(self.stage.incoming)
        self.others.handler(kind)(Delta(change, old, new))
        return [event for _, event in self.stage.incoming[before:]]


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
}
"""By what it shows that a change was taken over; for all others by the version of the storage."""

READABLE: Mapping[str, Any] = {
    "deviceclasses": DeviceClass(
        ObjectMeta(name="gpu"), DeviceClassSpec(extended_resource_name="example.com/gpu")
    ),
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
    ],
)
def test_an_amount_that_is_none_costs_only_its_object(
    kind: WatchedKind[Any], good: Any, bad: Any
) -> None:
    scene = Scene()
    scene.tell(kind, None, good)
    version = version_of(scene.storage)
    assert scene.tell(kind, good, bad) == []
    assert version_of(scene.storage) == version
