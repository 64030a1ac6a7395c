from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cache.kept_annotations import OWN_PREFIX
from cache.objects import Node as NodeObject
from cache.objects import NodeMeta
from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.authoring import Nodes, Pod, PolicyAnswerError
from plugins.authoring.own_columns import OwnColumns
from plugins.framework.node_metrics import MetricReading
from tests.builders import cache_of, node, pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.authoring import Node


class Measured:
    """Readings that a test puts in."""

    def __init__(self) -> None:
        self.readings: dict[str, MetricReading] = {}

    def latest(self, name: str) -> MetricReading | None:
        return self.readings.get(name)


def annotated(name: str, **annotations: str) -> NodeObject:
    keys = {OWN_PREFIX + key: text for key, text in annotations.items()}
    return NodeObject(metadata=NodeMeta(name=name, uid=name, annotations=keys))


NODES = (
    node("a").label("rack", "r1").label("cost", "1.5").zone("z1").taint("gpu", "yes").build(),
    node("b").label("rack", "r2").label("cost", "dear").zone("z1").build(),
    node("c").label("rack", "r1").zone("z2").taint("gpu", "no", effect="NoExecute").build(),
    node("d").unschedulable().build(),
    annotated("e", price="0.25"),
)
PODS = (
    pod("p1").label("app", "web").request(cpu="500m").on("a").build(),
    pod("p2").label("app", "web").on("a").build(),
    pod("p3", namespace="shop").label("app", "web").on("b").build(),
    pod("p4").label("app", "db").on("c").build(),
)


class World:
    """A snapshot and a plugin's view of it, in order of the names."""

    def __init__(self) -> None:
        self.cache = cache_of(NODES, map(PodInfo, PODS))
        self.snapshot = Snapshot()
        self.measured = Measured()
        self.own = OwnColumns(self.measured)

    def nodes(self, *names: str) -> Nodes:
        self.cache.update_snapshot(self.snapshot)
        view = self.snapshot.all_nodes()
        wanted = names or sorted(self.snapshot.names())
        rows = np.array([self.snapshot.columns.row_of[name] for name in wanted], dtype=np.intp)
        return Nodes(view.subset(rows), self.own)


QUESTIONS: dict[str, tuple[Callable[[Nodes], Any], Callable[[Node], Any], list[Any]]] = {
    "names": (lambda n: n.names, lambda n: n.name, ["a", "b", "c", "d", "e"]),
    "allocatable": (
        lambda n: n.allocatable("cpu"),
        lambda n: n.allocatable("cpu"),
        [4000, 4000, 4000, 4000, 0],
    ),
    "requested": (
        lambda n: n.requested("cpu"),
        lambda n: n.requested("cpu"),
        [500, 0, 0, 0, 0],
    ),
    "number of pods": (
        lambda n: n.requested("pods"),
        lambda n: n.requested("pods"),
        [2, 1, 1, 0, 0],
    ),
    "free": (lambda n: n.free("cpu"), lambda n: n.free("cpu"), [3500, 4000, 4000, 4000, 0]),
    "a resource that nobody has": (
        lambda n: n.free("example.com/none"),
        lambda n: n.free("example.com/none"),
        [0] * 5,
    ),
    "label": (
        lambda n: n.label("rack").values,
        lambda n: n.label("rack"),
        ["r1", "r2", "r1", None, None],
    ),
    "label is": (
        lambda n: n.label("rack") == "r1",
        lambda n: n.label("rack") == "r1",
        [True, False, True, False, False],
    ),
    "label is not": (
        lambda n: n.label("rack") != "r1",
        lambda n: n.label("rack") != "r1",
        [False, True, False, True, True],
    ),
    "label is one of": (
        lambda n: n.label("rack").isin(["r2", "r9"]),
        lambda n: n.label("rack") in ("r2", "r9"),
        [False, True, False, False, False],
    ),
    "label exists": (
        lambda n: n.label("rack").exists(),
        lambda n: "rack" in n.labels,
        [True, True, True, False, False],
    ),
    "label as a number": (
        lambda n: n.label_number("cost", default=9),
        lambda n: n.label_number("cost", default=9),
        [1.5, 9, 9, 9, 9],
    ),
    "annotation as a number": (
        lambda n: n.annotation_number(f"{OWN_PREFIX}price", default=0),
        lambda n: n.annotation_number(f"{OWN_PREFIX}price", default=0),
        [0, 0, 0, 0, 0.25],
    ),
    "taint": (
        lambda n: n.has_taint("gpu"),
        lambda n: n.has_taint("gpu"),
        [True, False, True, False, False],
    ),
    "taint with a value": (
        lambda n: n.has_taint("gpu", "yes"),
        lambda n: n.has_taint("gpu", "yes"),
        [True, False, False, False, False],
    ),
    "taint with an effect": (
        lambda n: n.has_taint("gpu", effect="NoExecute"),
        lambda n: n.has_taint("gpu", effect="NoExecute"),
        [False, False, True, False, False],
    ),
    "unschedulable": (
        lambda n: n.unschedulable,
        lambda n: n.unschedulable,
        [False, False, False, True, False],
    ),
    "pods by labels": (
        lambda n: n.matching_pods({"app": "web"}),
        lambda n: n.matching_pods({"app": "web"}),
        [2, 1, 0, 0, 0],
    ),
    "pods by labels in a namespace": (
        lambda n: n.matching_pods({"app": "web"}, namespaces=["shop"]),
        lambda n: n.matching_pods({"app": "web"}, namespaces=["shop"]),
        [0, 1, 0, 0, 0],
    ),
}


