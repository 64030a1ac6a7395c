from __future__ import annotations

import pytest

from cache.columns import NodesView
from cache.objects import CSIVolumeSource, ISCSIVolumeSource, Volume
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SUCCESS
from plugins.unsupported_requests import (
    UnsupportedRequests,
)
from tests.builders import PodBuilder, names_term, node, pod
from tests.plugins.conformance import RecordingHandle

NODES = NodesView.of([node().info()])


def guard() -> UnsupportedRequests:
    return UnsupportedRequests(None, RecordingHandle())


def status_of(asked: PodBuilder) -> object:
    return guard().pre_filter(CycleState(), asked.info(), NODES).status


def test_nothing_in_the_cluster_helps() -> None:
    assert guard().events_to_register() == ()


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(pod(), id="nothing"),
        pytest.param(pod().scheduling_group("g"), id="scheduling group"),
        pytest.param(pod().resource_claim("gpu", "c"), id="resource claim"),
        pytest.param(pod().request({"example.com/gpu": 1}), id="extended resource"),
        pytest.param(pod().claim("data"), id="volume claim"),
        pytest.param(pod().ephemeral_claim("scratch"), id="ephemeral volume"),
        pytest.param(pod().volume(Volume("v", iscsi=ISCSIVolumeSource("iqn"))), id="in-tree disk"),
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
