from __future__ import annotations

import pytest

from cache.device_objects import DeviceCondition
from plugins.dynamic_resources.binding_conditions import (
    DeviceBindingFailedError,
    is_ready,
    is_timed_out,
)
from tests.device_builders import allocated, resource_claim

AT = "2025-01-01T00:00:00Z"
AT_S = 1735689600.0
YES, NO = DeviceCondition("Attached", "True"), DeviceCondition("Attached", "False")
CLAIM = resource_claim("c").allocated(
    allocated("nic", conditions=("Attached",), failures=("Broken",)), at=AT
)
BROKEN = DeviceCondition("Broken", "True", "Dead", 'no "link"')


@pytest.mark.parametrize(
    ("claim", "ready"),
    [
        pytest.param(resource_claim("c"), False, id="not allocated"),
        pytest.param(resource_claim("c").allocated(allocated("nic")), True, id="no conditions"),
        pytest.param(CLAIM, False, id="nothing reported"),
        pytest.param(CLAIM.condition("other", YES), False, id="reported of another device"),
        pytest.param(CLAIM.condition("nic", YES, pool="p2"), False, id="of another pool"),
        pytest.param(CLAIM.condition("nic", NO), False, id="false"),
        pytest.param(CLAIM.condition("nic", DeviceCondition("X", "True")), False, id="another"),
        pytest.param(CLAIM.condition("nic", YES), True, id="true"),
        pytest.param(CLAIM.condition("nic", YES, share="s"), True, id="shares are not compared"),
    ],
)
def test_a_claim_is_ready_when_all_conditions_are_true(claim, ready) -> None:
    assert is_ready(claim.build()) is ready


def test_a_failure_condition_is_an_error() -> None:
    claim = CLAIM.condition("nic", YES, BROKEN).build()
    why = r'^device binding failed: claim=c, reason=Dead, message="no \\"link\\""$'
    with pytest.raises(DeviceBindingFailedError, match=why):
        is_ready(claim)


def test_a_failure_condition_that_is_false_is_none() -> None:
    assert is_ready(CLAIM.condition("nic", YES, DeviceCondition("Broken", "False")).build())


@pytest.mark.parametrize(
    ("claim", "after_s", "timed_out"),
    [
        pytest.param(CLAIM, 600.0, False, id="to the second"),
        pytest.param(CLAIM, 600.5, True, id="later"),
        pytest.param(
            resource_claim("c").allocated(allocated("nic"), at=AT), 1e6, False, id="no conditions"
        ),
        pytest.param(
            resource_claim("c").allocated(allocated("nic", conditions=("Attached",))),
            1e6,
            False,
            id="nobody knows since when",
        ),
        pytest.param(
            resource_claim("c").allocated(allocated("n", conditions=("A",)), at="soon"),
            1e6,
            False,
            id="no time at all",
        ),
    ],
)
def test_a_claim_times_out_after_its_allocation(claim, after_s, timed_out) -> None:
    assert is_timed_out(claim.build(), 600.0, AT_S + after_s) is timed_out
