"""Which devices were in two claims, found in versions of claims."""

from __future__ import annotations

import math

import pytest

from tests.devices.histories import ClaimVersion
from tests.devices.overlaps import find_overlaps, forgotten, most_held

A, B = ("pool", "a"), ("pool", "b")


def version(number: int, claim: str, *devices: tuple[str, str]) -> ClaimVersion:
    return ClaimVersion(number, claim, claim, "", devices, bool(devices), (), has_finalizer=True)


@pytest.mark.parametrize(
    ("versions", "overlaps"),
    [
        pytest.param([version(1, "x", A), version(2, "y", B)], [], id="two devices"),
        pytest.param(
            [version(1, "x", A), version(2, "x"), version(3, "y", A)], [], id="one after the other"
        ),
        pytest.param(
            [version(1, "x", A), version(2, "x", A), version(3, "x", A)], [], id="the same claim"
        ),
        pytest.param(
            [version(1, "x", A), version(2, "y", A)],
            [(A, "x", "y", 1, 2, math.inf, "")],
            id="for ever",
        ),
        pytest.param(
            [version(1, "x", A), version(2, "y", A), version(3, "y")],
            [(A, "x", "y", 1, 2, 3, "y")],
            id="the second gives it back",
        ),
        pytest.param(
            [version(1, "x", A), version(2, "y", A), version(3, "x"), version(4, "z", A)],
            [(A, "x", "y", 1, 2, 3, "x"), (A, "y", "z", 2, 4, math.inf, "")],
            id="the first gives it back, a third takes it",
        ),
        pytest.param(
            [version(1, "x", A), version(2, "y", A), version(3, "z", A), version(4, "x")],
            [
                (A, "x", "y", 1, 2, 4, "x"),
                (A, "x", "z", 1, 3, 4, "x"),
                (A, "y", "z", 2, 3, math.inf, ""),
            ],
            id="three claims",
        ),
    ],
)
def test_a_device_in_two_claims_is_found(versions, overlaps):
    found = find_overlaps(versions)
    assert [
        (x.device, x.first, x.second, x.first_since, x.since, x.until, x.ended_by) for x in found
    ] == overlaps


def test_the_most_devices_in_use_are_those_of_one_moment():
    versions = [version(1, "x", A, B), version(2, "x"), version(3, "y", A)]
    assert most_held(versions) == 2


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        pytest.param([version(1, "x", A), version(2, "y", A)], set(), id="a race"),
        pytest.param(
            [version(1, "x", A), version(2, "y", A), version(3, "x"), version(4, "z", A)],
            {("z", A)},
            id="after one of two has left",
        ),
        pytest.param(
            [version(1, "x", A), version(2, "x"), version(3, "y", A)], set(), id="free indeed"
        ),
    ],
)
def test_a_device_that_a_set_of_devices_has_forgotten_is_found(versions, found):
    assert forgotten(versions) == found
