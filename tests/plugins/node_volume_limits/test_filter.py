from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache.columns import NodesView
from cache.objects import AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, Volume
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SKIP, SUCCESS, Code, unresolvable
from plugins.node_volume_limits import NodeVolumeLimits
from plugins.node_volume_limits.plugin import REJECTED
from tests.builders import PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle
from tests.storage_builders import (
    StorageObject,
    attachment,
    claim,
    csi_node,
    storage_class,
    storage_of,
    volume,
)

if TYPE_CHECKING:
    from plugins.framework.status import Status

CSI, EBS = "csi.example.com", "ebs.csi.aws.com"
ONE = csi_node("n1").driver(CSI, limit=1).driver(EBS, limit=1).build()
FAST = storage_class("fast", CSI)


def bound(name: str, volume_name: str = "") -> StorageObject:
    return claim(name).bound_to(volume_name or f"pv-{name}").build()


def of_csi(name: str, handle: str = "") -> StorageObject:
    return volume(f"pv-{name}").csi(CSI, handle).build()


def in_tree(volume_id: str) -> Volume:
    source = AWSElasticBlockStoreVolumeSource(volume_id)
    return Volume("v", aws_elastic_block_store=source)


def status(asked: PodBuilder, *placed: PodBuilder, of: tuple[StorageObject, ...]) -> Status:
    """What both forms say of node ``n1``."""
    made, state = NodeVolumeLimits(None, RecordingHandle(storage=storage_of(*of))), CycleState()
    place = node("n1").info(*placed)
    nodes = NodesView.of([place])
    pre = made.pre_filter(state, asked.info(), nodes).status
    if not pre.is_success:
        return pre
    found = made.filter(state, asked.info(), nodes).status_of(0)
    assert made.filter_one(state, asked.info(), place) == found
    return found


UNSERVED = Volume("v", azure_disk=AzureDiskVolumeSource(kind="Shared"))
NOBODY_SERVES = "converting volume(v) from inline to csi: azureDisk.kind: no driver serves 'Shared'"
MINE, THEIRS = pod().claim("mine"), pod("p").on("n1").claim("theirs")


