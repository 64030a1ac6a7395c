from __future__ import annotations

import pytest

from cache.columns import NodesView
from plugins.framework.cluster_events import Action, ClusterEvent, Hint, Resource
from plugins.framework.status import SUCCESS, Status, unresolvable
from plugins.node_unschedulable import NodeUnschedulable
from tests.builders import NodeBuilder, PodBuilder, node, pod
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


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, node(), Hint.QUEUE, id="a new node"),
        pytest.param(None, node().unschedulable(), Hint.SKIP, id="a new node, cordoned"),
        pytest.param(node().unschedulable(), node(), Hint.QUEUE, id="uncordoned"),
        pytest.param(node(), node().unschedulable(), Hint.SKIP, id="cordoned"),
        pytest.param(node(), node().taint("k"), Hint.SKIP, id="another taint"),
    ],
)
def test_a_node_wakes_when_it_opens(
    plugin: NodeUnschedulable, old: NodeBuilder | None, new: NodeBuilder, expected: Hint
) -> None:
    after_node = plugin.events_to_register()[0].hint
    assert after_node is not None
    assert after_node(pod().build(), None if old is None else old.build(), new.build()) is expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(pod("p").toleration(CORDON, operator="Exists"), Hint.QUEUE, id="the cordon"),
        pytest.param(pod("p").toleration("k", operator="Exists"), Hint.SKIP, id="something else"),
        pytest.param(pod("q").toleration(operator="Exists"), Hint.SKIP, id="another pod"),
    ],
)
def test_a_toleration_wakes_whose_cordon_it_covers(
    plugin: NodeUnschedulable, changed: PodBuilder, expected: Hint
) -> None:
    after_pod = plugin.events_to_register()[1].hint
    assert after_pod is not None
    assert after_pod(pod("p").build(), pod("p").build(), changed.build()) is expected
