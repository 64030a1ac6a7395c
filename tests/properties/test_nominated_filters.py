"""The vector filters with nominated pods equal the scalar ones, after any history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.objects import Container, ContainerPort, Node, Pod, ResourceRequirements
from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState, StateKey
from plugins.framework.interfaces import FilterPlugin, PreFilterPlugin
from plugins.framework.results import PROCEED
from plugins.framework.status import SUCCESS, unschedulable
from plugins.inter_pod_affinity import InterPodAffinity
from plugins.node_affinity import NodeAffinity
from plugins.node_ports import NodePorts
from plugins.node_resources_fit import NodeResourcesFit
from plugins.pod_topology_spread import PodTopologySpread
from plugins.priority_sort import PrioritySort
from plugins.taint_toleration import TaintToleration
from scheduler.config.extension_points import POINTS, points_of
from scheduler.queueing.nominator import Nominator
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.runtime.nominated_nodes import NominatedNodes
from tests.plugins import related_pods

if TYPE_CHECKING:
    from tests.plugins.conformance import RecordingHandle

NODE_NAMES = related_pods.NODE_NAMES

_COUNTED: StateKey[list[int]] = StateKey("counted", list)


class Counter(PreFilterPlugin, FilterPlugin):
    """Somebody's own plugin: counts pods it was told of, cannot take back, has a scalar form."""

    name = "Counter"

    def pre_filter(self, state, info, nodes):
        state.write(_COUNTED, [0])
        return PROCEED

    def add_pod(self, state, info, added, node_info):
        state.read(_COUNTED)[0] += len(added.labels)
        return SUCCESS

    def filter_one(self, state, info, node_info):
        counted = state.read(_COUNTED)[0]
        return unschedulable(f"{counted} labels") if counted > len(node_info.pods) else SUCCESS


def framework_for(world: related_pods.World, nominator: Nominator) -> FrameworkRunner:
    handle: RecordingHandle = world.handle()
    plugins = [
        PrioritySort(None, handle),
        DefaultBinder(None, handle),
        TaintToleration(None, handle),
        NodeAffinity(None, handle),
        NodePorts(None, handle),
        NodeResourcesFit(None, handle),
        PodTopologySpread(None, handle),
        InterPodAffinity(None, handle),
        Counter(None, handle),
    ]
    filtering = {"queueSort", "preFilter", "filter", "bind"}
    runner = FrameworkRunner(
        "berth",
        {
            point: [p for p in plugins if point in filtering and point in points_of(type(p))]
            for point in POINTS
        },
        {},
    )
    runner.nominated = NominatedNodes(nominator.latest)
    return runner


@st.composite
def asking_pods(draw: st.DrawFn, name: str, node_name: str = "") -> Pod:
    """Pods that compete for CPU and ports, of three priorities."""
    made = draw(related_pods.pods(name=name, node_name=node_name))
    ports = (ContainerPort(host_port=80),) if draw(st.booleans()) else ()
    requests = ResourceRequirements(requests={"cpu": draw(st.sampled_from(["0", "1", "2"]))})
    spec = msgspec.structs.replace(
        made.spec,
        priority=draw(st.sampled_from([None, 5, 10])),
        containers=(Container(name="main", ports=ports, resources=requests),),
    )
    return msgspec.structs.replace(made, spec=spec)


def with_room(node: Node) -> Node:
    status = msgspec.structs.replace(node.status, allocatable={"cpu": "4", "pods": "4"})
    return msgspec.structs.replace(node, status=status)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["nominate", "nominate", "nominate", "withdraw", "place", "drop", "look"]),
        st.integers(0, 5),
        st.sampled_from(NODE_NAMES),
    ),
    min_size=2,
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_many_nodes_at_once_as_one_by_one(data):
    world = data.draw(related_pods.worlds(min_nodes=5))
    pending = [PodInfo(data.draw(asking_pods(f"pending-{index}"))) for index in range(6)]
    nominator = Nominator(lambda uid: True)
    runner = framework_for(world, nominator)
    cache, snapshot = SchedulerCache(), Snapshot()
    for node in world.cluster.nodes:
        cache.add_node(with_room(node))
    for placed in world.cluster.pods:
        cache.add_pod(PodInfo(placed))
    for number, (action, which, node_name) in enumerate(data.draw(STEPS)):
        info = pending[which]
        if action == "nominate":
            nominator.add(info, node_name)
        elif action == "withdraw":
            nominator.delete(info.uid)
        elif action == "place":
            more = data.draw(asking_pods(f"more-{number}", node_name))
            cache.add_pod(PodInfo(more))
        elif action == "drop":
            gone = [each for each in world.cluster.nodes if each.metadata.name == node_name]
            if gone and node_name in snapshot:
                cache.remove_node(node_name)
        cache.update_snapshot(snapshot)
        check(runner, snapshot, pending[(which + 1) % 6])
        check(runner, snapshot, info)


def check(runner: FrameworkRunner, snapshot: Snapshot, info: PodInfo) -> None:
    """Hold both forms against each other, over all nodes and over the first few."""
    nodes, state = snapshot.all_nodes(), CycleState()
    if not runner.run_pre_filter(state, info, nodes).status.is_success:
        return
    few = nodes.subset(np.arange(min(3, len(nodes)), dtype=np.intp)[::-1])
    many = nodes.subset(np.arange(len(nodes), dtype=np.intp)[::-1])
    for view in (nodes, many, few):
        outcome = runner.run_filter(state, info, view)
        for index, node_info in enumerate(view.node_infos()):
            scalar = runner.run_filter_one_with_nominated(state, info, node_info)
            assert outcome.status_of(index) == scalar
            feasible = outcome.feasible is None or bool(outcome.feasible[index])
            assert feasible == scalar.is_success
