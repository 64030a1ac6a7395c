from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.disruption_budgets import DisruptionBudgets
from cache.objects import LabelSelector, LabelSelectorRequirement
from cache.workload_objects import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    WorkloadMeta,
)
from tests.builders import pod

APP_A = LabelSelector(match_labels={"app": "a"})


def budget(
    selector: LabelSelector | None = APP_A,
    *,
    name: str = "pdb",
    allowed: int = 0,
    disrupted: dict[str, str] | None = None,
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        WorkloadMeta(name, "default"),
        PodDisruptionBudgetSpec(selector),
        PodDisruptionBudgetStatus(allowed, disrupted or {}),
    )


def test_budgets_are_found_by_namespace() -> None:
    budgets = DisruptionBudgets()
    budgets.budget_changed(None, budget(allowed=2))
    (found,) = budgets.in_namespace("default")
    assert (found.name, found.disruptions_allowed) == ("pdb", 2)
    assert budgets.in_namespace("other") == ()


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(None, id="no-selector"),
        pytest.param(LabelSelector(), id="empty-selector"),
        pytest.param(
            LabelSelector(match_expressions=(LabelSelectorRequirement("a", "Like", ("b",)),)),
            id="unknown-operator",
        ),
    ],
)
def test_a_budget_that_selects_nothing_protects_nothing(selector: LabelSelector | None) -> None:
    budgets = DisruptionBudgets()
    budgets.budget_changed(None, budget(selector))
    assert budgets.in_namespace("default") == ()


def test_all_budgets_are_kept_as_the_api_has_them() -> None:
    budgets = DisruptionBudgets()
    empty, other = budget(LabelSelector()), budget(name="other")
    for each in (empty, other):
        budgets.budget_changed(None, each)
    budgets.budget_changed(other, None)
    assert budgets.objects("default") == (empty,)
    budgets.budget_changed(empty, None)
    assert budgets.objects("default") == ()


def test_a_budget_is_replaced_and_forgotten() -> None:
    budgets = DisruptionBudgets()
    old, new = budget(allowed=1), budget(allowed=0)
    budgets.budget_changed(None, old)
    budgets.budget_changed(None, budget(name="other"))
    budgets.budget_changed(old, new)
    assert {b.name: b.disruptions_allowed for b in budgets.in_namespace("default")} == {
        "pdb": 0,
        "other": 0,
    }
    budgets.budget_changed(new, None)
    assert [b.name for b in budgets.in_namespace("default")] == ["other"]
    assert sum(map(len, budgets._by_namespace.values())) == 1


def test_the_version_grows_with_what_matters_only() -> None:
    budgets = DisruptionBudgets()
    first = budget()
    budgets.budget_changed(None, first)
    version = budgets.version
    again = replace(first, metadata=WorkloadMeta("pdb", "default", "u", "7"))
    budgets.budget_changed(first, again)
    assert budgets.version == version
    budgets.budget_changed(again, budget(allowed=1))
    assert budgets.version > version


@pytest.mark.parametrize(
    ("labels", "disrupted", "counts"),
    [
        pytest.param({"app": "a"}, {}, True, id="selected"),
        pytest.param({"app": "b"}, {}, False, id="not-selected"),
        pytest.param({"app": "a"}, {"victim": "2025-01-01T00:00:00Z"}, False, id="counted-already"),
    ],
)
def test_whose_going_counts(
    labels: dict[str, str], disrupted: dict[str, str], counts: bool
) -> None:
    budgets = DisruptionBudgets()
    budgets.budget_changed(None, budget(disrupted=disrupted))
    victim = pod("victim")
    for key, value in labels.items():
        victim = victim.label(key, value)
    assert budgets.in_namespace("default")[0].counts(victim.build()) is counts


def test_a_pod_without_labels_is_protected_by_nobody() -> None:
    budgets = DisruptionBudgets()
    absent = LabelSelector(match_expressions=(LabelSelectorRequirement("x", "DoesNotExist"),))
    budgets.budget_changed(None, budget(absent))
    (found,) = budgets.in_namespace("default")
    assert not found.counts(pod("victim").build())
    assert found.counts(pod("victim").label("app", "a").build())