@pytest.mark.parametrize(
    ("vector", "scalar", "expected"),
    [pytest.param(*row, id=name) for name, row in QUESTIONS.items()],
)
def test_all_nodes_and_one_node_answer_alike(
    vector: Callable[[Nodes], Any], scalar: Callable[[Node], Any], expected: list[Any]
) -> None:
    nodes = World().nodes()
    assert list(vector(nodes)) == expected
    assert [scalar(each) for each in nodes] == expected


def test_a_number_that_is_absent_is_nan() -> None:
    nodes = World().nodes()
    assert np.isnan(nodes.label_number("cost")).tolist() == [False, True, True, True, True]
    assert math.isnan(nodes[1].label_number("cost"))


def test_zones_are_told_apart() -> None:
    a, b, c, d, e = World().nodes().zones().tolist()
    assert a == b != c
    assert d == e == 0
    assert 0 not in (a, c)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda n: n.allocatable("cpu"), id="allocatable"),
        pytest.param(lambda n: n.free("cpu"), id="free"),
        pytest.param(lambda n: n.label("rack").ids, id="label ids"),
        pytest.param(lambda n: n.label_number("cost"), id="label numbers"),
        pytest.param(lambda n: n.has_taint("gpu"), id="taints"),
        pytest.param(lambda n: n.zones(), id="zones"),
        pytest.param(lambda n: n.matching_pods({"app": "web"}), id="pods"),
        pytest.param(lambda n: n.names, id="names"),
        pytest.param(lambda n: n.metric("load"), id="metrics"),
    ],
)
@pytest.mark.parametrize("names", [pytest.param((), id="all"), pytest.param(("c", "a"), id="some")])
def test_columns_are_read_only(ask: Callable[[Nodes], Any], names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        ask(World().nodes(*names))[0] = 1


def test_some_nodes_know_all_nodes() -> None:
    nodes = World().nodes("c", "a")
    assert list(nodes.names) == ["c", "a"]
    assert len(nodes.all_nodes) == 5


def test_a_metric_is_nan_where_it_is_unknown() -> None:
    world = World()
    world.measured.readings["load"] = MetricReading({"b": 0.5}, 1)
    nodes = world.nodes()
    assert np.isnan(nodes.metric("load")).tolist() == [True, False, True, True, True]
    assert nodes[1].metric("load") == 0.5
    assert math.isnan(nodes[0].metric("load"))


def test_a_metric_follows_its_readings() -> None:
    world = World()
    nodes = world.nodes("b")
    assert math.isnan(nodes.metric("load")[0])
    world.measured.readings["load"] = MetricReading({"b": 0.5}, 1)
    assert nodes.metric("load").tolist() == [0.5]
    world.measured.readings["load"] = MetricReading({"b": 0.75}, 2)
    assert nodes.metric("load").tolist() == [0.75]
    del world.measured.readings["load"]
    assert math.isnan(nodes.metric("load")[0])


def test_a_column_of_a_plugin_asks_only_about_nodes_that_changed() -> None:
    world = World()
    asked: list[str] = []

    def pods_of(each: Node) -> int:
        asked.append(each.name)
        return sum(1 for _ in each.pods)

    assert world.nodes().per_node("pods", pods_of, of_pods=True).tolist() == [2, 1, 1, 0, 0]
    asked.clear()
    world.cache.add_pod(pod("p5").on("d").info())
    assert world.nodes().per_node("pods", pods_of, of_pods=True).tolist() == [2, 1, 1, 1, 0]
    assert asked == ["d"]


def test_a_column_of_a_plugin_follows_nodes_that_go() -> None:
    world = World()

    def length(each: Node) -> int:
        return len(each.labels)

    world.nodes().per_node("labels", length)
    world.cache.remove_node("e")
    world.cache.add_node(node("f").label("x").label("y").build())
    expected = [len(each.labels) for each in world.nodes()]
    assert world.nodes().per_node("labels", length).tolist() == expected


def test_a_column_without_pods_does_not_ask_again_for_a_pod() -> None:
    world = World()
    asked: list[str] = []

    def note(each: Node) -> int:
        asked.append(each.name)
        return 0

    world.nodes().per_node("n", note)
    asked.clear()
    world.cache.add_pod(pod("p5").on("d").info())
    world.nodes().per_node("n", note)
    assert not asked


def test_a_column_function_that_fails_leaves_the_column_as_it_was() -> None:
    world = World()
    broken = True

    def count(each: Node) -> float:
        if broken and each.name == "c":
            raise RuntimeError("not now")
        return len(list(each.pods))

    with pytest.raises(RuntimeError, match="not now"):
        world.nodes().per_node("pods", count, of_pods=True)
    broken = False
    assert world.nodes().per_node("pods", count, of_pods=True).tolist() == [2, 1, 1, 0, 0]
    world.cache.add_pod(pod("p5").on("c").info())
    broken = True
    with pytest.raises(RuntimeError, match="not now"):
        world.nodes().per_node("pods", count, of_pods=True)
    broken = False
    assert world.nodes().per_node("pods", count, of_pods=True).tolist() == [2, 1, 2, 0, 0]


def test_a_column_function_gives_a_number() -> None:
    with pytest.raises(PolicyAnswerError, match=r"per_node.* got str for node"):
        World().nodes().per_node("n", lambda each: each.name)  # type: ignore[arg-type, return-value]


def test_a_pod_says_what_it_asks_for() -> None:
    one = Pod(pod("web-0").label("app", "web").request(cpu="250m", memory="1Gi").priority(7).info())
    assert (one.requests("cpu"), one.requests("memory"), one.requests("pods")) == (250, 2**30, 1)
    assert (one.name, one.namespace, one.priority, one.labels["app"]) == (
        "web-0",
        "default",
        7,
        "web",
    )
    assert one.owner_kind == ""
