from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache.columns import Columns, NodesView
from cache.objects import Toleration
from cache.taints import ToleratedTaints
from plugins.taint_tables import MANY, MAX_BYTES, TaintTables
from tests.builders import node, pod

if TYPE_CHECKING:
    from cache.objects import Taint

NO_TOLERATIONS = pod().build().spec.tolerations


class Judge:
    """Counts taints, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, taints: tuple[Taint, ...], tolerations: object) -> int:
        self.asked += 1
        return len(taints)


def columns_of(*taint_counts: int) -> Columns:
    columns = Columns()
    for index, count in enumerate(taint_counts):
        put(columns, f"n{index}", count)
    return columns


def put(columns: Columns, name: str, count: int) -> None:
    builder = node(name)
    for index in range(count):
        builder = builder.taint(f"k{index}")
    columns.put(builder.info())


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param((0, 0, 0), id="no taints"),
        pytest.param((0, 2, 0, 2), id="one set"),
        pytest.param((0, 1, 2, 1), id="two sets"),
        pytest.param((0, 1, 2, 3, 4, 0), id="many sets"),
    ],
)
def test_each_node_gets_the_count_of_its_taint_set(counts: tuple[int, ...]) -> None:
    view = NodesView(columns_of(*counts))
    tables = TaintTables(Judge())
    passed = tables.passed(view, NO_TOLERATIONS)
    assert tables.counts(view, NO_TOLERATIONS).tolist() == list(counts)
    assert [True] * len(counts) if passed is None else passed.tolist() == [c == 0 for c in counts]


def test_a_set_is_judged_once_however_many_nodes_have_it() -> None:
    judge = Judge()
    tables = TaintTables(judge)
    view = NodesView(columns_of(*[1] * 50, *[2] * 50))
    for _ in range(3):
        tables.counts(view, NO_TOLERATIONS)
    assert judge.asked == 2


def test_equal_tolerations_of_another_pod_share_the_judgement() -> None:
    judge = Judge()
    tables = TaintTables(judge)
    view = NodesView(columns_of(1))
    for name in ("a", "b"):
        tables.counts(view, pod(name).default_tolerations().build().spec.tolerations)
    assert judge.asked == 1


def test_an_id_that_comes_to_mean_another_set_is_judged_again() -> None:
    columns = columns_of(1)
    tables = TaintTables(Judge())
    assert tables.counts(NodesView(columns), NO_TOLERATIONS).tolist() == [1]
    columns.remove("n0")
    put(columns, "n1", 3)
    assert tables.counts(NodesView(columns), NO_TOLERATIONS).tolist() == [3]


def test_the_ids_of_other_columns_are_not_mistaken_for_these() -> None:
    tables = TaintTables(Judge())
    assert tables.counts(NodesView(columns_of(1)), NO_TOLERATIONS).tolist() == [1]
    assert tables.counts(NodesView(columns_of(2)), NO_TOLERATIONS).tolist() == [2]


def test_memory_does_not_grow_with_the_pods_seen() -> None:
    tables = TaintTables(Judge())
    view = NodesView(columns_of(1))
    for index in range(100):
        many = [f"{index}-{number}" for number in range(1000)]
        tables.counts(view, tuple(Toleration(key=key) for key in many))
    assert 0 < tables.memory_bytes <= MAX_BYTES
    assert len(tables) < 100


def test_thousands_of_tolerations_are_not_asked_one_by_one() -> None:
    asked: list[object] = []

    def judge(taints: object, tolerations: object) -> int:
        asked.append(tolerations)
        return 0

    view = NodesView(columns_of(1, 2))
    few = tuple(Toleration(key=f"k{index}") for index in range(MANY))
    TaintTables(judge).passed(view, few)
    TaintTables(judge).passed(view, (*few, Toleration(key="more")))
    assert [isinstance(each, ToleratedTaints) for each in asked] == [False, False, True, True]
