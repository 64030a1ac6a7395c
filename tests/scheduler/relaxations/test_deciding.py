from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.relaxations.deciding import MAX_WEIGHT, nearest_weight
from tests.builders import node, pod, requirement, term
from tests.scheduler.relaxations.small_clusters import relaxations

ASKED = pod("web").request(cpu="1", memory="1Gi")
N1 = node("n1").capacity(cpu="8", memory="16Gi")
N2 = node("n2").capacity(cpu="8", memory="16Gi")
BUSY = pod("busy").request(cpu="4", memory="8Gi").on("n2")


def test_the_plugin_with_the_larger_score_decides() -> None:
    deciding = relaxations(ASKED, N1, N2, BUSY).deciding
    assert deciding is not None
    assert (deciding.node, deciding.runner_up) == ("n1", "n2")
    assert deciding.decided_by == ("NodeResourcesFit",)


def test_margins_add_up_to_the_gap() -> None:
    deciding = relaxations(ASKED, N1, N2, BUSY).deciding
    assert deciding is not None
    assert deciding.margins is not None
    assert sum(deciding.margins.values()) == deciding.total - deciding.runner_up_total > 0


def test_the_pod_that_stands_in_the_runner_ups_way_is_named() -> None:
    deciding = relaxations(ASKED, N1, N2, BUSY, pod("x").request(cpu="500m").on("n1")).deciding
    assert deciding is not None
    assert [each.subject for each in deciding.instead if each.kind == "pod"] == ["default/busy"]


def test_the_weight_is_named_with_which_the_runner_up_would_have_won() -> None:
    asked = ASKED.prefers_node(1, term(requirement("disk", "In", "ssd")))
    deciding = relaxations(asked, N1, N2.label("disk", "ssd"), BUSY).deciding
    assert deciding is not None
    assert deciding.node == "n2"
    weights = {each.subject: each.value for each in deciding.instead if each.kind == "weight"}
    assert weights["NodeAffinity"] < 2


def test_the_preference_is_named_that_decided() -> None:
    asked = ASKED.prefers_node(1, term(requirement("disk", "In", "ssd")))
    deciding = relaxations(asked, N1, N2.label("disk", "ssd"), BUSY).deciding
    assert deciding is not None
    assert [each.text for each in deciding.instead if each.kind == "preference"] == [
        "no preferred node affinity [0] (weight 1)"
    ]


def test_the_only_feasible_node_has_no_runner_up() -> None:
    deciding = relaxations(ASKED, N1, N2.taint("gpu")).deciding
    assert deciding is not None
    assert (deciding.node, deciding.runner_up, deciding.decided_by) == ("n1", "", ())


def test_the_node_of_a_placed_pod_is_compared_with_the_best_other_one() -> None:
    deciding = relaxations(ASKED, N1, N2, BUSY, placed_on="n2").deciding
    assert deciding is not None
    assert (deciding.node, deciding.runner_up) == ("n2", "n1")


def test_a_placed_pod_that_its_node_would_refuse_now_is_noted() -> None:
    found = relaxations(ASKED, N1, N2.taint("gpu"), placed_on="n2")
    assert found.notes == ("It would not be placed on n2 again: that node is refused now.",)


SCORES = st.tuples(st.integers(0, 300), st.integers(0, 100))


@given(st.lists(SCORES, min_size=2, max_size=6), st.integers(1, MAX_WEIGHT))
def test_the_nearest_weight_is_that_of_a_search_through_all(scores, weight):
    rest, raw = (np.array(column, dtype=np.int64) for column in zip(*scores, strict=True))

    def wins(other: int) -> bool:
        total = rest + other * raw
        return bool(total[1] == total.max() and total[0] < total[1])

    others = [each for each in range(MAX_WEIGHT + 1) if each != weight and wins(each)]
    nearest = min(others, key=lambda other: (abs(other - weight), other), default=None)
    assert nearest_weight(weight, rest, raw, 0, 1) == nearest
