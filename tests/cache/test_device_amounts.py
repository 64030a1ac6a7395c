"""Every quantity that the search may compare is among those that are read beforehand."""

from __future__ import annotations

from cache.device_amounts import claim_amounts, slice_amounts
from tests.device_builders import (
    allocated,
    alternative,
    device,
    range_policy,
    resource_claim,
    resource_slice,
    values_policy,
)


def test_all_amounts_of_a_slice() -> None:
    ranged = device("a").capacity(memory="1", policy=range_policy("2", min="3", max="4", step="5"))
    listed = device("b").capacity(memory="6", policy=values_policy("7", "8"))
    counted = device("c").consumes("set", memory="9")
    known = resource_slice("s").counters("set", memory="10").devices(ranged, listed, counted)
    amounts = [each for each in slice_amounts(known.build()) if each is not None]
    assert sorted(map(int, amounts)) == list(range(1, 11))


def test_all_amounts_of_a_claim() -> None:
    known = (
        resource_claim("c")
        .request("r", "gpu", capacity={"memory": "1"})
        .first_available("f", alternative("a", "gpu", capacity={"memory": "2"}))
        .allocated(allocated("gpu", share="s", consumed={"memory": "3"}))
    )
    assert sorted(map(str, claim_amounts(known.build()))) == ["1", "2", "3"]


def test_a_claim_without_capacities_has_no_amounts() -> None:
    assert not list(claim_amounts(resource_claim("c").request("r", "gpu").build()))
