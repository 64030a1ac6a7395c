from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.objects import Toleration
from scheduler.relaxations import Budget
from scheduler.relaxations.budget import BudgetSpentError
from tests.builders import PodBuilder, node, pod
from tests.fakes.clock import FakeClock
from tests.scheduler.relaxations.small_clusters import relaxations

MANY = 40_000


def test_a_search_that_runs_out_of_verifications_says_so_and_keeps_what_it_found() -> None:
    asked = pod().request(cpu="8").node_selector("disk", "ssd").host_port(80)
    found = relaxations(asked, node("n1"), budget=Budget(cpu_s=60, verifications=2))
    assert found.verifications == 2
    assert found.notes == (
        "The search ended early: the limit of 2 verifications was reached. "
        "There may be cheaper changes.",
    )
    assert found.groups[0].num_nodes == 1


def test_a_budget_ends_with_its_cpu_time() -> None:
    clock = FakeClock()
    budget = Budget(cpu_s=1.0, clock=clock)
    budget.check()
    clock.advance(1.0)
    with pytest.raises(BudgetSpentError, match="the limit of 1 s of CPU time was reached"):
        budget.check()


def test_a_part_of_a_budget_is_a_share_of_what_is_left() -> None:
    clock = FakeClock()
    budget = Budget(cpu_s=1.0, clock=clock)
    clock.advance(0.5)
    assert budget.part(0.2).left_s == pytest.approx(0.1)


def _with_many_keys() -> PodBuilder:
    keys = {f"key-{at}": "value" for at in range(MANY)}
    asked = pod().build()
    return PodBuilder(replace(asked, spec=replace(asked.spec, node_selector=keys)))


def test_a_pod_with_40_000_keys_costs_a_few_verifications() -> None:
    found = relaxations(_with_many_keys(), node("n1"), node("n2"), budget=Budget(cpu_s=60))
    assert found.verifications < 30
    assert [change.text for change in found.groups[0].relaxations[0].changes] == [
        "drop the nodeSelector with all of its 40000 keys"
    ]


def test_a_pod_with_40_000_tolerations_costs_a_few_verifications() -> None:
    tolerations = tuple(Toleration(key=f"key-{at}", operator="Exists") for at in range(MANY))
    asked = pod().build()
    many = PodBuilder(replace(asked, spec=replace(asked.spec, tolerations=tolerations)))
    found = relaxations(many, node("n1").taint("gpu"), budget=Budget(cpu_s=60))
    assert found.verifications < 30
    assert found.groups[0].relaxations[0].changes[0].text == "tolerate gpu:NoSchedule"
