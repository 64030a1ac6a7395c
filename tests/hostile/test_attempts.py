"""What an attempt at a hostile pod may cost, counted in calls: nothing here looks at a clock."""

from __future__ import annotations

import pytest

from cache.pod_info import PodInfo
from tests.bench.large_clusters import kinds, node_name, renamed
from tests.hostile.catalogue import SPECS
from tests.hostile.counted_cycles import CountedCycles
from tests.hostile.tenant import HostileSpec, Tenant

NODES = 200
TENANT = Tenant("berth", tuple(map(node_name, range(NODES))))

MOST_AT_A_TIME = 1_000_000
"""Calls between two looks at the budget: some tenth of a second, where the budget is a quarter."""

MOST_BESIDE = 1000
"""Calls of an attempt at an ordinary pod, once the first has met what is new; some 260 alone."""

FEW = 20
"""Of pods that are alike."""


def pods_of(spec: HostileSpec) -> list[dict]:
    return [each for each in spec.make(TENANT) if each["kind"] == "Pod"][-FEW:]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_budget_is_looked_at_often_and_others_pay_once(spec: HostileSpec) -> None:
    scene = CountedCycles(NODES)
    waiting, _ = scene.take_in(pods_of(spec))
    longest = [scene.decide(info)[2] for info in (waiting[-1:] * 2)]
    _, *beside = [
        scene.decide(PodInfo(renamed(kinds()["nothing"][0], f"ordinary-{index}")))[1]
        for index in range(3)
    ]
    assert max(longest, default=0) <= MOST_AT_A_TIME
    assert max(beside) <= MOST_BESIDE
