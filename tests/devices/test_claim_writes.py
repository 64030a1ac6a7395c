"""What changed from one version of a claim to another."""

from __future__ import annotations

import pytest

from tests.devices.claim_writes import (
    ALLOCATION,
    DEALLOCATION,
    FINALIZER,
    RELEASE,
    RESERVATION,
    changes,
)
from tests.devices.histories import ClaimVersion

NEW = ClaimVersion(
    1, "uid", "claim", "pod", (), is_allocated=False, reserved=(), has_finalizer=False
)
PROTECTED = NEW._replace(version=2, has_finalizer=True)
ALLOCATED = PROTECTED._replace(
    version=3, devices=(("pool", "a"),), is_allocated=True, reserved=("pod",)
)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        pytest.param(NEW, PROTECTED, [FINALIZER], id="finalizer"),
        pytest.param(PROTECTED, ALLOCATED, [ALLOCATION, RESERVATION], id="allocation"),
        pytest.param(ALLOCATED, ALLOCATED._replace(reserved=()), [RELEASE], id="release"),
        pytest.param(
            ALLOCATED,
            ALLOCATED._replace(reserved=("pod", "other")),
            [RESERVATION],
            id="another pod",
        ),
        pytest.param(ALLOCATED, PROTECTED, [DEALLOCATION, RELEASE], id="deallocation"),
        pytest.param(
            ALLOCATED,
            ALLOCATED._replace(devices=(("pool", "b"),)),
            [DEALLOCATION, ALLOCATION],
            id="another device",
        ),
        pytest.param(ALLOCATED, ALLOCATED._replace(version=9), [], id="something else"),
    ],
)
def test_what_changed(before, after, found):
    assert changes(before, after) == found
