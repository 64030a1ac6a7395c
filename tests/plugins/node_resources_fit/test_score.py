from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cache.columns import NodesView
from cache.objects import Container, ResourceRequirements
from plugins.framework.cycle_state import CycleState
from plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from tests.builders import PodBuilder, node, pod
from tests.plugins import hostile_nodes
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from tests.builders import NodeBuilder

GPU = "example.com/gpu"


def _strategy(kind: str, shape: list[tuple[int, int]] | None = None, **weights: int) -> Any:
    names = {"gpu": GPU, "storage": "ephemeral-storage"}
    strategy: dict[str, Any] = {
        "type": kind,
        "resources": [{"name": names.get(n, n), "weight": w} for n, w in weights.items()],
    }
    if shape is not None:
        points = [{"utilization": at, "score": score} for at, score in shape]
        strategy["requestedToCapacityRatio"] = {"shape": points}
    return strategy


def _plugin(strategy: Any) -> NodeResourcesFit:
    args = {"scoringStrategy": strategy}
    return NodeResourcesFit(msgspec.convert(args, NodeResourcesFitArgs), RecordingHandle())


def _score(strategy: Any, incoming: PodInfo, node_info: NodeInfo) -> int:
    plugin, state, nodes = _plugin(strategy), CycleState(), NodesView.of([node_info])
    assert plugin.pre_score(state, incoming, nodes).is_success
    return int(plugin.score(state, incoming, nodes)[0])


LEAST = _strategy("LeastAllocated")
MOST = _strategy("MostAllocated")
PACKING = _strategy("RequestedToCapacityRatio", [(0, 0), (100, 10)])
SPREADING = _strategy("RequestedToCapacityRatio", [(0, 10), (70, 3), (100, 0)])

# 4 000m and 10 000 bytes, of which 1 000m and 5 000 bytes are taken.
HALF = node().capacity(cpu="4", memory="10000").info(pod("busy").request(cpu="1", memory="5000"))


