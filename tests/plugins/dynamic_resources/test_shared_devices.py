"""Devices of which several claims have a share, and how much a request consumes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.quantity import exact_value
from plugins.dynamic_resources.consumable_capacity import canonical_text
from tests.device_builders import (
    allocated,
    alternative,
    device,
    range_policy,
    resource_claim,
    values_policy,
)
from tests.plugins.dynamic_resources.device_worlds import here, world

TWO_TO_FOUR = range_policy("2", min="2", max="4", step="2")


def shared(name, *, policy=None, **capacity):
    return device(name).capacity(capacity, policy=policy).shared()


def own(name, *, policy=None, **capacity):
    return device(name).capacity(capacity, policy=policy)


def claim(name="a", **capacity):
    return resource_claim(name).request("r", "gpu", capacity=capacity or None)


def everything(name="a", **capacity):
    return resource_claim(name).all_of("r", "gpu", capacity=capacity or None)


def share(name, share_id="s", **consumed):
    return resource_claim(f"o-{name}-{share_id}").allocated(
        allocated(name, share=share_id, consumed=consumed)
    )


# Claims, devices, claims that have shares, and what each claim gets: device and consumed m.
ROWS = {
    "half and half and a little": (
        (claim("a", m="40Gi"), claim("b", m="40Gi"), claim("c", m="1Gi")),
        [shared("d", m="80Gi")],
        [],
        None,
    ),
    "half and half": (
        (claim("a", m="40Gi"), claim("b", m="40Gi")),
        [shared("d", m="80Gi")],
        [],
        [("d", "40Gi"), ("d", "40Gi")],
    ),
    "an unknown capacity": ((claim(m="1"),), [shared("d", n="1")], [], None),
    "an unknown capacity of an own device": ((claim(m="1"),), [own("d", n="1")], [], None),
    "the next device has the capacity": (
        (claim(m="1"),),
        [shared("d", n="1"), shared("e", m="1")],
        [],
        [("e", "1")],
    ),
    "no capacities at all": ((claim("a"), claim("b")), [shared("d")], [], [("d", None)] * 2),
    "nothing asked for is everything": (
        (claim("a"), claim("b")),
        [shared("d", m="1"), shared("e", m="1")],
        [],
        [("d", "1"), ("e", "1")],
    ),
    "nothing asked for, twice": ((claim("a"), claim("b")), [shared("d", m="2")], [], None),
    "as much as is asked for": (
        (claim("a", m="1"), claim("b", m="1")),
        [shared("d", m="2")],
        [],
        [("d", "1"), ("d", "1")],
    ),
    "the default": (
        (claim("a"), claim("b")),
        [shared("d", m="4", policy=TWO_TO_FOUR)],
        [],
        [("d", "2"), ("d", "2")],
    ),
    "a default of zero": (
        (claim("a"), claim("b")),
        [shared("d", m="1", policy=values_policy("0", default="0"))],
        [],
        [("d", "0"), ("d", "0")],
    ),
    "more than the only value": (
        (claim(m="1"),),
        [shared("d", m="1", policy=values_policy("0", default="0"))],
        [],
        None,
    ),
    "at least the minimum": (
        (claim("a", m="1"), claim("b", m="1")),
        [shared("d", m="4", policy=TWO_TO_FOUR)],
        [],
        [("d", "2"), ("d", "2")],
    ),
    "up to the next step": (
        (claim(m="3"),),
        [shared("d", m="4", policy=TWO_TO_FOUR)],
        [],
        [("d", "4")],
    ),
    "over the maximum": ((claim(m="5"),), [shared("d", m="9", policy=TWO_TO_FOUR)], [], None),
    "a maximum without steps": (
        (claim(m="3"),),
        [shared("d", m="9", policy=range_policy(min="2", max="4"))],
        [],
        [("d", "3")],
    ),
    "one of the values": (
        (claim(m="2"),),
        [shared("d", m="4", policy=values_policy("1", "2"))],
        [],
        [("d", "2")],
    ),
    "up to the next value": (
        (claim(m="2"),),
        [shared("d", m="4", policy=values_policy("1", "3"))],
        [],
        [("d", "3")],
    ),
    "over all values": ((claim(m="4"),), [shared("d", m="4", policy=values_policy("1"))], [], None),
    "over the values, but the default": (
        (claim(m="4"),),
        [shared("d", m="4", policy=values_policy("1", default="4"))],
        [],
        [("d", "4")],
    ),
    "more than the device has": ((claim(m="3"),), [shared("d", m="2")], [], None),
    "what is left": (
        (claim(m="1"),),
        [shared("d", m="2")],
        [share("d", m="1")],
        [("d", "1")],
    ),
    "too little is left": (
        (claim(m="2"),),
        [shared("d", m="2"), shared("e", m="2")],
        [share("d", m="1")],
        [("e", "2")],
    ),
    "of several shares": (
        (claim(m="1"),),
        [shared("d", m="3")],
        [share("d", "s", m="1"), share("d", "t", m="1500m")],
        None,
    ),
    "backtracks": (
        (claim("a", m="1"), claim("b", m="2")),
        [shared("d", m="2"), shared("e", m="1")],
        [],
        [("e", "1"), ("d", "2")],
    ),
    "an own device with enough": ((claim(m="1"),), [own("d", m="1")], [], [("d", None)]),
    "an own device with too little": ((claim(m="2"),), [own("d", m="1")], [], None),
    "an own device, twice": ((claim("a", m="1"), claim("b", m="1")), [own("d", m="2")], [], None),
    "taken as a whole before it was shared": (
        (claim(m="1"),),
        [shared("d", m="2")],
        [resource_claim("o").allocated(allocated("d"))],
        None,
    ),
    "shared before it was for one alone": (
        (claim(m="2"),),
        [own("d", m="2")],
        [share("d", m="1")],
        None,
    ),
    "several capacities": (
        (resource_claim("a").request("r", "gpu", capacity={"m": "1", "n": "3"}),),
        [shared("d", m="2", n="2"), shared("e", m="2", n="4")],
        [],
        [("e", "1")],
    ),
    "all devices without the capacity": ((everything(m="1"),), [shared("d", n="1")], [], None),
    "all devices but those without it": (
        (everything(m="2"),),
        [shared("d", m="2"), shared("e")],
        [],
        [("d", "2")],
    ),
    "all devices but those with too little": (
        (everything(m="2"),),
        [shared("d", m="2"), shared("e", m="1")],
        [],
        [("d", "2")],
    ),
    "all devices with what is left": (
        (everything(m="1"),),
        [shared("d", m="1"), shared("e", m="1")],
        [share("d", m="1")],
        [("e", "1")],
    ),
    "all devices, one taken by the claim before": (
        (claim("a", m="1"), everything("b", m="1")),
        [shared("d", m="1"), shared("e", m="1")],
        [],
        None,
    ),
    "steps of zero": (
        (claim(m="3"),),
        [shared("d", m="4", policy=range_policy(min="1", step="0")), shared("e", m="4")],
        [],
        [("e", "3")],
    ),
    "no number": ((claim(m="some"),), [shared("d", m="4")], [], None),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_shares(row):
    claims, devices, users, expected = row
    found = world(here(*devices), used=users).find(*(each.build() for each in claims))
    assert found.error == ""
    if expected is None:
        assert found.devices is None
        return
    results = [result for each in found.results for result in each.devices.results]
    assert [(each.device, each.consumed_capacity.get("m")) for each in results] == expected


def test_a_capacity_that_is_no_number_cannot_be_consumed():
    cluster = world(here(shared("d", m="some"), own("e", m="some"), shared("f", m="4"), "g"))
    wanted = resource_claim().request("r", "any", capacity={"m": "1"})
    assert cluster.find(wanted.build()).devices == [["r=pool/f"]]
    wanted = wanted.request("q", "any", count=2)
    assert cluster.find(wanted.build()).devices == [["r=pool/f", "q=pool/e", "q=pool/g"]]


def test_each_share_has_an_id_of_its_own():
    cluster = world(here(shared("d"), "e"))
    claims = [claim(each).build() for each in "abc"]
    found = cluster.find(*claims)
    ids = [each.devices.results[0].share_id for each in found.results]
    assert ids == ["share-1", "share-2", "share-3"]
    alone = cluster.find(resource_claim().request("r", "gpu", count=2).build())
    assert [each.share_id for each in alone.results[0].devices.results] == ["share-1", None]


def test_all_capacities_of_a_shared_device_are_recorded():
    found = world(here(shared("d", m="2", n="3"))).find(claim(m="1").build())
    assert dict(found.results[0].devices.results[0].consumed_capacity) == {"m": "1", "n": "3"}


def test_a_selector_may_ask_for_shared_devices():
    wanted = resource_claim().request("r", "gpu", "!device.allowMultipleAllocations").build()
    assert world(here(shared("d"), "e")).find(wanted).devices == [["r=pool/e"]]


def test_an_alternative_with_less():
    wanted = resource_claim().first_available(
        "r",
        alternative("x", "gpu", capacity={"m": "3"}),
        alternative("y", "gpu", capacity={"m": "1"}),
    )
    assert world(here(shared("d", m="2"))).find(wanted.build()).devices == [["r/y=pool/d"]]


def test_a_constraint_is_as_before_when_the_capacity_does_not_suffice():
    x = "gpu.example.com/x"
    is_x = 'device.attributes["gpu.example.com"].x == "{}"'
    first = resource_claim("a").request("r", "gpu", is_x.format("cap"), capacity={"m": "2"})
    second = (
        resource_claim("b")
        .first_available(
            "r",
            alternative("x", "gpu", is_x.format("cap"), mode="All", capacity={"m": "2"}),
            alternative("y", "gpu", is_x.format("other")),
        )
        .match(x)
    )
    cluster = world(
        here(shared("d", m="2").attribute("x", "cap"), device("e").attribute("x", "other"))
    )
    assert cluster.find(first.build(), second.build()).devices == [["r=pool/d"], ["r/y=pool/e"]]


TEXTS = {0: "0", 3: "3", 1000: "1k", 1023: "1023", 1024: "1Ki", 1500: "1500", 2000: "2000"} | {
    3 << 30: "3Gi",
    -2048: "-2Ki",
    1 << 62: "4Ei",
}


@pytest.mark.parametrize(("value", "text"), TEXTS.items())
def test_amounts_are_written_as_the_api_writes_them(value, text):
    assert canonical_text(value) == text


@given(st.integers(-(2**62), 2**62))
def test_a_written_amount_is_read_as_itself(value):
    assert exact_value(canonical_text(value)) == value
