"""The short form of ``python -m tests.scenarios.live_policies``."""

from __future__ import annotations

import pytest

from tests.scenarios import live_policies
from tests.scenarios.broken_policies import BROKEN
from tests.scenarios.live_policies import BROKEN_EVERY, wanted_broken

pytestmark = pytest.mark.controlplane

PODS = 900
CHANGES = BROKEN_EVERY * len(BROKEN)
"""So that each kind of broken policy comes once."""


@pytest.fixture(scope="module")
def outcome(controlplane_binaries) -> live_policies.Outcome:
    return live_policies.run(pods=PODS, rate=40, changes=CHANGES)


def test_pods_are_placed_by_a_policy_that_is_in_force(outcome):
    assert outcome.violations == []
    assert any(policy.startswith("schedulingprofile/live-") for policy in outcome.policies)


def test_no_pod_is_lost(outcome):
    assert outcome.bound == PODS


def test_a_third_of_the_changes_is_broken_each_in_its_way(outcome):
    assert outcome.changes == CHANGES
    assert outcome.refused == [each.name for each in BROKEN]


@pytest.mark.parametrize(("changes", "broken"), [(50, 17), (45, 15), (12, 4), (0, 0)])
def test_a_third_is(changes, broken):
    assert wanted_broken(changes) == broken
    assert sum(live_policies.is_broken(number) for number in range(changes)) == broken
