from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace

from cache.columns import NodesView
from cache.objects import (
    Container,
    ContainerStatus,
    PodStatus,
    ResourceRequirements,
)
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SUCCESS, Status, unresolvable, unschedulable
from plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs, Shortfall
from tests.builders import PodBuilder, node, pod
from tests.plugins import hostile_nodes
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from tests.builders import NodeBuilder

GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"


def _plugin(**args: Any) -> NodeResourcesFit:
    return NodeResourcesFit(msgspec.convert(args, NodeResourcesFitArgs), RecordingHandle())


def _verdict(info: PodInfo, node_info: NodeInfo, **args: Any) -> Status:
    plugin, state, nodes = _plugin(**args), CycleState(), NodesView.of([node_info])
    plugin.pre_filter(state, info, nodes)
    return plugin.filter(state, info, nodes).status_of(0)


BUSY = (
    pod("busy").request({"cpu": "3", "memory": "12Gi", "ephemeral-storage": "8Gi", GPU: "1"}),
    pod("idle"),
)
ROOM = node().capacity({"ephemeral-storage": "10Gi", GPU: "2", HUGE: "4Mi", "pods": "3"})


@pytest.mark.parametrize(
    ("incoming", "status"),
    [
        pytest.param(pod(), SUCCESS, id="nothing requested"),
        pytest.param(pod().request(cpu="1", memory="4Gi"), SUCCESS, id="exactly what is left"),
        pytest.param(
            pod().request(cpu="1001m"), unschedulable("Insufficient cpu"), id="a milli-core more"
        ),
        pytest.param(
            pod().request(cpu="4"), unschedulable("Insufficient cpu"), id="all that there is"
        ),
        pytest.param(
            pod().request(cpu="4001m"),
            unresolvable("Insufficient cpu"),
            id="more than there is at all",
        ),
        pytest.param(
            pod().request(memory="4294967297"),
            unschedulable("Insufficient memory"),
            id="a byte more",
        ),
        pytest.param(
            pod().request({"ephemeral-storage": "3Gi"}),
            unschedulable("Insufficient ephemeral-storage"),
            id="storage",
        ),
        pytest.param(pod().request({GPU: "1"}), SUCCESS, id="the last piece"),
        pytest.param(
            pod().request({GPU: "2"}), unschedulable(f"Insufficient {GPU}"), id="one piece more"
        ),
        pytest.param(
            pod().request({HUGE: "6Mi"}), unresolvable(f"Insufficient {HUGE}"), id="huge pages"
        ),
        pytest.param(
            pod().request({"example.com/nowhere": "1"}),
            unresolvable("Insufficient example.com/nowhere"),
            id="a resource that no node has",
        ),
        pytest.param(
            pod().request({"example.com/nowhere": "0"}), SUCCESS, id="none of what no node has"
        ),
        pytest.param(
            pod().request(cpu="2", memory="5Gi"),
            unschedulable("Insufficient cpu", "Insufficient memory"),
            id="two lacks",
        ),
        pytest.param(
            pod().request({GPU: "3", "ephemeral-storage": "3Gi", "memory": "5Gi", "cpu": "2"}),
            unresolvable(
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                f"Insufficient {GPU}",
            ),
            id="one hopeless lack makes the node hopeless",
        ),
        pytest.param(
            pod().request({"kubernetes.io/b": "1", "attachable-volumes-a": "1", GPU: "2"}),
            unresolvable(
                "Insufficient attachable-volumes-a",
                f"Insufficient {GPU}",
                "Insufficient kubernetes.io/b",
            ),
            id="the others come by name",
        ),
        pytest.param(
            pod()
            .request(cpu="500m")
            .container(Container(resources=ResourceRequirements({"cpu": "501m"}))),
            unschedulable("Insufficient cpu"),
            id="containers are summed",
        ),
        pytest.param(
            pod().init_container(Container(resources=ResourceRequirements({"cpu": "2"}))),
            unschedulable("Insufficient cpu"),
            id="an init container counts",
        ),
    ],
)
def test_what_a_pod_requests_must_be_left(incoming: PodBuilder, status: Status) -> None:
    assert _verdict(incoming.info(), ROOM.info(*BUSY)) == status


