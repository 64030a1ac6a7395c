"""Which changes may help a pod whose volumes could not be found, made or reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cache.objects import CSIVolumeSource, ObjectMeta, Volume
from cache.storage_objects import (
    CSIStorageCapacity,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from plugins.framework.cluster_events import Hint
from plugins.volume_binding import hints
from tests.builders import pod
from tests.storage_builders import claim, csi_driver, csi_node, storage_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod

WEB = pod("web").claim("data").ephemeral_claim("scratch").build()
INLINE = pod("web").volume(Volume("v", csi=CSIVolumeSource("d"))).build()
ZONES = (TopologySelectorTerm((TopologySelectorLabelRequirement("zone", ("a",)),)),)
ROOM = CSIStorageCapacity(ObjectMeta(name="c"), capacity="5Gi")
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


@pytest.mark.parametrize(
    ("hint", "asked", "old", "new", "expected"),
    [
        pytest.param(
            hints.AFTER_CLAIM_CHANGE, WEB, None, claim("data").build(), Hint.QUEUE, id="its-claim"
        ),
        pytest.param(
            hints.AFTER_CLAIM_CHANGE,
            WEB,
            None,
            claim("web-scratch").build(),
            Hint.QUEUE,
            id="its-ephemeral-claim",
        ),
        pytest.param(
            hints.AFTER_CLAIM_CHANGE,
            WEB,
            None,
            claim("other").build(),
            Hint.SKIP,
            id="another-claim",
        ),
        pytest.param(
            hints.AFTER_CLAIM_CHANGE,
            WEB,
            None,
            claim("data", namespace="elsewhere").build(),
            Hint.SKIP,
            id="a-namesake-elsewhere",
        ),
        pytest.param(
            hints.AFTER_STORAGE_CLASS_CHANGE,
            WEB,
            None,
            storage_class("fast"),
            Hint.QUEUE,
            id="new-class",
        ),
        pytest.param(
            hints.AFTER_STORAGE_CLASS_CHANGE,
            WEB,
            storage_class("fast"),
            storage_class("fast", topologies=ZONES),
            Hint.QUEUE,
            id="other-topologies",
        ),
        pytest.param(
            hints.AFTER_STORAGE_CLASS_CHANGE,
            WEB,
            storage_class("fast"),
            storage_class("fast"),
            Hint.SKIP,
            id="class-in-other-ways",
        ),
        pytest.param(
            hints.AFTER_CSI_NODE_CHANGE,
            WEB,
            None,
            csi_node("n").build(),
            Hint.QUEUE,
            id="new-csi-node",
        ),
        pytest.param(
            hints.AFTER_CSI_NODE_CHANGE,
            WEB,
            csi_node("n").build(),
            csi_node("n").annotation(MIGRATED, "kubernetes.io/aws-ebs").build(),
            Hint.QUEUE,
            id="newly-migrated",
        ),
        pytest.param(
            hints.AFTER_CSI_NODE_CHANGE,
            WEB,
            csi_node("n").build(),
            csi_node("n").driver("d").build(),
            Hint.SKIP,
            id="csi-node-in-other-ways",
        ),
        pytest.param(
            hints.AFTER_CSI_DRIVER_CHANGE,
            INLINE,
            csi_driver("d", storage_capacity=True),
            csi_driver("d"),
            Hint.QUEUE,
            id="driver-no-longer-counts",
        ),
        pytest.param(
            hints.AFTER_CSI_DRIVER_CHANGE,
            INLINE,
            csi_driver("other", storage_capacity=True),
            csi_driver("other"),
            Hint.SKIP,
            id="another-driver",
        ),
        pytest.param(
            hints.AFTER_CSI_DRIVER_CHANGE,
            INLINE,
            csi_driver("d"),
            csi_driver("d", storage_capacity=True),
            Hint.SKIP,
            id="driver-begins-to-count",
        ),
        pytest.param(hints.AFTER_CAPACITY_CHANGE, WEB, None, ROOM, Hint.QUEUE, id="new-capacity"),
        pytest.param(
            hints.AFTER_CAPACITY_CHANGE,
            WEB,
            ROOM,
            replace(ROOM, capacity="6Gi"),
            Hint.QUEUE,
            id="more-room",
        ),
        pytest.param(
            hints.AFTER_CAPACITY_CHANGE,
            WEB,
            ROOM,
            replace(ROOM, capacity="4Gi"),
            Hint.SKIP,
            id="less-room",
        ),
        pytest.param(
            hints.AFTER_CAPACITY_CHANGE,
            WEB,
            replace(ROOM, capacity=None),
            ROOM,
            Hint.QUEUE,
            id="room-becomes-known",
        ),
        pytest.param(
            hints.AFTER_CAPACITY_CHANGE,
            WEB,
            ROOM,
            replace(ROOM, capacity="9Gi", maximum_volume_size="1Gi"),
            Hint.SKIP,
            id="the-largest-volume-counts",
        ),
    ],
)
def test_a_change_wakes_a_pod_that_it_may_help(
    hint: Callable[[Pod, Any, Any], Hint], asked: Pod, old: object, new: object, expected: Hint
) -> None:
    assert hint(asked, old, new) is expected
