from __future__ import annotations

import pytest

from cache.columns import NodesView
from plugins.framework.cluster_events import Action, ClusterEvent, Resource
from plugins.framework.status import SUCCESS, unresolvable
from plugins.node_name import NodeName
from tests.builders import PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle, ask


@pytest.fixture
def plugin() -> NodeName:
    return NodeName(None, RecordingHandle())


@pytest.mark.parametrize(
    ("asked", "passing"),
    [
        pytest.param(pod(), {"n1", "n2"}, id="no name"),
        pytest.param(pod().on("n2"), {"n2"}, id="one of the nodes"),
        pytest.param(pod().on("n3"), set(), id="none of the nodes"),
    ],
)
def test_a_pod_is_kept_to_the_node_that_it_names(
    plugin: NodeName, asked: PodBuilder, passing: set[str]
) -> None:
    rejected = unresolvable("node(s) didn't match the requested node name")
    view = NodesView.of([node("n1").info(), node("n2").info()])
    assert ask(plugin, asked.info(), view).statuses == {
        name: SUCCESS if name in passing else rejected for name in ("n1", "n2")
    }


def test_events(plugin: NodeName) -> None:
    events = [registered.event for registered in plugin.events_to_register()]
    assert events == [ClusterEvent(Resource.NODE, Action.ADD)]