@pytest.mark.parametrize(
    ("room", "on_it", "incoming", "status"),
    [
        pytest.param("2", 1, pod(), SUCCESS, id="one place left"),
        pytest.param("2", 2, pod(), unschedulable("Too many pods"), id="full"),
        pytest.param("0", 0, pod(), unschedulable("Too many pods"), id="no place at all"),
        pytest.param(
            "1",
            1,
            pod().request(cpu="5"),
            unresolvable("Too many pods", "Insufficient cpu"),
            id="full, and too small",
        ),
    ],
)
def test_pods_need_a_place(room: str, on_it: int, incoming: PodBuilder, status: Status) -> None:
    others = (pod(f"p{index}") for index in range(on_it))
    assert _verdict(incoming.info(), node().capacity(pods=room).info(*others)) == status


def test_what_is_not_requested_may_be_overcommitted() -> None:
    overcommitted = node().info(pod("big").request(memory="20Gi"))
    assert _verdict(pod().request(cpu="1").info(), overcommitted) == SUCCESS


@pytest.mark.parametrize(
    ("resource", "args", "is_checked"),
    [
        pytest.param(GPU, {}, True, id="by default"),
        pytest.param(GPU, {"ignoredResources": [GPU]}, False, id="by name"),
        pytest.param(GPU, {"ignoredResourceGroups": ["example.com"]}, False, id="by group"),
        pytest.param(GPU, {"ignoredResourceGroups": ["com"]}, True, id="not by part of a group"),
        pytest.param(GPU, {"ignoredResources": ["example.com"]}, True, id="not a group as a name"),
        pytest.param(HUGE, {"ignoredResources": [HUGE]}, True, id="only extended resources"),
        pytest.param("cpu", {"ignoredResources": ["cpu"]}, True, id="never CPU"),
        pytest.param(
            "kubernetes.io/b",
            {"ignoredResourceGroups": ["kubernetes.io"]},
            True,
            id="nor native ones",
        ),
    ],
)
def test_ignored_resources(resource: str, args: dict[str, Any], is_checked: bool) -> None:
    status = _verdict(pod().request({resource: "100"}).info(), node().info(), **args)
    assert (status != SUCCESS) is is_checked


def _with_pod_level(requests: dict[str, str]) -> PodInfo:
    built = pod().request(cpu="1").build()
    spec = replace(built.spec, resources=ResourceRequirements(requests))
    return PodBuilder(replace(built, spec=spec)).info()


def test_pod_level_requests_replace_the_sum() -> None:
    assert _verdict(_with_pod_level({"cpu": "5"}), node().info()) == unresolvable(
        "Insufficient cpu"
    )


def test_the_status_of_a_running_pod_does_not_count() -> None:
    running = ContainerStatus(
        name="main", resources=ResourceRequirements({"cpu": "64"}), allocated_resources={}
    )
    built = replace(pod().request(cpu="1").build(), status=PodStatus(container_statuses=(running,)))
    assert _verdict(PodBuilder(built).info(), node().info()) == SUCCESS


def test_without_a_pre_filter_the_answer_is_the_same() -> None:
    incoming, nodes = pod().request(cpu="5").info(), NodesView.of([node().info()])
    verdicts = _plugin().filter(CycleState(), incoming, nodes)
    assert verdicts.status_of(0) == unresolvable("Insufficient cpu")


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([0, 2, 1], id="all, in another order"),
        pytest.param([2], id="one"),
        pytest.param([], id="none"),
    ],
)
def test_a_view_gets_the_verdicts_of_its_nodes(rows: list[int]) -> None:
    infos = [node(f"n{index}").capacity(cpu=str(index)).info() for index in range(3)]
    nodes = NodesView(Snapshot.of(infos).columns, np.array(rows, dtype=np.intp))
    verdicts = _plugin().filter(CycleState(), pod().request(cpu="2").info(), nodes)
    expected = [SUCCESS if row == 2 else unresolvable("Insufficient cpu") for row in rows]
    assert [verdicts.status_of(index) for index in range(len(rows))] == expected


