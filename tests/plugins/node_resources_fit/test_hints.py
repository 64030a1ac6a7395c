from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from cache.objects import PodStatus
from plugins.framework.cluster_events import Action, Hint, Resource
from plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from tests.builders import PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle
from tests.plugins.hints_of import ask, listens_to

if TYPE_CHECKING:
    from tests.builders import NodeBuilder

GPU = "example.com/gpu"

WAITING = pod("waiting").request({"cpu": "2", "memory": "1Gi", "ephemeral-storage": "0"})


def _hint(event: Resource, waiting: PodBuilder, old: Any, new: Any, **args: Any) -> Hint:
    plugin = NodeResourcesFit(msgspec.convert(args, NodeResourcesFitArgs), RecordingHandle())
    return ask(
        plugin,
        event,
        waiting.build(),
        None if old is None else old.build(),
        None if new is None else new.build(),
    )


def test_events() -> None:
    plugin = NodeResourcesFit(None, RecordingHandle())
    assert listens_to(plugin) == {
        Resource.POD: Action.DELETE | Action.UPDATE_POD_SCALE_DOWN,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.DEVICE_CLASS: Action.ADD | Action.UPDATE,
    }


RUNNING = pod("running").request(cpu="2", memory="1Gi").on("n1")
NOMINATED = PodBuilder(replace(pod("other").build(), status=PodStatus(nominated_node_name="n1")))


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(RUNNING, None, Hint.QUEUE, id="a running pod went"),
        pytest.param(pod("other"), None, Hint.SKIP, id="a pod without a node went"),
        pytest.param(NOMINATED, None, Hint.QUEUE, id="a nominated pod went"),
        pytest.param(RUNNING, RUNNING.request(cpu="1"), Hint.QUEUE, id="one asks for less"),
        pytest.param(RUNNING, RUNNING.request(cpu="3"), Hint.SKIP, id="one asks for more"),
        pytest.param(
            RUNNING.request({"ephemeral-storage": "2Gi"}),
            RUNNING.request({"ephemeral-storage": "1Gi"}),
            Hint.SKIP,
            id="one asks for less of what is not wanted",
        ),
        pytest.param(
            pod("other").request(cpu="2"),
            pod("other").request(cpu="1"),
            Hint.SKIP,
            id="a pod without a node asks for less",
        ),
        pytest.param(WAITING, WAITING.request(cpu="1"), Hint.QUEUE, id="the pod itself does"),
        pytest.param(
            RUNNING, RUNNING.request(cpu="nonsense"), Hint.QUEUE, id="nobody knows what it asks"
        ),
    ],
)
def test_pods_that_make_room(old: PodBuilder, new: PodBuilder | None, hint: Hint) -> None:
    assert _hint(Resource.POD, WAITING, old, new) is hint


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, node(), Hint.QUEUE, id="a node that is large enough came"),
        pytest.param(None, node().capacity(cpu="1"), Hint.SKIP, id="one that is too small came"),
        pytest.param(None, node().capacity(pods="0"), Hint.SKIP, id="one that takes no pods came"),
        pytest.param(node().capacity(cpu="3"), node(), Hint.QUEUE, id="one got more CPU"),
        pytest.param(node().capacity(pods="9"), node(), Hint.QUEUE, id="one takes more pods"),
        pytest.param(node(), node().capacity(cpu="3"), Hint.SKIP, id="one got less CPU"),
        pytest.param(
            node(), node().capacity({GPU: "8"}), Hint.SKIP, id="one got more of what is not wanted"
        ),
        pytest.param(
            node().capacity(cpu="500m"),
            node().capacity(cpu="1"),
            Hint.SKIP,
            id="one got more and is still too small",
        ),
        pytest.param(
            node(), node().capacity(cpu="nonsense"), Hint.QUEUE, id="nobody knows what it has"
        ),
    ],
)
def test_nodes_that_make_room(old: NodeBuilder | None, new: NodeBuilder, hint: Hint) -> None:
    assert _hint(Resource.NODE, WAITING, old, new) is hint


def test_an_ignored_resource_is_ignored_here_too() -> None:
    hint = _hint(Resource.NODE, WAITING.request({GPU: "1"}), None, node(), ignoredResources=[GPU])
    assert hint is Hint.QUEUE


def _freed(waiting: PodBuilder, *left: PodBuilder) -> Hint:
    """Return the hint for a pod that left a node of two CPUs on which others are left."""
    handle = RecordingHandle()
    handle.cached_nodes["n1"] = node("n1").capacity(cpu="2", memory="4Gi", pods="3").info(*left)
    plugin = NodeResourcesFit(None, handle)
    gone = pod("gone").request(cpu="1").on("n1").build()
    return ask(plugin, Resource.POD, waiting.build(), gone, None)


ONE_CPU = pod("left").request(cpu="1").on("n1")


@pytest.mark.parametrize(
    ("waiting", "left", "expected"),
    [
        pytest.param(pod("w").request(cpu="1"), [ONE_CPU], Hint.QUEUE, id="it fits now"),
        pytest.param(pod("w").request(cpu="2"), [ONE_CPU], Hint.SKIP, id="not enough is free"),
        pytest.param(pod("w").request(cpu="2"), [], Hint.QUEUE, id="the last one went"),
        pytest.param(pod("w").request({GPU: "1"}), [], Hint.SKIP, id="the node has none of it"),
        pytest.param(
            pod("w").request(cpu="2").priority(1),
            [ONE_CPU],
            Hint.QUEUE,
            id="who is left may be preempted",
        ),
        pytest.param(
            pod("w").request(cpu="2").priority(1),
            [ONE_CPU.priority(1)],
            Hint.SKIP,
            id="who is left is as important",
        ),
        pytest.param(
            pod("w"), [pod(f"p{i}").on("n1") for i in range(3)], Hint.SKIP, id="too many pods"
        ),
    ],
)
def test_a_freed_pod_wakes_only_whom_the_room_on_its_node_may_help(waiting, left, expected) -> None:
    assert _freed(waiting, *left) is expected


def test_a_node_that_grows_wakes_only_whom_the_room_that_is_left_may_help() -> None:
    handle = RecordingHandle()
    handle.cached_nodes["n1"] = node("n1").capacity(cpu="4", pods="9").info(ONE_CPU)
    plugin = NodeResourcesFit(None, handle)
    old = node("n1").capacity(cpu="2", pods="9").build()
    new = node("n1").capacity(cpu="4", pods="9").build()
    for cpu, expected in (("3", Hint.QUEUE), ("4", Hint.SKIP), ("5", Hint.SKIP)):
        waiting = pod("w").request(cpu=cpu).build()
        assert ask(plugin, Resource.NODE, waiting, old, new) is expected
