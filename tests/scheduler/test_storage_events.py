"""Changes of storage objects reach the storage, and wake the pods that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cache.objects import ObjectMeta
from cache.storage import Storage
from cache.storage_objects import CSIStorageCapacity
from plugins.framework.cluster_events import Action, ClusterEvent, EventRegistration, Resource
from scheduler.client.codec import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from scheduler.informers import Delta
from scheduler.informers.store import DeltaKind
from scheduler.metrics import Metrics
from scheduler.storage_events import STORAGE_KINDS, StorageEvents
from tests.builders import pod
from tests.scheduler.queueing.stage import Stage
from tests.storage_builders import (
    attachment,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    volume,
)

if TYPE_CHECKING:
    from scheduler.client.codec import ResourceKind

ROOM = CSIStorageCapacity(ObjectMeta(name="c"), storage_class_name="fast", capacity="5Gi")

KINDS = [
    pytest.param(PERSISTENT_VOLUMES, volume("v").build(), "PersistentVolume", id="volumes"),
    pytest.param(
        PERSISTENT_VOLUME_CLAIMS, claim("c").build(), "PersistentVolumeClaim", id="claims"
    ),
    pytest.param(
        STORAGE_CLASSES, storage_class("s"), "storage.k8s.io/StorageClass", id="storage-classes"
    ),
    pytest.param(CSI_NODES, csi_node("n").build(), "storage.k8s.io/CSINode", id="csi-nodes"),
    pytest.param(CSI_DRIVERS, csi_driver("d"), "storage.k8s.io/CSIDriver", id="csi-drivers"),
    pytest.param(
        CSI_STORAGE_CAPACITIES, ROOM, "storage.k8s.io/CSIStorageCapacity", id="capacities"
    ),
    pytest.param(
        VOLUME_ATTACHMENTS,
        attachment("v", "n", "d"),
        "storage.k8s.io/VolumeAttachment",
        id="attachments",
    ),
]


class Scene:
    """A storage and a queue in which one pod waits for whatever happens to one resource."""

    def __init__(self, resource: str = "PersistentVolume", action: Action = Action.ALL) -> None:
        wanted = EventRegistration(ClusterEvent(Resource(resource), action))
        self.stage = Stage({"Volumes": (wanted,)})
        self.stage.refused(pod("web"), "Volumes")
        self.stage.incoming.clear()
        self.storage, self.metrics = Storage(), Metrics()
        self.events = StorageEvents(self.storage, self.stage.queue, self.metrics)

    def tell(self, kind: ResourceKind[Any], old: Any, new: Any) -> list[str]:
        """Tell of a change; return the labels of the events that woke the pod."""
        change = DeltaKind.ADDED if old is None else DeltaKind.UPDATED
        if new is None:
            change = DeltaKind.DELETED
        before = len(self.stage.incoming)
        self.events.handler(kind)([Delta(change, old, new)])
        return [event for _, event in self.stage.incoming[before:]]


@pytest.mark.parametrize(("kind", "obj", "resource"), KINDS)
def test_an_addition_wakes_with_the_kinds_own_event(
    kind: ResourceKind[Any], obj: Any, resource: str
) -> None:
    assert Scene(resource).tell(kind, None, obj) == [f"{resource}Add"]


@pytest.mark.parametrize(("kind", "obj", "resource"), KINDS)
def test_an_update_wakes_with_the_kinds_own_event(
    kind: ResourceKind[Any], obj: Any, resource: str
) -> None:
    assert Scene(resource).tell(kind, obj, obj) == [f"{resource}Update"]


@pytest.mark.parametrize(("kind", "obj", "resource"), KINDS)
def test_a_deletion_wakes_with_the_kinds_own_event(
    kind: ResourceKind[Any], obj: Any, resource: str
) -> None:
    assert Scene(resource).tell(kind, obj, None) == [f"{resource}Delete"]


@pytest.mark.parametrize(("kind", "obj", "resource"), KINDS)
def test_a_change_is_in_the_storage(kind: ResourceKind[Any], obj: Any, resource: str) -> None:
    scene = Scene()
    before = scene.storage.version
    scene.tell(kind, None, obj)
    assert scene.storage.version > before


def test_every_kind_that_is_watched_is_taken_in() -> None:
    assert {kind.name for kind in STORAGE_KINDS} == {row.values[0].name for row in KINDS}


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
    kind: ResourceKind[Any], good: Any, bad: Any
) -> None:
    scene = Scene()
    scene.tell(kind, None, good)
    version = scene.storage.version
    assert scene.tell(kind, good, bad) == []
    assert scene.storage.version == version
