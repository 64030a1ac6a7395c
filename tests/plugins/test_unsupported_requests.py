from __future__ import annotations

import msgspec
import pytest

from cache.columns import NodesView
from cache.objects import (
    AWSElasticBlockStoreVolumeSource,
    CinderVolumeSource,
    ClaimVolumeSource,
    CSIVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
    Volume,
)
from plugins import names
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SUCCESS, unresolvable
from plugins.registry import PLUGINS
from plugins.unsupported_requests import (
    UNSUPPORTED,
    UnsupportedRequest,
    UnsupportedRequests,
    unsupported_requests,
)
from tests.builders import PodBuilder, names_term, node, pod
from tests.plugins.conformance import RecordingHandle

NODES = NodesView.of([node().info()])


def status_of(asked: PodBuilder) -> object:
    plugin = UnsupportedRequests(None, RecordingHandle())
    return plugin.pre_filter(CycleState(), asked.info(), NODES).status


@pytest.mark.parametrize(
    ("asked", "features"),
    [
        pytest.param(pod().resource_claim("gpu"), ["resource claims"], id="resource claims"),
        pytest.param(
            pod().volume(Volume("v", persistent_volume_claim=ClaimVolumeSource("c"))),
            ["volumes with a PersistentVolumeClaim"],
            id="claim",
        ),
        pytest.param(
            pod().volume(Volume("v", ephemeral=EphemeralVolumeSource())),
            ["volumes with a PersistentVolumeClaim"],
            id="ephemeral volume",
        ),
        pytest.param(
            pod().volume(Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource("d"))),
            ["in-tree attachable volumes"],
            id="GCE disk",
        ),
        pytest.param(
            pod().volume(
                Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("d"))
            ),
            ["in-tree attachable volumes"],
            id="EBS volume",
        ),
        pytest.param(
            pod().volume(Volume("v", rbd=RBDVolumeSource(image="i"))),
            ["in-tree attachable volumes"],
            id="RBD",
        ),
        pytest.param(
            pod().volume(Volume("v", iscsi=ISCSIVolumeSource("iqn"))),
            ["in-tree attachable volumes"],
            id="iSCSI",
        ),
        pytest.param(
            pod().volume(Volume("v", cinder=CinderVolumeSource())),
            ["in-tree attachable volumes"],
            id="Cinder volume",
        ),
        pytest.param(
            pod().volume(Volume("v", iscsi=ISCSIVolumeSource("iqn"))).resource_claim("gpu"),
            ["resource claims", "in-tree attachable volumes"],
            id="each of several is named",
        ),
    ],
)
def test_a_hard_request_keeps_the_pod_pending(asked: PodBuilder, features: list[str]) -> None:
    assert status_of(asked) == unresolvable(
        *(f"pod asks for {what}, which this scheduler does not support yet" for what in features)
    )


@pytest.mark.parametrize(
    "source",
    [
        "persistentVolumeClaim",
        "ephemeral",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "rbd",
        "iscsi",
        "azureDisk",
        "azureFile",
        "cinder",
        "portworxVolume",
        "vsphereVolume",
    ],
)
def test_a_volume_source_is_known_by_its_name_in_the_api(source: str) -> None:
    volume = msgspec.convert({"name": "v", source: {}}, Volume)
    assert unsupported_requests(pod().volume(volume).build())


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(pod(), id="nothing"),
        pytest.param(pod().volume(Volume("v")), id="a volume of another kind"),
        pytest.param(pod().volume(Volume("v", csi=CSIVolumeSource("d"))), id="inline CSI volume"),
        pytest.param(pod().node_affinity(names_term("n")), id="node affinity"),
        pytest.param(pod().pod_affinity("zone", app="a"), id="pod affinity"),
        pytest.param(pod().pod_anti_affinity("zone", app="a"), id="pod anti-affinity"),
        pytest.param(pod().spread("zone", app="a"), id="hard spreading"),
        pytest.param(pod().prefers_pods(1, "zone", app="a"), id="preferred pod affinity"),
        pytest.param(pod().avoids_pods(1, "zone", app="a"), id="preferred pod anti-affinity"),
        pytest.param(
            pod().spread("zone", when_unsatisfiable="ScheduleAnyway", app="a"), id="soft spreading"
        ),
    ],
)
def test_other_pods_pass(asked: PodBuilder) -> None:
    assert status_of(asked) == SUCCESS


@pytest.mark.parametrize("request_", [pytest.param(each, id=each.feature) for each in UNSUPPORTED])
def test_an_entry_goes_once_all_its_plugins_exist(request_: UnsupportedRequest) -> None:
    assert set(request_.needs) <= names.IN_TREE
    assert not set(request_.needs) <= set(PLUGINS)
