from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from cache.columns import NodesView
from cache.snapshot import Snapshot
from plugins.resource_scorer import (
    DEFAULT_RESOURCES,
    NodeAmounts,
    ResourceScorer,
    ResourceSpec,
    defaulted_resources,
    widened,
)
from tests.builders import node, pod

if TYPE_CHECKING:
    from plugins.framework.results import IntArray
    from plugins.resource_scorer import Amounts

GPU = "example.com/gpu"


@pytest.mark.parametrize(
    ("given", "effective"),
    [
        pytest.param(None, DEFAULT_RESOURCES, id="absent"),
        pytest.param((), DEFAULT_RESOURCES, id="empty"),
        pytest.param((ResourceSpec("cpu"),), (ResourceSpec("cpu", 1),), id="no weight is 1"),
        pytest.param((ResourceSpec(GPU, 5),), (ResourceSpec(GPU, 5),), id="a weight is kept"),
    ],
)
def test_resources_are_defaulted(
    given: tuple[ResourceSpec, ...] | None, effective: tuple[ResourceSpec, ...]
) -> None:
    assert defaulted_resources(given) == effective


@pytest.mark.parametrize(
    ("resource", "asked", "compared"),
    [
        pytest.param("cpu", 0, True, id="cpu counts though the pod asks for none"),
        pytest.param("ephemeral-storage", 0, True, id="so does ephemeral storage"),
        pytest.param(GPU, 0, False, id="an extended resource that the pod leaves out does not"),
        pytest.param(GPU, 1, True, id="one that it asks for does"),
        pytest.param("example.com/other", 1, False, id="unless the node has none"),
        pytest.param("pods", 1, False, id="pods are no such resource"),
        pytest.param("storage", 1, False, id="nor is a bare name that nobody knows"),
    ],
)
def test_which_resources_are_compared(resource: str, asked: int, compared: bool) -> None:
    room = {"ephemeral-storage": "10Gi", GPU: "4", "storage": "7"}
    info = node().capacity(room).info()
    scorer = ResourceScorer([ResourceSpec(resource, 3)], use_requested=True)
    assert bool(scorer.node_amounts(info, (asked,))) is compared


@pytest.mark.parametrize(
    ("use_requested", "milli_cpu"),
    [
        pytest.param(True, 500, id="what is requested"),
        pytest.param(False, 600, id="with 100m for the pod that asks for nothing"),
    ],
)
def test_the_use_of_cpu(use_requested: bool, milli_cpu: int) -> None:
    info = node().info(pod("busy").request(cpu="500m"), pod("idle"))
    scorer = ResourceScorer([ResourceSpec("cpu", 1)], use_requested=use_requested)
    assert scorer.node_amounts(info, (50,)) == [NodeAmounts(1, milli_cpu + 50, milli_cpu, 4000)]


def test_a_sum_past_int64_saturates() -> None:
    info = node().capacity({GPU: "8"}).info(pod().request({GPU: str(2**63 - 1)}))
    scorer = ResourceScorer([ResourceSpec(GPU, 1)], use_requested=True)
    assert scorer.node_amounts(info, (2**63 - 1,)) == [NodeAmounts(1, 2**63 - 1, 2**63 - 1, 8)]


def _sum_of_amounts(amounts: Amounts) -> IntArray:
    total: IntArray = (amounts.requested() + amounts.allocatable).sum(axis=0)
    return total


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("cpu", "memory"), id="lying side by side"),
        pytest.param(("memory",), id="one alone"),
        pytest.param((GPU, "cpu"), id="lying apart, in another order"),
        pytest.param(("ephemeral-storage", "memory"), id="both kinds of use"),
    ],
)
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(None, id="all nodes"),
        pytest.param([3], id="few nodes"),
        pytest.param([4, 0, 1, 2], id="most nodes"),
        pytest.param([], id="no nodes"),
    ],
)
def test_a_formula_sees_the_amounts_of_the_view(
    names: tuple[str, ...], rows: list[int] | None
) -> None:
    infos = [
        node(f"n{index}")
        .capacity({GPU: "4", "ephemeral-storage": f"{index + 1}Gi"})
        .info(*(pod(f"p{index}-{n}").request(cpu=f"{n}00m") for n in range(index)))
        for index in range(5)
    ]
    columns = Snapshot.of(infos).columns
    nodes = NodesView(columns, None if rows is None else np.array(rows, dtype=np.intp))
    scorer = ResourceScorer([ResourceSpec(name, 1) for name in names], use_requested=False)
    asked = tuple(range(1, len(names) + 1))
    expected = [
        sum(each.requested + each.allocatable for each in scorer.node_amounts(info, asked))
        for info in nodes.node_infos()
    ]
    assert scorer.score(nodes, asked, _sum_of_amounts).tolist() == expected


@pytest.mark.parametrize(
    ("rows", "is_wide"),
    [
        pytest.param([0], False, id="few are looked at alone"),
        pytest.param([3, 2, 1], True, id="most are looked at with all others"),
    ],
)
def test_a_view_is_widened_when_that_is_cheaper(rows: list[int], is_wide: bool) -> None:
    columns = Snapshot.of(node(f"n{index}").info() for index in range(4)).columns
    nodes = NodesView(columns, np.array(rows, dtype=np.intp))
    assert (widened(nodes) is not nodes) is is_wide
