from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.columns import NodesView
from cache.node_info import NodeInfo
from cache.objects import Container, ContainerRestartRule, Node, Pod, PodSpec
from cache.pod_info import PodInfo
from plugins.framework.cluster_events import Hint
from plugins.framework.status import SKIP, SUCCESS, unresolvable
from plugins.node_declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    NodeDeclaredFeatures,
)
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle, ask

REJECTED = unresolvable("node(s) didn't match Pod's required features")

RESTARTS_ALL = Container(
    name="main", restart_policy_rules=(ContainerRestartRule("RestartAllContainers"),)
)
RESTARTS_ITSELF = Container(name="main", restart_policy_rules=(ContainerRestartRule("Restart"),))


@pytest.fixture
def plugin() -> NodeDeclaredFeatures:
    return NodeDeclaredFeatures(None, RecordingHandle())


def asking(spec: PodSpec) -> Pod:
    return replace(pod().build(), spec=spec)


def declaring(*features: str) -> Node:
    plain = node("n1").build()
    return replace(plain, status=replace(plain.status, declared_features=features))


def verdict(plugin: NodeDeclaredFeatures, spec: PodSpec, *features: str) -> object:
    info = NodeInfo("n1")
    info.set_node(declaring(*features))
    return ask(plugin, PodInfo(asking(spec)), NodesView.of([info])).statuses["n1"]


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        pytest.param(PodSpec(containers=(RESTARTS_ALL,)), RESTART_ALL_CONTAINERS, id="container"),
        pytest.param(PodSpec(init_containers=(RESTARTS_ALL,)), RESTART_ALL_CONTAINERS, id="init"),
        pytest.param(
            PodSpec(host_network=True, host_users=False),
            USER_NAMESPACES_HOST_NETWORK,
            id="user namespace on the host's network",
        ),
    ],
)
def test_a_need_is_met_only_where_the_feature_is_declared(
    plugin: NodeDeclaredFeatures, spec: PodSpec, feature: str
) -> None:
    assert verdict(plugin, spec, "Other", feature) == SUCCESS
    assert verdict(plugin, spec, "Other") == REJECTED
    assert verdict(plugin, spec) == REJECTED


def test_two_needs_want_both_features(plugin: NodeDeclaredFeatures) -> None:
    spec = PodSpec(containers=(RESTARTS_ALL,), host_network=True, host_users=False)
    assert verdict(plugin, spec, RESTART_ALL_CONTAINERS) == REJECTED
    both = (RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK)
    assert verdict(plugin, spec, *both) == SUCCESS


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(PodSpec(containers=(RESTARTS_ITSELF,)), id="restarts one container"),
        pytest.param(PodSpec(host_network=True), id="the host's network alone"),
        pytest.param(PodSpec(host_network=True, host_users=True), id="the host's users"),
        pytest.param(PodSpec(host_users=False), id="a user namespace on the pod's network"),
    ],
)
def test_a_pod_without_needs_skips_the_filter(plugin: NodeDeclaredFeatures, spec: PodSpec) -> None:
    info = PodInfo(asking(spec))
    assert ask(plugin, info, NodesView.of([])).pre_filter == SKIP


def test_a_node_wakes_a_pod_when_it_comes_or_declares_other_features(
    plugin: NodeDeclaredFeatures,
) -> None:
    hint = plugin.events_to_register()[0].hint
    assert hint is not None
    waiting = pod().build()
    assert hint(waiting, None, declaring()) is Hint.QUEUE
    assert hint(waiting, declaring(), declaring("A")) is Hint.QUEUE
    assert hint(waiting, declaring("A"), declaring("A")) is Hint.SKIP


def test_a_pod_is_woken_only_by_a_change_of_its_own_needs(plugin: NodeDeclaredFeatures) -> None:
    hint = plugin.events_to_register()[1].hint
    assert hint is not None
    waiting = asking(PodSpec(containers=(RESTARTS_ALL,)))
    changed = asking(PodSpec(containers=(RESTARTS_ITSELF,)))
    other = pod("other").build()
    assert hint(waiting, waiting, changed) is Hint.QUEUE
    assert hint(waiting, waiting, waiting) is Hint.SKIP
    assert hint(waiting, other, other) is Hint.SKIP