@pytest.mark.parametrize(
    ("asked", "placed", "objects", "expected"),
    [
        pytest.param(
            MINE,
            THEIRS,
            (ONE, bound("mine"), of_csi("mine"), bound("theirs"), of_csi("theirs")),
            REJECTED,
            id="full",
        ),
        pytest.param(
            MINE,
            pod("p").on("n1"),
            (ONE, bound("mine"), of_csi("mine")),
            SUCCESS,
            id="room for one",
        ),
        pytest.param(
            MINE,
            THEIRS,
            (ONE, bound("mine"), of_csi("mine", "h"), bound("theirs"), of_csi("theirs", "h")),
            SUCCESS,
            id="the same volume counts once",
        ),
        pytest.param(
            MINE,
            THEIRS,
            (bound("mine"), of_csi("mine"), bound("theirs"), of_csi("theirs")),
            SUCCESS,
            id="no CSINode, no limit",
        ),
        pytest.param(
            MINE,
            THEIRS,
            (
                csi_node("n1").driver(CSI).build(),
                bound("mine"),
                of_csi("mine"),
                bound("theirs"),
                of_csi("theirs"),
            ),
            SUCCESS,
            id="no count, no limit",
        ),
        pytest.param(
            MINE,
            pod("p").on("n1"),
            (
                ONE,
                bound("mine"),
                of_csi("mine"),
                of_csi("other"),
                attachment("pv-other", "n1", CSI),
            ),
            REJECTED,
            id="what is attached counts",
        ),
        pytest.param(
            MINE,
            THEIRS,
            (
                csi_node("n1").driver(CSI, limit=2).build(),
                bound("mine"),
                of_csi("mine"),
                bound("theirs"),
                of_csi("theirs"),
                attachment("pv-theirs", "n1", CSI),
            ),
            SUCCESS,
            id="attached and used counts once",
        ),
        pytest.param(
            MINE,
            THEIRS,
            (ONE, FAST, claim("mine").of_class("fast").build(), bound("theirs"), of_csi("theirs")),
            REJECTED,
            id="an unbound claim counts for its class",
        ),
        pytest.param(
            pod().claim("theirs"),
            THEIRS,
            (ONE, FAST, claim("theirs").of_class("fast").build()),
            SUCCESS,
            id="an unbound claim that is shared counts once",
        ),
        pytest.param(
            MINE,
            THEIRS,
            (ONE, FAST, bound("mine"), of_csi("mine"), claim("theirs").of_class("fast").build()),
            REJECTED,
            id="an unbound claim of a running pod counts",
        ),
        pytest.param(
            MINE,
            THEIRS,
            (ONE, bound("mine"), of_csi("mine")),
            SUCCESS,
            id="a missing claim of a running pod does not",
        ),
        pytest.param(
            pod().volume(in_tree("vol-a")),
            pod("p").on("n1").volume(in_tree("vol-b")),
            (ONE,),
            REJECTED,
            id="inline volumes count for the driver that serves them",
        ),
        pytest.param(
            pod().volume(in_tree("vol-a")),
            pod("p").on("n1").volume(in_tree("aws://z/vol-a")),
            (ONE,),
            SUCCESS,
            id="an inline volume by its two names",
        ),
        pytest.param(
            MINE,
            pod("p").on("n1").volume(in_tree("vol-a")),
            (
                ONE,
                bound("mine"),
                volume("pv-mine")
                .source(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-b"))
                .build(),
            ),
            REJECTED,
            id="an in-tree volume too",
        ),
        pytest.param(
            MINE,
            pod("p").on("n1").volume(in_tree("vol-a")),
            (
                ONE,
                storage_class("old", "kubernetes.io/aws-ebs"),
                claim("mine").of_class("old").build(),
            ),
            REJECTED,
            id="and an in-tree class",
        ),
        pytest.param(
            pod().ephemeral_claim("scratch"),
            THEIRS,
            (
                ONE,
                FAST,
                claim("pod-scratch").owned_by(pod().build()).of_class("fast").build(),
                bound("theirs"),
                of_csi("theirs"),
            ),
            REJECTED,
            id="an ephemeral volume counts",
        ),
        pytest.param(
            MINE,
            THEIRS,
            (ONE,),
            unresolvable('looking up PVC default/mine: persistentvolumeclaim "mine" not found'),
            id="a missing claim of the pod itself",
        ),
        pytest.param(
            MINE,
            pod("p").on("n1").volume(UNSERVED),
            (ONE, bound("mine"), of_csi("mine")),
            unresolvable(NOBODY_SERVES),
            id="a node whose volumes cannot be counted",
        ),
        pytest.param(pod(), THEIRS, (ONE,), SKIP, id="a pod without volumes"),
        pytest.param(pod().volume(Volume("v")), THEIRS, (ONE,), SKIP, id="other volumes"),
    ],
)
def test_a_node_holds_so_many_volumes_of_a_driver(
    asked: PodBuilder, placed: PodBuilder, objects: tuple[StorageObject, ...], expected: Status
) -> None:
    assert status(asked, placed, of=objects) == expected


@pytest.mark.parametrize(
    ("asked", "objects", "reason"),
    [
        pytest.param(
            pod().ephemeral_claim("scratch"),
            (ONE, claim("pod-scratch").build()),
            "PVC default/pod-scratch was not created for pod default/pod (pod is not owner)",
            id="the claim of somebody else",
        ),
        pytest.param(
            pod().volume(UNSERVED),
            (ONE,),
            NOBODY_SERVES,
            id="an inline volume that no driver serves",
        ),
    ],
)
def test_volumes_that_make_no_sense_are_errors(
    asked: PodBuilder, objects: tuple[StorageObject, ...], reason: str
) -> None:
    found = status(asked, of=objects)
    assert (found.code, found.reasons) == (Code.ERROR, (reason,))
