"""Who has to go from a node, and for whom."""

from __future__ import annotations

import pytest

from cache.objects import LabelSelector
from cache.workload_objects import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    WorkloadMeta,
)
from tests.builders import PodBuilder, node, pod
from tests.plugins.default_preemption.stage import Stage

NODE = node("n1").capacity(cpu="4")
PREEMPTOR = pod("web").priority(100)


def budget(
    allowed: int, *, name: str = "pdb", disrupted: tuple[str, ...] = (), **labels: str
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        WorkloadMeta(name, "default"),
        PodDisruptionBudgetSpec(LabelSelector(match_labels=labels)),
        PodDisruptionBudgetStatus(allowed, dict.fromkeys(disrupted, "2025-01-01T00:00:00Z")),
    )


def low(name: str, priority: int = 0, *, cpu: str = "1", second: int = 0) -> PodBuilder:
    """Return a pod on the node; ``second`` is when it started."""
    start = f"2025-01-01T00:00:{second:02}Z"
    return pod(name).priority(priority).request(cpu=cpu).started(start).on("n1")


def test_as_few_go_as_will_do() -> None:
    stage = Stage(NODE, *(low(f"low-{i}", second=i) for i in range(4)))
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {"n1": (["low-2", "low-3"], 0)}


def test_the_least_important_go_and_are_listed_last() -> None:
    stage = Stage(NODE, low("a", 7), low("b", 9), low("c", 1), low("d", 3))
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {"n1": (["d", "c"], 0)}


def test_of_equal_priority_those_that_ran_longest_stay() -> None:
    stage = Stage(NODE, low("new", second=9), low("old", second=1, cpu="3"))
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (["new"], 0)}


def test_a_small_pod_is_spared_where_a_big_one_more_important_was_not() -> None:
    stage = Stage(NODE, low("big", 5, cpu="3"), low("small", 1, cpu="1"))
    assert stage.victims(PREEMPTOR.request(cpu="3")) == {"n1": (["big"], 0)}


@pytest.mark.parametrize("priority", [100, 101])
def test_pods_of_the_same_or_a_higher_priority_stay(priority: int) -> None:
    stage = Stage(NODE, low("high", priority, cpu="3"), low("low", 0, cpu="1"))
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {}


def test_a_node_without_lower_pods_is_no_candidate() -> None:
    stage = Stage(NODE, low("equal", 100, cpu="4"))
    found = stage.survey(PREEMPTOR.request(cpu="1"))
    assert found.message == (
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_pod_without_priority_preempts_only_negative_ones() -> None:
    stage = Stage(NODE, low("zero", 0, cpu="2"), low("below", -1, cpu="2"))
    assert stage.victims(pod("web").request(cpu="1")) == {"n1": (["below"], 0)}


def test_ports_are_freed_by_who_holds_them() -> None:
    stage = Stage(NODE, low("other", cpu="1"), low("holder", cpu="1", second=5).host_port(80))
    assert stage.victims(PREEMPTOR.host_port(80)) == {"n1": (["holder"], 0)}


def test_who_keeps_the_pod_away_goes_and_nobody_else() -> None:
    hostile = low("hostile", cpu="0").label("app", "db").pod_anti_affinity("zone", app="web")
    stage = Stage(NODE.label("zone", "a"), hostile, low("calm"))
    assert stage.victims(PREEMPTOR.label("app", "web")) == {"n1": (["hostile"], 0)}


def test_a_pod_that_spreads_takes_the_place_of_one_of_its_kind() -> None:
    stage = Stage(
        NODE.label("zone", "a"),
        node("n2").label("zone", "b").taint("closed"),
        low("one", cpu="0").label("app", "web"),
    )
    spread = PREEMPTOR.label("app", "web").spread("zone", app="web")
    assert stage.victims(spread) == {"n1": (["one"], 0)}


# --- budgets ----------------------------------------------------------------------------------


def test_pods_that_a_budget_protects_are_spared_first() -> None:
    protected = low("protected", 0, cpu="2").label("app", "db")
    stage = Stage(NODE, protected, low("free", 50, cpu="2"), budget(0, app="db"))
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {"n1": (["free"], 0)}


def test_a_violation_is_counted_when_there_is_no_other_way() -> None:
    pods = [low(f"p{i}", second=i).label("app", "db") for i in range(4)]
    stage = Stage(NODE, *pods, budget(0, app="db"))
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {"n1": (["p2", "p3"], 2)}


def test_what_a_budget_allows_is_used_up_by_the_most_important_first() -> None:
    pods = [low(f"p{i}", 9 - i).label("app", "db") for i in range(4)]
    stage = Stage(NODE, *pods, budget(1, app="db"))
    # p0 may go; p1 to p3 would violate the budget and are spared first.
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (["p0"], 0)}
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {"n1": (["p0", "p3"], 1)}


def test_a_pod_that_went_by_the_budget_already_violates_nothing() -> None:
    gone = low("gone", cpu="4").label("app", "db")
    stage = Stage(NODE, gone, budget(0, disrupted=("gone",), app="db"))
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (["gone"], 0)}


def test_one_of_two_budgets_is_enough_for_a_violation() -> None:
    both = low("both", cpu="4").label("app", "db").label("tier", "x")
    stage = Stage(NODE, both, budget(5, app="db"), budget(0, name="other", tier="x"))
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (["both"], 1)}


def test_a_budget_of_another_namespace_protects_nobody() -> None:
    theirs = pod("theirs", namespace="other").label("app", "db").request(cpu="4").on("n1")
    stage = Stage(NODE, theirs, budget(0, app="db"))
    assert stage.victims(PREEMPTOR.request(cpu="1")) == {"n1": (["theirs"], 0)}


# --- nominated pods ---------------------------------------------------------------------------


def test_room_that_an_equal_pod_is_nominated_for_is_not_taken() -> None:
    nominated = pod("first").priority(100).request(cpu="2").nominated("n1")
    stage = Stage(NODE, low("a", second=1, cpu="2"), low("b", second=2, cpu="2"), nominated)
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {"n1": (["a", "b"], 0)}


def test_a_pod_of_lower_priority_that_is_nominated_is_not_minded() -> None:
    nominated = pod("first").priority(99).request(cpu="2").nominated("n1")
    stage = Stage(NODE, low("a", second=1, cpu="2"), low("b", second=2, cpu="2"), nominated)
    assert stage.victims(PREEMPTOR.request(cpu="2")) == {"n1": (["b"], 0)}
