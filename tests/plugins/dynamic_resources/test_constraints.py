"""Constraints on the devices of a claim, with what kube-scheduler's forget."""

from __future__ import annotations

import pytest

from cache.device_objects import DeviceAttribute
from tests.device_builders import DRIVER, alternative, device, resource_claim, version
from tests.plugins.dynamic_resources.device_worlds import here, world

X = f"{DRIVER}/x"
Y = f"{DRIVER}/y"


def with_x(*values, name="x"):
    """Return devices d0, d1, ... with values of an attribute; None for a device without it."""
    return [
        device(f"d{index}") if value is None else device(f"d{index}").attribute(name, value)
        for index, value in enumerate(values)
    ]


def two(*requests):
    """Return a claim with the requests r and q, and a constraint of equal x."""
    return resource_claim().request("r", "gpu").request("q", "gpu").match(X, *requests)


def is_x(value):
    return f'device.attributes["{DRIVER}"].x == {value}'


MATCH = {
    "equal": (two(), with_x(1, 1), ["r=d0", "q=d1"]),
    "different integers": (two(), with_x(1, 2), None),
    "different texts": (two(), with_x("a", "b"), None),
    "different booleans": (two(), with_x(True, False), None),
    "equal booleans": (two(), with_x(False, False), ["r=d0", "q=d1"]),
    "different versions": (two(), with_x(version("1.0.0"), version("1.0.1")), None),
    "equal versions": (two(), with_x(version("1.0.0"), version("1.0.0")), ["r=d0", "q=d1"]),
    "a version and a text": (two(), with_x(version("1.0.0"), "1.0.0"), None),
    "an integer and a boolean": (two(), with_x(1, True), None),
    "no attribute": (two(), with_x(None, None), None),
    "one without the attribute": (two(), with_x(None, 1, 1), ["r=d1", "q=d2"]),
    "backtracks": (two(), with_x(1, 2, 2), ["r=d1", "q=d2"]),
    "with domain": (two(), with_x(1, 1, name=X), ["r=d0", "q=d1"]),
    "with and without domain": (
        two(),
        [device("d0").attribute(X, 1), device("d1").attribute("x", 1)],
        ["r=d0", "q=d1"],
    ),
    "of another domain": (two(), with_x(1, 1, name="other.com/x"), None),
    "for requests that are named": (
        two("r", "p").request("p", "gpu"),
        with_x(1, 2, 1),
        ["r=d0", "q=d1", "p=d2"],
    ),
    "for one request": (two("r"), with_x(1, 2), ["r=d0", "q=d1"]),
    "in one request": (
        resource_claim().request("r", "gpu", count=3).match(X),
        with_x(1, 2, 2, 1, 2),
        ["r=d1", "r=d2", "r=d4"],
    ),
    "two attributes": (
        two().match(Y),
        [
            device(f"d{i}").attribute("x", x).attribute("y", y)
            for i, (x, y) in enumerate(((1, 1), (1, 2), (2, 2), (1, 1)))
        ],
        ["r=d0", "q=d3"],
    ),
    "for a list by the name of its request": (
        resource_claim()
        .request("r", "gpu", is_x(1))
        .first_available("q", alternative("a", "gpu", is_x(2)), alternative("b", "gpu", "true"))
        .match(X, "r", "q"),
        with_x(1, 2, 1),
        ["r=d0", "q/b=d2"],
    ),
    "for one alternative": (
        resource_claim()
        .request("r", "gpu", is_x(1))
        .first_available("q", alternative("a", "gpu", is_x(2)), alternative("b", "gpu", "true"))
        .match(X, "r", "q/a"),
        with_x(1, 2, 2),
        ["r=d0", "q/b=d1"],
    ),
    "values are not shared by claims": (
        resource_claim().request("r", "gpu", is_x(1)).match(X),
        with_x(1, 2),
        ["r=d0"],
    ),
}

