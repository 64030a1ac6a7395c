"""The short form of ``python -m tests.scenarios.live_policies``."""

from __future__ import annotations

import pytest

from tests.scenarios.live_policies import run

pytestmark = pytest.mark.controlplane


def test_pods_are_placed_by_a_policy_that_is_in_force(controlplane_binaries):
    outcome = run(pods=400, rate=40, changes=12)
    assert outcome.violations == []
    assert outcome.bound == 400
    assert outcome.broken >= 3
    assert any(policy.startswith("schedulingprofile/live@") for policy in outcome.policies)