def test_more_resources_than_bits_are_all_named() -> None:
    requests = {f"example.com/r{index:03}": "1" for index in range(70)}
    status = _verdict(pod().request(requests).info(), node().info())
    assert status == unresolvable(*(f"Insufficient {name}" for name in requests))


def test_shortfalls_tell_the_amounts() -> None:
    full = ROOM.capacity(pods="2").info(*BUSY)
    incoming = pod().request({"cpu": "2", "memory": "1Gi", GPU: "3"}).info()
    assert _plugin().shortfalls(incoming, full) == [
        Shortfall("pods", 1, 2, 2),
        Shortfall("cpu", 2000, 3000, 4000),
        Shortfall(GPU, 3, 1, 2),
    ]


@given(hostile_nodes.clusters(), hostile_nodes.pods())
def test_the_vector_form_and_its_twin_agree(
    cluster: list[tuple[NodeBuilder, list[PodBuilder]]], incoming: PodBuilder
) -> None:
    infos = [built.info(*pods) for built, pods in cluster]
    plugin, state, nodes = _plugin(), CycleState(), NodesView.of(infos)
    plugin.pre_filter(state, incoming.info(), nodes)
    verdicts = plugin.filter(state, incoming.info(), nodes)
    assert [verdicts.status_of(index) for index in range(len(infos))] == [
        plugin.filter_one(state, incoming.info(), info) for info in infos
    ]


@given(hostile_nodes.clusters(), hostile_nodes.pods())
def test_a_node_that_passes_is_never_overcommitted(
    cluster: list[tuple[NodeBuilder, list[PodBuilder]]], incoming: PodBuilder
) -> None:
    plugin = _plugin()
    for built, pods in cluster:
        before = built.info(*pods)
        if plugin.filter_one(CycleState(), incoming.info(), before) == SUCCESS:
            after = built.info(*pods, incoming)
            wanted = incoming.info().requests
            used, there = after.requested, after.allocatable
            assert all(used[name] <= there.get(name, 0) for name in wanted if wanted[name])


def test_resources_that_no_node_reports_are_insufficient_everywhere_in_their_order():
    snapshot = Snapshot.of([node(f"n{i}").capacity({"cpu": str(i + 1)}).info() for i in range(2)])
    wanted = pod().request({"cpu": "2", "a/none": "1", "z/none": "3"}).info()
    plugin, state, nodes = _plugin(), CycleState(), snapshot.all_nodes()
    plugin.pre_filter(state, wanted, nodes)
    verdicts = plugin.filter(state, wanted, nodes)
    assert [verdicts.status_of(row) for row in range(2)] == [
        plugin.filter_one(state, wanted, each) for each in nodes.node_infos()
    ]
    assert verdicts.status_of(0) == unresolvable(
        "Insufficient cpu", "Insufficient a/none", "Insufficient z/none"
    )


@given(hostile_nodes.clusters(), hostile_nodes.pods())
def test_as_many_pods_fit_as_are_counted(
    cluster: list[tuple[NodeBuilder, list[PodBuilder]]], asked: PodBuilder
) -> None:
    infos = [builder.info(*pods) for builder, pods in cluster]
    plugin, state, nodes = _plugin(), CycleState(), NodesView.of(infos)
    plugin.pre_filter(state, asked.info(), nodes)
    counted = plugin.count(state, asked.info(), nodes)
    assert counted is not None
    fitting = []
    for info in infos:
        filled, times = info.clone(), 0
        while times <= 5 and plugin.filter_one(state, asked.info(), filled).is_success:
            filled.add_pod(asked.uid(f"uid-{times}").info())
            times += 1
        fitting.append(times)
    assert np.minimum(counted, 6).tolist() == fitting
