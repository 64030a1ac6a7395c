from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cache.columns import NodesView
from plugins.framework.cluster_events import Hint, Resource
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SKIP, SUCCESS, unresolvable
from plugins.volume_zone import REJECTED, VolumeZone
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle
from tests.storage_builders import StorageObject, claim, storage_class, storage_of, volume

if TYPE_CHECKING:
    from plugins.framework.status import Status

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"

BOUND = claim("data").bound_to("pv").build()
POD = pod().claim("data").info()


def status_on(labels: dict[str, str], *objects: StorageObject) -> Status:
    made, state = VolumeZone(None, RecordingHandle(storage=storage_of(*objects))), CycleState()
    place = node("n1")
    for key, value in labels.items():
        place = place.label(key, value)
    nodes = NodesView.of([place.info()])
    pre = made.pre_filter(state, POD, nodes).status
    return made.filter(state, POD, nodes).status_of(0) if pre.is_success else pre


@pytest.mark.parametrize(
    ("of_volume", "of_node", "expected"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, SUCCESS, id="same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, REJECTED, id="another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, SUCCESS, id="one of its zones"),
        pytest.param({ZONE: "a"}, {}, SUCCESS, id="a node that is nowhere"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, REJECTED, id="a node with a region alone"),
        pytest.param({REGION: "r", ZONE: "a"}, {REGION: "r", ZONE: "b"}, REJECTED, id="both count"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, SUCCESS, id="the old label for the new one"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, REJECTED, id="but not the other way round"),
        pytest.param({ZONE: "a__"}, {ZONE: "b"}, SKIP, id="an empty zone says nothing"),
        pytest.param({}, {ZONE: "b"}, SKIP, id="a volume that is anywhere"),
    ],
)
def test_a_bound_volume_keeps_the_pod_in_its_zones(
    of_volume: dict[str, str], of_node: dict[str, str], expected: Status
) -> None:
    bound = volume("pv")
    for key, value in of_volume.items():
        bound = bound.label(key, value)
    assert status_on(of_node, BOUND, bound.build()) == expected


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], unresolvable('persistentvolumeclaim "data" not found'), id="no claim"),
        pytest.param([BOUND], unresolvable('persistentvolume "pv" not found'), id="no volume"),
        pytest.param(
            [claim("data").build()],
            unresolvable("PersistentVolumeClaim had no pv name and storageClass name"),
            id="no class named",
        ),
        pytest.param(
            [claim("data").of_class("fast").build()],
            unresolvable('storageclass.storage.k8s.io "fast" not found'),
            id="no class",
        ),
        pytest.param(
            [claim("data").of_class("fast").build(), storage_class("fast", mode=None)],
            unresolvable('VolumeBindingMode not set for StorageClass "fast"'),
            id="a class without a mode",
        ),
        pytest.param(
            [claim("data").of_class("fast").build(), storage_class("fast", mode="Immediate")],
            unresolvable("PersistentVolume had no name"),
            id="should be bound by now",
        ),
        pytest.param(
            [claim("data").of_class("fast").build(), storage_class("fast")],
            SKIP,
            id="waits for its pod",
        ),
    ],
)
def test_a_claim_without_its_volume(objects: list[StorageObject], expected: Status) -> None:
    assert status_on({ZONE: "a"}, *objects) == expected


def hint(resource: Resource, old: Any, new: Any) -> Hint:
    made = VolumeZone(None, RecordingHandle())
    for each in made.events_to_register():
        if each.event.resource is resource and each.hint is not None:
            return each.hint(POD.pod, old, new)
    raise AssertionError(resource)


@pytest.mark.parametrize(
    ("resource", "old", "new", "expected"),
    [
        pytest.param(Resource.STORAGE_CLASS, None, storage_class("c"), Hint.QUEUE, id="waits"),
        pytest.param(
            Resource.STORAGE_CLASS,
            None,
            storage_class("c", mode="Immediate"),
            Hint.SKIP,
            id="eager",
        ),
        pytest.param(Resource.PERSISTENT_VOLUME_CLAIM, None, BOUND, Hint.QUEUE, id="own claim"),
        pytest.param(
            Resource.PERSISTENT_VOLUME_CLAIM, None, claim("x").build(), Hint.SKIP, id="other claim"
        ),
        pytest.param(
            Resource.PERSISTENT_VOLUME, None, volume("v").build(), Hint.QUEUE, id="new volume"
        ),
        pytest.param(
            Resource.PERSISTENT_VOLUME,
            volume("v").zone("a").build(),
            volume("v").zone("b").build(),
            Hint.QUEUE,
            id="volume elsewhere",
        ),
        pytest.param(
            Resource.PERSISTENT_VOLUME,
            volume("v").zone("a").build(),
            volume("v").zone("a").label("x").build(),
            Hint.SKIP,
            id="volume where it was",
        ),
    ],
)
def test_what_wakes_a_rejected_pod(resource: Resource, old: Any, new: Any, expected: Hint) -> None:
    assert hint(resource, old, new) is expected
