"""The benchmark of pods with claims, at a size at which it only has to work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache.allocated_devices import device_use
from tests.bench import device_clusters, device_decisions
from tests.bench.device_clusters import KINDS
from tests.bench.device_decisions import ONE_KIND, SERIES, Point
from tests.bench.results import Results

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_claim_is_allocated(kind: str) -> None:
    measured = device_decisions.measure(Point("nodes", 12, 8), kind, 5, 60.0, 0)
    assert measured.decisions == 5
    assert min(measured.cold_ms, measured.first_ms, measured.cycle_us) > 0


def test_claims_that_are_allocated_have_devices_of_their_own() -> None:
    claims = list(device_clusters.allocated_claims(30, 4, 8))
    taken = {device for claim in claims for device in device_use(claim).devices}
    assert len(taken) == len(claims) == 30


def test_every_cluster_has_devices_for_all_claims() -> None:
    for point in SERIES:
        assert point.allocated + 10 * point.claims < point.nodes * point.devices


@pytest.mark.usefixtures("interpreter_as_it_is")
def test_the_command_adds_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    size = ["--scale", "0.004", "--decisions", "2", "--json", str(path)]
    assert device_decisions.main([*size, "--series", "claims", "--kinds", ONE_KIND]) == 0
    measured = {each.claims for each in Results.load(path).device_decisions}
    assert measured == {1, 2, 4, 8, 16, 32}
