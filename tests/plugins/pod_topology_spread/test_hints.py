from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.objects import LabelSelector, Node, Pod, Toleration, TopologySpreadConstraint
from plugins.framework.cluster_events import Action, Hint, Resource
from plugins.pod_topology_spread import PodTopologySpread
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle
from tests.plugins.hints_of import ask, listens_to

PLUGIN = PodTopologySpread(None, RecordingHandle())

WAITING = pod("w").label("app", "a").spread("zone", app="a").build()
HONOURING = replace(
    WAITING,
    spec=replace(
        WAITING.spec,
        topology_spread_constraints=(
            TopologySpreadConstraint(
                topology_key="zone",
                label_selector=LabelSelector(match_labels={"app": "a"}),
                node_taints_policy="Honor",
            ),
        ),
    ),
)
MATCH = pod("q").label("app", "a").on("n").build()
OTHER = pod("q").label("app", "x").on("n").build()
ABROAD = pod("q", namespace="other").label("app", "a").on("n").build()
PENDING = pod("q").label("app", "a").build()


def tolerant(waiting: Pod) -> Pod:
    more = (Toleration(key="gpu", operator="Exists"),)
    return replace(waiting, spec=replace(waiting.spec, tolerations=more))


def test_it_listens_to_pods_and_nodes() -> None:
    assert listens_to(PLUGIN) == {
        Resource.POD: Action.ADD
        | Action.UPDATE_POD_LABEL
        | Action.UPDATE_POD_TOLERATION
        | Action.DELETE,
        Resource.NODE: Action.ADD
        | Action.DELETE
        | Action.UPDATE_NODE_LABEL
        | Action.UPDATE_NODE_TAINT,
    }


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(WAITING, None, MATCH, Hint.QUEUE, id="a matching pod comes"),
        pytest.param(WAITING, MATCH, None, Hint.QUEUE, id="a matching pod goes"),
        pytest.param(WAITING, None, OTHER, Hint.SKIP, id="another pod comes"),
        pytest.param(WAITING, OTHER, None, Hint.SKIP, id="another pod goes"),
        pytest.param(WAITING, None, ABROAD, Hint.SKIP, id="a pod of another namespace"),
        pytest.param(WAITING, None, PENDING, Hint.SKIP, id="a pod that is nowhere yet"),
        pytest.param(WAITING, OTHER, MATCH, Hint.QUEUE, id="a pod starts to match"),
        pytest.param(WAITING, MATCH, MATCH, Hint.SKIP, id="nothing changes"),
        pytest.param(HONOURING, HONOURING, tolerant(HONOURING), Hint.QUEUE, id="toleration"),
        pytest.param(WAITING, WAITING, tolerant(WAITING), Hint.SKIP, id="useless toleration"),
    ],
)
def test_pods(waiting: Pod, old: Pod | None, new: Pod | None, expected: Hint) -> None:
    assert ask(PLUGIN, Resource.POD, waiting, old, new) is expected


BARE, LABELLED = node("n").build(), node("n").label("zone", "a").build()
MOVED = node("n").label("zone", "b").build()
TAINTED = node("n").label("zone", "a").taint("gpu").build()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, LABELLED, Hint.QUEUE, id="a node with the label comes"),
        pytest.param(None, BARE, Hint.SKIP, id="a node without it comes"),
        pytest.param(LABELLED, None, Hint.QUEUE, id="a node with the label goes"),
        pytest.param(BARE, None, Hint.SKIP, id="a node without it goes"),
        pytest.param(BARE, LABELLED, Hint.QUEUE, id="a node joins"),
        pytest.param(LABELLED, BARE, Hint.QUEUE, id="a node leaves"),
        pytest.param(LABELLED, MOVED, Hint.QUEUE, id="a node moves"),
        pytest.param(LABELLED, TAINTED, Hint.QUEUE, id="other taints"),
        pytest.param(LABELLED, LABELLED, Hint.SKIP, id="nothing changes"),
        pytest.param(BARE, BARE, Hint.SKIP, id="nothing changes outside"),
    ],
)
def test_nodes(old: Node | None, new: Node | None, expected: Hint) -> None:
    assert ask(PLUGIN, Resource.NODE, WAITING, old, new) is expected
