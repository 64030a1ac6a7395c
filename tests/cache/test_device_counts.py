from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cache import device_counts
from cache.device_counts import DeviceCounts
from cache.devices import Devices
from tests.device_builders import (
    DRIVER,
    POOL,
    ResourceClaimBuilder,
    allocated,
    device,
    resource_claim,
    resource_slice,
)

if TYPE_CHECKING:
    import pytest

    from cache.device_objects import ResourceClaim, ResourceSlice


def told(*slices: ResourceSlice, claims: tuple[ResourceClaim, ...] = ()) -> Devices:
    devices = Devices()
    for each in slices:
        devices.slices.changed(None, each)
    for claim in claims:
        devices.claims.changed(None, claim)
    return devices


THREE = (
    resource_slice("s")
    .on_all_nodes()
    .devices(device("a"), device("b").taint("broken"), device("c").taint("odd", effect="None"))
)
HOLDER = resource_claim("holder").request("r", "gpu")


def test_a_device_is_allocated_tainted_or_free() -> None:
    devices = told(THREE.build(), claims=(HOLDER.allocated(allocated("a", request="r")).build(),))
    assert DeviceCounts(devices).read() == {
        (DRIVER, POOL, "allocated"): 1.0,
        (DRIVER, POOL, "tainted"): 1.0,
        (DRIVER, POOL, "free"): 1.0,
    }


def test_a_tainted_device_that_a_claim_uses_is_allocated() -> None:
    devices = told(THREE.build(), claims=(HOLDER.allocated(allocated("b", request="r")).build(),))
    assert (DRIVER, POOL, "tainted") not in DeviceCounts(devices).read()


def test_pools_of_single_nodes_are_added_up() -> None:
    slices = [
        resource_slice(name, pool=name).on_node(name).devices(device("a"), device("b")).build()
        for name in ("n1", "n2", "n3")
    ]
    assert DeviceCounts(told(*slices)).read() == {(DRIVER, "", "free"): 6.0}


def test_only_the_newest_generation_counts() -> None:
    old = (
        resource_slice("old")
        .on_all_nodes()
        .of_pool(generation=1)
        .devices(device("a"), device("b"))
        .build()
    )
    new = resource_slice("new").on_all_nodes().of_pool(generation=2).devices(device("a")).build()
    assert DeviceCounts(told(old, new)).read() == {(DRIVER, POOL, "free"): 1.0}


def test_pools_beyond_a_number_have_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_counts, "MAX_POOLS", 1)
    slices = [
        resource_slice(name, pool=name).on_all_nodes().devices(device("a")).build()
        for name in ("p1", "p2", "p3")
    ]
    counted = DeviceCounts(told(*slices)).read()
    assert counted == {(DRIVER, "p1", "free"): 1.0, (DRIVER, "", "free"): 2.0}


_POOLS = st.sampled_from(["p1", "p2"])


@st.composite
def _slices(draw: st.DrawFn) -> ResourceSlice:
    made = resource_slice(draw(st.sampled_from(["s1", "s2", "s3"])), pool=draw(_POOLS))
    made = made.of_pool(generation=draw(st.integers(1, 2)))
    made = made.on_node("n1") if draw(st.booleans()) else made.on_all_nodes()
    names = draw(st.lists(st.sampled_from("abc"), unique=True))
    return made.devices(*(device(name) for name in names)).build()


@st.composite
def _claims(draw: st.DrawFn) -> ResourceClaimBuilder:
    made = resource_claim(draw(st.sampled_from(["c1", "c2"])))
    if draw(st.booleans()):
        made = made.allocated(allocated(draw(st.sampled_from("abc")), pool=draw(_POOLS)))
    return made


@given(st.lists(st.one_of(_slices(), _claims())))
def test_following_changes_gives_what_counting_anew_gives(
    changes: list[ResourceSlice | ResourceClaimBuilder],
) -> None:
    devices = Devices()
    lived = DeviceCounts(devices)
    for number, each in enumerate(changes):
        if isinstance(each, ResourceClaimBuilder):
            devices.claims.changed(None, each.resource_version(str(number)).build())
        else:
            devices.slices.changed(devices.slices.get(each.metadata.name), each)
        assert lived.read() == DeviceCounts(devices).read()
