"""While other schedulers bind, nodes that keep room for their pods are preferred."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.columns import NodesView
from cache.resources import CPU, MEMORY, PODS
from scheduler.cycle.best_rows import INFEASIBLE, BestRows
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.soft_reserve import MAX_LOSS, PLACES, SoftReserve
from scheduler.journal.ties import RecordedTies
from tests.builders import node, pod

OURS = pod("ours").request(cpu="1").info()
OTHERS = {PODS: [1], CPU: [1000]}
GPU = "example.com/gpu"


class Binding:
    """Others who bind pods of some sizes."""

    def __init__(self, sizes=OTHERS) -> None:
        self.of_others = sizes

    def is_any(self):
        return True

    def rates(self, node_names):
        return [0.0 for _ in node_names]

    def sizes(self):
        return self.of_others


def free(*cpus: int, allocatable: int = 16, pods: int = 110) -> NodesView:
    """Return nodes with so many CPUs left."""
    size = {"cpu": str(allocatable), "memory": "64Gi", "pods": str(pods)}
    return NodesView.of(
        [
            node(f"n{index}").capacity(size).info(pod("p").request(cpu=str(allocatable - cpu)))
            for index, cpu in enumerate(cpus)
        ]
    )


def chosen(view: NodesView, scores: list[int], sizes=OTHERS, info=OURS, made=HostSelector) -> set:
    """Return the rows that are ever chosen."""
    total = np.array(scores, dtype=np.int64)
    selector, best = made(1), BestRows(total.copy())
    selector.others = Binding(sizes)
    feasible = np.flatnonzero(total != INFEASIBLE)
    subset = view.subset(feasible)
    rows = {int(feasible[selector.select(total[feasible], subset, info)]) for _ in range(40)}
    assert {selector.select_row(best, view.columns, info) for _ in range(40)} == rows
    return rows


@pytest.mark.parametrize(
    ("cpus", "scores", "rows"),
    [
        pytest.param([9, 9, 9], [70, 80, 80], {1, 2}, id="the highest scores where all keep room"),
        pytest.param([9, 9, 4], [70, 70, 80], {0, 1}, id="a lower score with more room"),
        pytest.param([9, 4, 9], [70, 80, 60], {0}, id="the highest score of those with room"),
        pytest.param([5, 4, 4], [70, 80, 80], {0}, id="room for four where none has it for eight"),
        pytest.param([3, 2, 2], [70, 80, 80], {0}, id="room for two where none has it for four"),
        pytest.param([2, 1, 1], [70, 80, 80], {0}, id="room for one where none has it for two"),
        pytest.param([1, 1, 1], [70, 70, 80], {0, 1}, id="no room: the lowest scores"),
        pytest.param([9, 2], [80 - MAX_LOSS, 80], {0}, id="the lowest score that may be preferred"),
        pytest.param([9, 2], [79 - MAX_LOSS, 80], {1}, id="no lower one is"),
        pytest.param([1, 1], [79 - MAX_LOSS, 80], {1}, id="nor where no node has room"),
        pytest.param([9, 2], [INFEASIBLE, 20], {1}, id="no node that is not feasible"),
    ],
)
@pytest.mark.parametrize(
    "made", [pytest.param(HostSelector, id="ordinary"), pytest.param(RecordedTies, id="journal")]
)
def test_choices(made, cpus, scores, rows):
    assert chosen(free(*cpus), scores, made=made) == rows


@pytest.mark.parametrize(
    ("sizes", "info"),
    [
        pytest.param({}, OURS, id="nobody binds"),
        pytest.param(OTHERS, None, id="a profile that fills nodes"),
        pytest.param({GPU: [8]}, OURS, id="a resource that the pod does not request"),
        pytest.param({PODS: [1], CPU: [32_000]}, OURS, id="larger than any node"),
        pytest.param({GPU: [8]}, pod("p").request({GPU: "1"}).info(), id="that no node reports"),
    ],
)
def test_the_highest_score_wins(sizes, info):
    assert chosen(free(9, 2), [70, 80], sizes, info) == {1}


def test_room_for_pods_counts():
    view = free(16, 16, pods=6)
    full = [pod(f"q{index}") for index in range(4)]
    view.columns.put(node("n1").capacity(cpu="16", memory="64Gi", pods="6").info(*full))
    assert chosen(view, [70, 80]) == {0}


def test_a_small_node_keeps_room_for_what_fits_on_it():
    view = free(9, 4, allocatable=9)
    sizes = {CPU: [1000, 12_000]}
    assert chosen(view, [70, 80], sizes) == {0}
    assert chosen(free(5, 9, allocatable=9), [70, 80], sizes) == {1}


amounts = st.integers(0, 9)


@given(
    st.lists(st.tuples(amounts, amounts, st.integers(1, 20)), min_size=1, max_size=8),
    st.lists(st.sampled_from([1, 2, 5, 12]), unique=True, min_size=1),
)
def test_one_node_is_judged_like_all(nodes, sizes):
    infos = [
        node(f"n{index}")
        .capacity(cpu=str(capacity), memory=str(used + 1), pods="99")
        .info(pod(f"p{index}").request(cpu=str(used), memory=str(more)))
        for index, (used, more, capacity) in enumerate(nodes)
    ]
    view = NodesView.of(infos)
    known = {CPU: [1000 * size for size in sorted(sizes)], MEMORY: [1]}
    reserve = SoftReserve(pod("o").request(cpu="1", memory="1").info(), known)
    rows = list(range(len(infos)))
    kept = reserve.keeping(rows, view)
    if kept:
        assert reserve.candidates(np.zeros(len(infos), dtype=np.int64), view).tolist() == kept


def test_a_loss_is_never_larger_than_it_may_be():
    rng = np.random.default_rng(1)
    for _ in range(50):
        scores = rng.integers(0, 400, 8).tolist()
        (row, *_) = chosen(free(*rng.integers(1, 16, 8).tolist()), scores)
        assert scores[row] >= max(scores) - MAX_LOSS


def test_a_group_is_placed_without_regard_to_others():
    selector = HostSelector(1)
    selector.others = Binding()
    with selector.seeded("group"):
        assert selector.select(np.array([70, 80]), free(9, 2), OURS) == 1


def test_where_several_places_are_wanted_the_first_is_the_most():
    assert list(PLACES) == sorted(PLACES, reverse=True)
