from __future__ import annotations

from typing import Any

import pytest

from cache.objects import AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, Volume
from plugins.framework.cluster_events import Action, Hint, Resource
from plugins.node_volume_limits import NodeVolumeLimits
from tests.builders import pod
from tests.plugins.conformance import RecordingHandle
from tests.storage_builders import attachment, claim, csi_node

CSI, EBS = "csi.example.com", "ebs.csi.aws.com"
INLINE = Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-a"))
NONSENSE = Volume("v", azure_disk=AzureDiskVolumeSource(kind="Shared"))
WAITING = pod().claim("data").build()


def hint(resource: Resource, old: Any, new: Any, waiting: Any = WAITING) -> Hint:
    made = NodeVolumeLimits(None, RecordingHandle())
    for each in made.events_to_register():
        if each.event.resource is resource and each.hint is not None:
            return each.hint(waiting, old, new)
    raise AssertionError(resource)


def test_a_new_csi_node_wakes_everybody() -> None:
    registered = NodeVolumeLimits(None, RecordingHandle()).events_to_register()
    assert [
        each.hint
        for each in registered
        if each.event.resource is Resource.CSI_NODE and each.event.action is Action.ADD
    ] == [None]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(1, 2, Hint.QUEUE, id="more"),
        pytest.param(2, 2, Hint.SKIP, id="as many"),
        pytest.param(2, 1, Hint.SKIP, id="fewer"),
        pytest.param(None, 1, Hint.QUEUE, id="a limit where there was none"),
        pytest.param(1, None, Hint.SKIP, id="no limit any more"),
    ],
)
def test_a_csi_node_wakes_when_it_holds_more(
    old: int | None, new: int | None, expected: Hint
) -> None:
    before, after = (csi_node("n").driver(CSI, limit=each).build() for each in (old, new))
    assert hint(Resource.CSI_NODE, before, after) is expected


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(pod("p").on("n").claim("any"), Hint.QUEUE, id="a claim"),
        pytest.param(pod("p").on("n").ephemeral_claim("any"), Hint.QUEUE, id="an ephemeral one"),
        pytest.param(pod("p").on("n").volume(INLINE), Hint.QUEUE, id="an inline volume"),
        pytest.param(pod("p").on("n").volume(Volume("v")), Hint.SKIP, id="no volume that counts"),
        pytest.param(pod("p").on("n"), Hint.SKIP, id="no volume"),
        pytest.param(pod("p").claim("any"), Hint.SKIP, id="on no node"),
    ],
)
def test_a_pod_that_goes_wakes_if_it_had_volumes_on_a_node(gone: Any, expected: Hint) -> None:
    assert hint(Resource.POD, gone.build(), None) is expected


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(claim("data"), Hint.QUEUE, id="its own"),
        pytest.param(claim("pod-scratch"), Hint.QUEUE, id="that of its ephemeral volume"),
        pytest.param(claim("other"), Hint.SKIP, id="another"),
        pytest.param(claim("data", namespace="other"), Hint.SKIP, id="of another namespace"),
    ],
)
def test_a_new_claim_wakes_who_waits_for_it(new: Any, expected: Hint) -> None:
    waiting = pod().claim("data").ephemeral_claim("scratch").build()
    assert hint(Resource.PERSISTENT_VOLUME_CLAIM, None, new.build(), waiting) is expected


@pytest.mark.parametrize(
    ("waiting", "attacher", "expected"),
    [
        pytest.param(pod().claim("data"), CSI, Hint.QUEUE, id="a claim"),
        pytest.param(pod().volume(INLINE), EBS, Hint.QUEUE, id="an inline volume of the driver"),
        pytest.param(pod().volume(INLINE), CSI, Hint.SKIP, id="another driver"),
        pytest.param(pod().volume(NONSENSE), CSI, Hint.QUEUE, id="one that no driver serves"),
        pytest.param(pod(), CSI, Hint.SKIP, id="no volume"),
    ],
)
def test_a_volume_that_is_detached_wakes(waiting: Any, attacher: str, expected: Hint) -> None:
    gone = attachment("pv", "n", attacher)
    assert hint(Resource.VOLUME_ATTACHMENT, gone, None, waiting.build()) is expected