DISTINCT = {
    "different": (
        resource_claim().request("r", "gpu").request("q", "gpu").distinct(X),
        with_x(1, 1, 2),
        ["r=d0", "q=d2"],
    ),
    "equal": (
        resource_claim().request("r", "gpu").request("q", "gpu").distinct(X),
        with_x("a", "a"),
        None,
    ),
    "no attribute": (resource_claim().request("r", "gpu").distinct(X), with_x(None), None),
    "an integer and a boolean": (
        resource_claim().request("r", "gpu").request("q", "gpu").distinct(X),
        with_x(1, True),
        ["r=d0", "q=d1"],
    ),
    "for requests that are named": (
        resource_claim().request("r", "gpu").request("q", "gpu").distinct(X, "r"),
        with_x(1, 1),
        ["r=d0", "q=d1"],
    ),
    "two devices of a request": (
        resource_claim().request("r", "gpu", count=2).distinct(X),
        with_x(1, 1, 2),
        ["r=d0", "r=d2"],
    ),
    "the third device of a request may equal the first": (
        resource_claim().request("r", "gpu", count=3).distinct(X),
        with_x("a", "b", "a"),
        ["r=d0", "r=d1", "r=d2"],
    ),
    "the value is forgotten when a device is given back": (
        resource_claim()
        .request("r", "gpu", count=2)
        .request("q", "gpu", f'device.attributes["{DRIVER}"].x == "b"')
        .distinct(X, "r"),
        with_x("a", "b", "a"),
        ["r=d0", "r=d2", "q=d1"],
    ),
    "with alternatives, by the name of the request": (
        resource_claim()
        .first_available("r", alternative("a", "gpu", is_x(1)), alternative("b", "gpu"))
        .first_available("q", alternative("a", "gpu", is_x(1)), alternative("b", "gpu"))
        .distinct(X, "r", "q"),
        with_x(1, 1, 2),
        ["r/a=d0", "q/b=d2"],
    ),
    "two constraints at once": (
        resource_claim().request("r", "gpu").request("q", "gpu").distinct(X).match(Y),
        [
            device(f"d{i}").attribute("x", x).attribute("y", y)
            for i, (x, y) in enumerate(((1, 1), (2, 2), (2, 1)))
        ],
        ["r=d0", "q=d2"],
    ),
    "a shared device twice": (
        resource_claim().request("r", "gpu").request("q", "gpu").distinct(X),
        [each.shared() for each in with_x(1, 2)],
        ["r=d0", "q=d1"],
    ),
    "one shared device": (
        resource_claim().request("r", "gpu").request("q", "gpu").distinct(X),
        [each.shared() for each in with_x(1)],
        None,
    ),
}


def _check(claim, devices, expected):
    found = world(here(*devices)).find(claim.build())
    assert found.error == ""
    if expected is None:
        assert found.devices is None
    else:
        assert [each.replace("pool/", "") for each in found.devices[0]] == expected


@pytest.mark.parametrize(("claim", "devices", "expected"), MATCH.values(), ids=MATCH)
def test_equal_values(claim, devices, expected):
    _check(claim, devices, expected)


@pytest.mark.parametrize(("claim", "devices", "expected"), DISTINCT.values(), ids=DISTINCT)
def test_distinct_values(claim, devices, expected):
    _check(claim, devices, expected)


def test_a_constraint_binds_each_claim_alone():
    claims = [resource_claim(name).request("r", "gpu").match(X).build() for name in "ab"]
    found = world(here(*with_x(1, 2))).find(*claims)
    assert found.devices == [["r=pool/d0"], ["r=pool/d1"]]


@pytest.mark.parametrize("kind", ["match", "distinct"])
def test_a_constraint_in_the_way_of_all_devices_is_an_error(kind):
    claim = getattr(resource_claim("c").all_of("r", "gpu"), kind)(X).build()
    values = (1, 2) if kind == "match" else (1, 1)
    assert world(here(*with_x(*values))).find(claim).error == (
        f"claim default/c, request r: cannot add device {DRIVER}/pool/d1 because a claim "
        "constraint would not be satisfied"
    )


def test_an_attribute_without_value_fails_in_a_selector():
    claim = resource_claim("c").request("r", "gpu").match(X).build()
    found = world(here(*with_x(DeviceAttribute()))).find(claim)
    assert found.error == (
        "class gpu: selector #0: CEL runtime error: attribute x: unsupported attribute value"
    )


def test_an_attribute_without_value_matches_nothing_but_itself_alone():
    devices = with_x(DeviceAttribute(), DeviceAttribute())
    one = resource_claim().request("r", "any").match(X)
    assert world(here(*devices)).find(one.build()).devices == [["r=pool/d0"]]
    assert world(here(*devices)).find(one.request("q", "any").build()).devices is None
