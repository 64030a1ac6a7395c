"""The guard and the filters agree: a pod keeps its place where a filter would place it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cache.node_usage import usage_for
from cache.resources import is_extended_resource_name
from plugins.framework.cycle_state import CycleState
from plugins.node_ports import NodePorts
from plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from plugins.node_unschedulable import NodeUnschedulable
from plugins.taint_toleration import TaintToleration
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from tests.builders import PodBuilder

IGNORING = NodeResourcesFitArgs(ignored_resource_groups=("example.com",))

GUARDS = [
    pytest.param(NodeResourcesFit, None, id="resources"),
    pytest.param(NodeResourcesFit, IGNORING, id="resources, some of them ignored"),
    pytest.param(NodePorts, None, id="ports"),
    pytest.param(NodeUnschedulable, None, id="cordon"),
    pytest.param(TaintToleration, None, id="taints"),
]


AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "1", "2", "1500m"]),
        "memory": st.sampled_from(["1Gi", "3Gi"]),
        "ephemeral-storage": st.just("1Gi"),
        "example.com/gpu": st.sampled_from(["0", "1", "2"]),
    },
)
PORTS = st.lists(
    st.tuples(st.sampled_from([80, 81]), st.sampled_from(["", "10.0.0.1"])), max_size=2, unique=True
)
PODS = st.tuples(AMOUNTS, PORTS, st.sampled_from(["", "a", "node.kubernetes.io/unschedulable"]))
NODES = st.tuples(AMOUNTS, st.sampled_from(["0", "1", "3"]), st.booleans(), st.booleans())


def made(name: str, drawn) -> PodBuilder:
    amounts, ports, tolerated = drawn
    builder = pod(name).request(amounts)
    for port, ip in ports:
        builder = builder.host_port(port, ip=ip)
    return builder.toleration(tolerated, operator="Exists") if tolerated else builder


@pytest.mark.parametrize(("kind", "args"), GUARDS)
@given(drawn_node=NODES, others=st.lists(PODS, max_size=3), tried=PODS)
@settings(max_examples=60)
def test_a_pod_keeps_its_place_where_the_filter_would_place_it(
    kind, args, drawn_node, others, tried
):
    amounts, pods, is_cordoned, is_tainted = drawn_node
    builder = node("n1").capacity(amounts, pods=pods)
    builder = builder.unschedulable() if is_cordoned else builder
    builder = builder.taint("a") if is_tainted else builder
    there = [made(f"other-{index}", each) for index, each in enumerate(others)]
    node_info = builder.info(*there)
    plugin, info = kind(args, RecordingHandle()), made("tried", tried).info()
    # A kubelet does not check an extended resource that its node does not have; a filter does.
    absent = (name for name in info.requests if name not in node_info.allocatable)
    assume(not any(map(is_extended_resource_name, absent)))
    filtered = plugin.filter_one(CycleState(), info, node_info)
    node_info.add_pod(info)
    kept = plugin.still_fits(info, usage_for(info, node_info))
    assert kept.is_success == filtered.is_success
