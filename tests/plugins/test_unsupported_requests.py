from __future__ import annotations

import pytest

from cache.columns import NodesView
from cache.device_classes import IMPLICIT_PREFIX
from cache.device_objects import DeviceClass, DeviceClassSpec
from cache.objects import CSIVolumeSource, ISCSIVolumeSource, ObjectMeta, Volume
from plugins import names
from plugins.framework.cluster_events import Hint
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SUCCESS, unresolvable
from plugins.registry import PLUGINS
from plugins.unsupported_requests import (
    UNSUPPORTED,
    UnsupportedRequest,
    UnsupportedRequests,
)
from tests.builders import PodBuilder, names_term, node, pod
from tests.plugins.conformance import RecordingHandle

NODES = NodesView.of([node().info()])


GPU = "example.com/gpu"
IMPLICIT = f"{IMPLICIT_PREFIX}gpu.example.com"


def guard(*classes: tuple[str, str]) -> UnsupportedRequests:
    handle = RecordingHandle()
    for name, resource in classes:
        spec = DeviceClassSpec(extended_resource_name=resource)
        handle.devices.classes.changed(None, DeviceClass(ObjectMeta(name=name), spec))
    return UnsupportedRequests(None, handle)


def status_of(asked: PodBuilder, nodes: NodesView = NODES, *classes: tuple[str, str]) -> object:
    return guard(*classes).pre_filter(CycleState(), asked.info(), nodes).status


@pytest.mark.parametrize(
    ("asked", "features"),
    [
        pytest.param(pod().resource_claim("gpu"), ["resource claims"], id="resource claims"),
        pytest.param(pod().scheduling_group("g"), ["a scheduling group"], id="scheduling group"),
        pytest.param(
            pod().request({IMPLICIT: 1}),
            ["devices by an extended resource of a DeviceClass"],
            id="a resource that names its class",
        ),
        pytest.param(
            pod().resource_claim("gpu").scheduling_group("g"),
            ["resource claims", "a scheduling group"],
            id="two of them",
        ),
    ],
)
def test_a_hard_request_keeps_the_pod_pending(asked: PodBuilder, features: list[str]) -> None:
    assert status_of(asked) == unresolvable(
        *(f"pod asks for {what}, which this scheduler does not support yet" for what in features)
    )


def test_an_extended_resource_that_a_class_stands_for_is_refused() -> None:
    asked = pod().request({GPU: 1})
    assert status_of(asked) == SUCCESS, "nobody stands for it: it is lacking, and that is all"
    assert status_of(asked, NODES, ("gpus", "example.com/other")) == SUCCESS
    assert status_of(asked, NODES, ("gpus", GPU)) == unresolvable(
        "pod asks for devices by an extended resource of a DeviceClass, which this scheduler does "
        "not support yet"
    )


def test_where_a_node_reports_the_resource_the_pod_is_an_ordinary_one() -> None:
    nodes = NodesView.of([node("a").info(), node("b").capacity({GPU: 2}).info()])
    assert status_of(pod().request({GPU: 1}), nodes, ("gpus", GPU)) == SUCCESS
    assert status_of(pod().request({IMPLICIT: 1}), nodes) != SUCCESS


def test_what_classes_and_nodes_decide_is_not_signed() -> None:
    asked = guard().signature(pod().request({GPU: 1}).info())
    assert asked is None
    plain, grouped = pod().request(cpu="1"), pod().scheduling_group("g")
    assert guard().signature(plain.info()) == guard().signature(pod().info())
    assert guard().signature(plain.info()) != guard().signature(grouped.info())


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        pytest.param(pod().request({GPU: 1}), Hint.QUEUE, id="its resource"),
        pytest.param(pod().request({"example.com/x": 1}), Hint.SKIP, id="another resource"),
        pytest.param(pod().resource_claim("gpu"), Hint.SKIP, id="claims"),
        pytest.param(pod().scheduling_group("g").request(cpu="1"), Hint.SKIP, id="group"),
    ],
)
def test_a_node_wakes_whom_its_resources_may_help(asked: PodBuilder, hint: Hint) -> None:
    (wanted,) = guard().events_to_register()
    assert wanted.hint is not None
    assert wanted.hint(asked.build(), None, node().capacity({GPU: 1}).build()) is hint


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(pod(), id="nothing"),
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


@pytest.mark.parametrize("request_", [pytest.param(each, id=each.feature) for each in UNSUPPORTED])
def test_an_entry_goes_once_all_its_plugins_exist(request_: UnsupportedRequest) -> None:
    assert set(request_.needs) <= names.IN_TREE
    assert not set(request_.needs) <= set(PLUGINS)
