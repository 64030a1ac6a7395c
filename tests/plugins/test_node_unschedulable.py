from __future__ import annotations

import pytest

from cache.columns import NodesView
from plugins.framework.cluster_events import Action, ClusterEvent, Resource
from plugins.framework.status import SUCCESS, Status, unresolvable
from plugins.node_unschedulable import NodeUnschedulable
from tests.builders import PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle, ask

CORDON = "node.kubernetes.io/unschedulable"
REJECTED = unresolvable("node(s) were unschedulable")


@pytest.fixture
def plugin() -> NodeUnschedulable:
    return NodeUnschedulable(None, RecordingHandle())


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(pod(), REJECTED, id="no toleration"),
        pytest.param(pod().default_tolerations(), REJECTED, id="other tolerations"),
        pytest.param(pod().toleration(CORDON, operator="Exists"), SUCCESS, id="by key"),
        pytest.param(pod().toleration(CORDON), SUCCESS, id="by its empty value"),
        pytest.param(pod().toleration(CORDON, "x"), REJECTED, id="by another value"),
        pytest.param(
            pod().toleration(CORDON, operator="Exists", effect="NoSchedule"),
            SUCCESS,
            id="by its effect",
        ),
        pytest.param(
            pod().toleration(CORDON, operator="Exists", effect="NoExecute"),
            REJECTED,
            id="by another effect",
        ),
        pytest.param(pod().toleration(operator="Exists"), SUCCESS, id="everything"),
    ],
)
def test_a_cordoned_node_takes_only_pods_that_tolerate_it(
    plugin: NodeUnschedulable, asked: PodBuilder, expected: Status
) -> None:
    view = NodesView.of([node("open").info(), node("cordoned").unschedulable().info()])
    assert ask(plugin, asked.info(), view).statuses == {"open": SUCCESS, "cordoned": expected}


def test_the_cordon_taint_alone_is_not_this_plugins_business(plugin: NodeUnschedulable) -> None:
    view = NodesView.of([node("n").taint(CORDON).info()])
    assert ask(plugin, pod().info(), view).statuses == {"n": SUCCESS}


def test_events(plugin: NodeUnschedulable) -> None:
    assert [registered.event for registered in plugin.events_to_register()] == [
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
        ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION),
    ]
