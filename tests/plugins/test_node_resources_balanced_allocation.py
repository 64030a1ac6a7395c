from __future__ import annotations

from statistics import pstdev
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cache.columns import NodesView
from cache.objects import ResourceRequirements
from plugins.framework.args import ArgsError
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SKIP, SUCCESS, Status
from plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from plugins.resource_scorer import DEFAULT_RESOURCES, ResourceSpec
from tests.builders import PodBuilder, node, pod
from tests.plugins import hostile_nodes
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from tests.builders import NodeBuilder

GPU = "example.com/gpu"


def _plugin(*names: str) -> NodeResourcesBalancedAllocation:
    args = {"resources": [{"name": name} for name in names]}
    return NodeResourcesBalancedAllocation(
        msgspec.convert(args, NodeResourcesBalancedAllocationArgs), RecordingHandle()
    )


def _score(incoming: PodInfo, node_info: NodeInfo, *names: str) -> int:
    plugin, state, nodes = _plugin(*names), CycleState(), NodesView.of([node_info])
    assert plugin.pre_score(state, incoming, nodes).is_success
    return int(plugin.score(state, incoming, nodes)[0])


ROOM = node().capacity({"cpu": "1", "memory": "1000", "ephemeral-storage": "1000", GPU: "10"})


@pytest.mark.parametrize(
    ("taken", "asked", "score"),
    [
        pytest.param((0, 0), (500, 500), 75, id="balanced before and after"),
        # |0.5 - 0| / 2 is 0.25: the balance falls from 100 to 75.
        pytest.param((0, 0), (500, 0), 50 + (50 + 75 - 100) // 2, id="out of balance"),
        pytest.param((500, 0), (0, 500), 50 + (50 + 100 - 75) // 2, id="back into balance"),
        pytest.param((0, 0), (1000, 0), 50 + (50 + 50 - 100) // 2, id="as bad as can be"),
        pytest.param((1000, 0), (0, 1000), 100, id="as good as can be"),
        # Balances of 90 and 100, so that 40 is halved; of 95 and 100, so that 45 is.
        pytest.param((0, 0), (200, 0), 70, id="a little worse"),
        pytest.param((0, 0), (100, 0), 72, id="truncated"),
        # 0.333 / 2 is 0.1665: the balance is 83.35, truncated to 83.
        pytest.param((0, 0), (333, 0), 50 + (50 + 83 - 100) // 2, id="a balance is truncated"),
        # 1.5 of the CPU counts as all of it: the balance stays at 50.
        pytest.param((1000, 0), (500, 0), 75, id="more than everything is everything"),
    ],
)
def test_two_resources(taken: tuple[int, int], asked: tuple[int, int], score: int) -> None:
    info = ROOM.info(pod("busy").request(cpu=f"{taken[0]}m", memory=str(taken[1])))
    incoming = pod().request(cpu=f"{asked[0]}m", memory=str(asked[1])).info()
    assert _score(incoming, info) == score


@pytest.mark.parametrize(
    ("names", "score"),
    [
        pytest.param(("cpu",), 75, id="one resource is always in balance"),
        pytest.param(("cpu", "example.com/none"), 75, id="so is one beside one nowhere"),
        # Fractions 0.3, 0.6 and 0: the deviation is 0.2449, the balance 75.
        pytest.param(("cpu", "memory", "ephemeral-storage"), 50 + (50 + 75 - 100) // 2, id="three"),
        # Fractions 0.3, 0.6, 0 and 0.9: the deviation is 0.3354, the balance 66.
        pytest.param(
            ("cpu", "memory", "ephemeral-storage", GPU), 50 + (50 + 66 - 100) // 2, id="four"
        ),
        # Fractions 0.6 and 0.9: the balance is 85.
        pytest.param(("memory", GPU), 50 + (50 + 85 - 100) // 2, id="an extended resource"),
        pytest.param(
            ("memory", "hugepages-2Mi", GPU),
            50 + (50 + 85 - 100) // 2,
            id="two of three, the third not asked for",
        ),
    ],
)
def test_other_resources(names: tuple[str, ...], score: int) -> None:
    incoming = pod().request({"cpu": "300m", "memory": "600", GPU: "9"}).info()
    assert _score(incoming, ROOM.capacity({"hugepages-2Mi": "2Mi"}).info(), *names) == score


def test_nodes_are_judged_by_the_resources_that_they_have() -> None:
    nodes = NodesView.of(
        [
            node("all").capacity({"cpu": "1", "memory": "1000", GPU: "10"}).info(),
            node("no gpu").capacity({"cpu": "1", "memory": "1000"}).info(),
            node("only cpu").capacity({"cpu": "1", "memory": "0"}).info(),
            node("nothing").capacity({"cpu": "0", "memory": "0"}).info(),
        ]
    )
    incoming = pod().request({"cpu": "300m", "memory": "600", GPU: "9"}).info()
    scores = _plugin("cpu", "memory", GPU).score(CycleState(), incoming, nodes)
    # 0.3, 0.6, 0.9 deviate by 0.2449; 0.3 and 0.6 by 0.15.
    assert scores.tolist() == [50 + 25 // 2, 50 + 35 // 2, 75, 75]


@pytest.mark.parametrize(
    ("incoming", "status"),
    [
        pytest.param(pod(), SKIP, id="nothing requested"),
        pytest.param(pod().request(cpu="0"), SKIP, id="zero requested"),
        pytest.param(pod().request({GPU: "1"}), SKIP, id="something else requested"),
        pytest.param(pod().request(memory="1"), SUCCESS, id="a byte requested"),
    ],
)
def test_a_pod_without_requests_is_not_scored(incoming: PodBuilder, status: Status) -> None:
    nodes = NodesView.of([node().info()])
    assert _plugin().pre_score(CycleState(), incoming.info(), nodes) == status


def test_pod_level_requests_count() -> None:
    built = pod().request(cpu="100m").build()
    spec = replace(built.spec, resources=ResourceRequirements({"cpu": "1"}))
    assert _score(PodBuilder(replace(built, spec=spec)).info(), ROOM.info()) == 50


def test_without_a_pre_score_the_answer_is_the_same() -> None:
    incoming, nodes = pod().request(cpu="1").info(), NodesView.of([ROOM.info()])
    assert _plugin().score(CycleState(), incoming, nodes).tolist() == [50]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param((), id="default"),
        pytest.param(("memory", GPU), id="two"),
        pytest.param(hostile_nodes.RESOURCES, id="five"),
    ],
)
@given(cluster=hostile_nodes.clusters(), incoming=hostile_nodes.pods())
def test_the_vector_form_and_its_twin_agree(
    names: tuple[str, ...],
    cluster: list[tuple[NodeBuilder, list[PodBuilder]]],
    incoming: PodBuilder,
) -> None:
    infos = [built.info(*pods) for built, pods in cluster]
    plugin, state, nodes = _plugin(*names), CycleState(), NodesView.of(infos)
    plugin.pre_score(state, incoming.info(), nodes)
    assert plugin.score(state, incoming.info(), nodes).tolist() == [
        plugin.score_one(state, incoming.info(), info) for info in infos
    ]


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=3))
def test_the_score_follows_the_standard_deviation(used: list[int]) -> None:
    amounts = dict(zip(("cpu", "memory", "ephemeral-storage"), used, strict=True))
    incoming = pod().request({**amounts, "cpu": f"{used[0]}m", GPU: "1"}).info()
    score = _score(incoming, ROOM.info(), *amounts) if any(used) else 75
    balance = 100 - pstdev(amount / 1000 for amount in used) * 100
    assert score == pytest.approx(50 + (balance - 50) / 2, abs=1)


@pytest.mark.parametrize(
    ("args", "effective"),
    [
        pytest.param({}, DEFAULT_RESOURCES, id="nothing given"),
        pytest.param({"resources": None}, DEFAULT_RESOURCES, id="null"),
        pytest.param(
            {"resources": [{"name": GPU}, {"name": "cpu", "weight": 0}]},
            (ResourceSpec(GPU, 1), ResourceSpec("cpu", 1)),
            id="no weight is 1",
        ),
    ],
)
def test_the_effective_resources(args: dict[str, Any], effective: tuple[ResourceSpec, ...]) -> None:
    converted = msgspec.convert(args, NodeResourcesBalancedAllocationArgs)
    plugin = NodeResourcesBalancedAllocation(converted, RecordingHandle())
    assert plugin.args.resources == effective


@pytest.mark.parametrize(
    ("resources", "path"),
    [
        pytest.param([{"name": "cpu", "weight": 2}], "resources[0].weight", id="another weight"),
        pytest.param(
            [{"name": "cpu"}, {"name": "cpu"}], "resources[1].name", id="a resource twice"
        ),
    ],
)
def test_a_mistake_is_refused_with_its_path(resources: list[dict[str, Any]], path: str) -> None:
    converted = msgspec.convert({"resources": resources}, NodeResourcesBalancedAllocationArgs)
    with pytest.raises(ArgsError) as caught:
        NodeResourcesBalancedAllocation(converted, RecordingHandle())
    assert caught.value.path == path