@pytest.mark.parametrize(
    ("strategy", "cpu", "memory", "score"),
    [
        # CPU: 2 of 4 cores in use. Memory: 8 000 of 10 000 bytes in use.
        pytest.param(LEAST, "1", "3000", (50 + 20) // 2, id="least, the mean of what is left"),
        pytest.param(MOST, "1", "3000", (50 + 80) // 2, id="most, the mean of what is used"),
        pytest.param(PACKING, "1", "3000", 65, id="packing is most"),
        pytest.param(SPREADING, "1", "3000", 35, id="spreading"),
        # CPU: 1 001 of 4 000 is 25.025 percent. Memory: 5 001 of 10 000 is 50.01 percent.
        pytest.param(LEAST, "1m", "1", (74 + 49) // 2, id="least truncates what is left"),
        pytest.param(MOST, "1m", "1", (25 + 50) // 2, id="most truncates what is used"),
        pytest.param(PACKING, "1m", "1", 38, id="a ratio rounds the mean, half a point up"),
        # Memory: 15 000 of 10 000.
        pytest.param(LEAST, "1", "10000", (50 + 0) // 2, id="least, more than there is"),
        pytest.param(MOST, "1", "10000", (50 + 100) // 2, id="most, more than there is"),
        pytest.param(PACKING, "1", "10000", 75, id="packing, more than there is"),
        # CPU is 50 - the shape's 10 + (3 - 10) * 50 / 70 - and memory is at the end, 0.
        pytest.param(SPREADING, "1", "10000", 50, id="spreading leaves out a resource of 0"),
        pytest.param(LEAST, "3", "5000", 0, id="least, everything used up"),
        pytest.param(MOST, "3", "5000", 100, id="most, everything used up"),
        pytest.param(SPREADING, "3", "5000", 0, id="spreading, everything used up"),
        pytest.param(LEAST, "0", "0", (75 + 50) // 2, id="an explicit zero is zero"),
    ],
)
def test_two_resources(strategy: Any, cpu: str, memory: str, score: int) -> None:
    assert _score(strategy, pod().request(cpu=cpu, memory=memory).info(), HALF) == score


@pytest.mark.parametrize(
    ("weights", "score"),
    [
        # 50 percent of CPU and 90 percent of memory in use.
        pytest.param({"cpu": 1, "memory": 1}, 30, id="equal"),
        pytest.param({"cpu": 3, "memory": 1}, 40, id="more of one"),
        pytest.param({"cpu": 1, "memory": 2}, 23, id="truncated"),
        pytest.param({"memory": 7}, 10, id="one alone"),
        pytest.param({"memory": 1, "gpu": 5}, 10, id="one that the pod leaves out"),
        pytest.param({"storage": 1, "cpu": 1}, 50, id="one that the node lacks"),
        pytest.param({"storage": 1}, 0, id="nothing that the node has"),
        pytest.param({"gpu": 1}, 0, id="nothing that the pod asks for"),
        pytest.param({"pods": 1}, 0, id="pods are not compared"),
    ],
)
def test_weights(weights: dict[str, int], score: int) -> None:
    room = node().capacity({"cpu": "4", "memory": "10000", GPU: "4"}).info()
    incoming = pod().request(cpu="2", memory="9000").info()
    assert _score(_strategy("LeastAllocated", **weights), incoming, room) == score


def test_an_extended_resource_that_the_pod_asks_for() -> None:
    room = node().capacity({GPU: "4"}).info(pod("busy").request({GPU: "1"}))
    incoming = pod().request({GPU: "2"}).info()
    assert _score(_strategy("MostAllocated", gpu=1), incoming, room) == 75


@pytest.mark.parametrize(
    ("utilization", "score"),
    [
        pytest.param(0, 20, id="before the first point"),
        pytest.param(10, 20, id="at the first point"),
        pytest.param(11, 21, id="rising, truncated"),
        pytest.param(40, 70, id="at a point"),
        pytest.param(41, 69, id="falling, truncated towards zero"),
        pytest.param(47, 62, id="falling further"),
        pytest.param(90, 10, id="at the last point"),
        pytest.param(100, 10, id="after the last point"),
    ],
)
def test_a_shape_is_straight_between_its_points(utilization: int, score: int) -> None:
    shape = _strategy("RequestedToCapacityRatio", [(10, 2), (40, 7), (90, 1)], cpu=1)
    room = node().capacity(cpu="100m").info()
    incoming = pod().request(cpu=f"{utilization}m").info()
    assert _score(shape, incoming, room) == score


def test_a_container_without_requests_counts_100m_and_200_mib() -> None:
    room = node().capacity(cpu="1", memory="1000Mi").info()
    assert _score(MOST, pod().info(), room) == (10 + 20) // 2


def test_pods_without_requests_count_on_the_node_too() -> None:
    room = node().capacity(cpu="1", memory="1000Mi").info(pod("a"), pod("b"))
    assert _score(MOST, pod().info(), room) == (30 + 60) // 2


def test_pod_level_requests_do_not_count() -> None:
    """kube-scheduler 1.36 counts them on the node and in the filter, but not for this score."""
    built = pod().request(cpu="200m", memory="100Mi").build()
    spec = replace(built.spec, resources=ResourceRequirements({"cpu": "900m", "memory": "900Mi"}))
    room = node().capacity(cpu="1", memory="1000Mi").info()
    incoming = PodBuilder(replace(built, spec=spec)).info()
    assert _score(MOST, incoming, room) == (20 + 10) // 2


def test_each_container_without_requests_counts() -> None:
    incoming = pod().request(cpu="300m").container(Container(name="second")).info()
    room = node().capacity(cpu="1", memory="1000Mi").info()
    assert _score(MOST, incoming, room) == (40 + 40) // 2


STRATEGIES = [
    pytest.param(_strategy("LeastAllocated"), id="least"),
    pytest.param(_strategy("MostAllocated"), id="most"),
    pytest.param(_strategy("LeastAllocated", gpu=7, cpu=2, storage=3, memory=1), id="least of 4"),
    pytest.param(_strategy("MostAllocated", storage=3, memory=1, gpu=100), id="most of 3"),
    pytest.param(
        _strategy("RequestedToCapacityRatio", [(0, 0), (33, 10), (50, 3)], cpu=1, gpu=5, memory=1),
        id="a shape over 3",
    ),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(cluster=hostile_nodes.clusters(), incoming=hostile_nodes.pods())
def test_the_vector_form_and_its_twin_agree(
    strategy: Any, cluster: list[tuple[NodeBuilder, list[PodBuilder]]], incoming: PodBuilder
) -> None:
    infos = [built.info(*pods) for built, pods in cluster]
    plugin, state, nodes = _plugin(strategy), CycleState(), NodesView.of(infos)
    plugin.pre_score(state, incoming.info(), nodes)
    assert plugin.score(state, incoming.info(), nodes).tolist() == [
        plugin.score_one(state, incoming.info(), info) for info in infos
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(cluster=hostile_nodes.clusters(), incoming=hostile_nodes.pods())
def test_scores_lie_within_0_and_100(
    strategy: Any, cluster: list[tuple[NodeBuilder, list[PodBuilder]]], incoming: PodBuilder
) -> None:
    plugin = _plugin(strategy)
    nodes = NodesView.of([built.info(*pods) for built, pods in cluster])
    scores = plugin.score(CycleState(), incoming.info(), nodes)
    assert int(scores.min()) >= 0
    assert int(scores.max()) <= 100


def _by_fractions(kind: str, amounts: list[tuple[int, int, int]]) -> int:
    """Work the score out with exact fractions, for (weight, requested, allocatable)."""
    total = 0
    for weight, requested, allocatable in amounts:
        used = min(Fraction(requested, allocatable), Fraction(1))
        total += weight * floor(100 * (1 - used if kind == "LeastAllocated" else used))
    return floor(Fraction(total, sum(weight for weight, _, _ in amounts)))


small = st.integers(1, 300)
sized = st.one_of(small, st.integers(1, 2**47))


@pytest.mark.parametrize("kind", ["LeastAllocated", "MostAllocated"])
@given(data=st.lists(st.tuples(st.integers(1, 100), sized, sized), min_size=3, max_size=3))
def test_floats_give_what_fractions_give(kind: str, data: list[tuple[int, int, int]]) -> None:
    names = ("cpu", "memory", GPU)
    texts = [
        {
            name: f"{row[at]}m" if name == "cpu" else str(row[at])
            for name, row in zip(names, data, strict=True)
        }
        for at in (1, 2)
    ]
    weights = {"cpu": data[0][0], "memory": data[1][0], "gpu": data[2][0]}
    incoming, room = pod().request(texts[0]).info(), node().capacity(texts[1]).info()
    assert _score(_strategy(kind, **weights), incoming, room) == _by_fractions(kind, data)
