"""Pods with device claims, one after another: berth and kube-scheduler's plugin write the same."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.binaries import find_or_build
from tests.parity.device_schedules import SCHEDULES, STEPS, compare, deleted, without_pod
from tests.plugins.dynamic_resources.device_world import the_loop

if TYPE_CHECKING:
    from collections.abc import Iterator

FEW = 25


@pytest.fixture(scope="module")
def loop() -> Iterator[None]:
    """Close the loop of the worlds."""
    yield
    the_loop().close()
    the_loop.cache_clear()


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest) -> None:
    """Build the oracle if it is missing, and let the user see it happen."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        find_or_build(["oracle"])


@pytest.mark.controlplane
@pytest.mark.usefixtures("built", "loop")
def test_all_claims_are_the_same_after_each_step() -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    counts = compare(FEW, seed)
    assert counts[SCHEDULES] >= FEW
    assert counts[STEPS] > FEW


USED = {
    "metadata": {"finalizers": ["f"]},
    "status": {"allocation": {}, "reservedFor": [{"uid": "a"}]},
}
SHARED = {
    "metadata": {"finalizers": ["f"]},
    "status": {"allocation": {}, "reservedFor": [{"uid": "a"}, {"uid": "b"}]},
}
OWNED = {"metadata": {"ownerReferences": [{"uid": "a"}]}, "status": {}}


@pytest.mark.parametrize(
    ("claim", "after"),
    [
        pytest.param(USED, {"metadata": {"finalizers": []}, "status": {}}, id="its only user"),
        pytest.param(
            SHARED,
            {**SHARED, "status": {"allocation": {}, "reservedFor": [{"uid": "b"}]}},
            id="one of two users",
        ),
        pytest.param(OWNED, None, id="made for the pod"),
        pytest.param({**USED, "metadata": {"deletionTimestamp": "t"}}, None, id="deleted before"),
    ],
)
def test_a_pod_that_ends_frees_its_claims(
    claim: dict[str, object], after: dict[str, object] | None
) -> None:
    assert dict(without_pod({"c": claim}, "a")) == {"c": after}


def test_a_pod_that_ends_leaves_the_claims_of_others() -> None:
    assert dict(without_pod({"c": USED, "d": OWNED}, "z")) == {}


def test_a_claim_in_use_stays_until_its_pods_have_ended() -> None:
    left = deleted(USED)
    assert left is not None
    assert left["metadata"]["deletionTimestamp"]
    assert deleted(OWNED) is None
