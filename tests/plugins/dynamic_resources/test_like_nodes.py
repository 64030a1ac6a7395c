"""Nodes that a search cannot tell apart: one of them is searched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.devices import Devices
from plugins.dynamic_resources.allocator import Allocator
from plugins.dynamic_resources.deadline import Deadline
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.pools import PoolIndex
from tests.builders import node
from tests.device_builders import (
    DRIVER,
    allocated,
    alternative,
    device,
    resource_claim,
    resource_slice,
)
from tests.plugins.dynamic_resources.device_worlds import GPU, SELECTORS

X = f'device.attributes["{DRIVER}"].x'
PAIR = (
    resource_claim("pair")
    .request("one", "gpu", f"{X} > 0")
    .request("two", "gpu")
    .match(f"{DRIVER}/x")
    .build()
)


class Steps(Deadline):
    """A deadline that never passes and counts how often it is asked."""

    def __init__(self):
        super().__init__(0.0, lambda: 0.0)
        self.count = 0

    def check(self):
        self.count += 1


def published(number, *devices, name="pool"):
    return (
        resource_slice(f"{name}-{number}", pool=f"{name}-{number}")
        .on_node(f"n{number}")
        .devices(*devices)
    )


def things(number, *xs):
    """Return devices with an attribute, each with a name and a UUID of its own."""
    return [
        device(f"d-{number}-{place}").attribute("x", x).attribute("uuid", f"{number}/{place}")
        for place, x in enumerate(xs)
    ]


def find(slices, claims, used=(), *, one_by_one=False):
    """Return what each node gets, and the steps of its search."""
    devices = Devices()
    devices.classes.changed(None, GPU.build())
    for each in slices:
        devices.slices.changed(None, each.build())
    for number, each in enumerate(used):
        claim = resource_claim(f"used-{number}").uid(f"used-{number}")
        devices.claims.begin_flight(claim.allocated(each).build())

    def allocator():
        index = PoolIndex(devices.slices.view())
        state = devices.allocated()
        index.kept.follow(state, devices.device_changes)
        classes = devices.classes.get
        return Allocator(claims, state, index, classes, SELECTORS, lambda: "share")

    shared = allocator()
    results, steps = [], []
    for name in sorted({each.build().spec.node_name or "" for each in slices}):
        deadline = Steps()
        try:
            by = allocator() if one_by_one else shared
            results.append(by.allocate(node(name).build(), deadline, prune=not one_by_one))
        except AllocationError as error:
            results.append(str(error))
        steps.append(deadline.count)
    return results, steps


def names(results):
    return [each.device for claim in results for each in claim.devices.results]


def test_the_second_node_is_not_searched_and_gets_devices_of_its_own():
    (first, second), (searched, not_searched) = find(
        [published(1, *things(1, 0, 1, 1)), published(2, *things(2, 0, 1, 1))], [PAIR]
    )
    assert searched > 0
    assert not_searched == 0
    assert names(first) == ["d-1-1", "d-1-2"]
    assert names(second) == ["d-2-1", "d-2-2"]


def test_that_nothing_is_found_holds_for_nodes_that_are_alike():
    results, (searched, not_searched) = find(
        [published(1, *things(1, 0, 1)), published(2, *things(2, 0, 1))], [PAIR]
    )
    assert results == [None, None]
    assert searched > 0
    assert not_searched == 0


def tainted(number):
    first, *others = things(number, 1, 1, 1)
    return [first.taint("t"), *others]


def counted(number, left, *drawn):
    devices = things(number, *([1] * len(drawn)))
    devices = [each.consumes("c", m=amount) for each, amount in zip(devices, drawn, strict=True)]
    counters = resource_slice(f"counters-{number}", pool=f"pool-{number}").on_node(f"n{number}")
    return [
        published(number, *devices).of_pool(slices=2),
        counters.of_pool(slices=2).counters("c", m=left),
    ]


def plain(number, *xs):
    return [published(number, *things(number, *xs))]


# What two nodes publish, and what is in use on the second.
DIFFERENT = {
    "an attribute that is asked for": (plain(1, 1, 1, 1), plain(2, 0, 1, 1), ()),
    "a value that has to match": (plain(1, 1, 1), plain(2, 1, 2), ()),
    "the order of devices": (plain(1, 1, 0, 1), plain(2, 0, 1, 1), ()),
    "a taint": (plain(1, 1, 1, 1), [published(2, *tainted(2))], ()),
    "one device less": (plain(1, 1, 1, 1), plain(2, 1, 1), ()),
    "a capacity": (
        plain(1, 1, 1),
        [published(2, *(each.capacity(m="1") for each in things(2, 1, 1)))],
        (),
    ),
    "devices that may be shared": (
        plain(1, 1, 1),
        [published(2, *(each.shared() for each in things(2, 1, 1)))],
        (),
    ),
    "a device in use": (plain(1, 1, 1), plain(2, 1, 1), [allocated("d-2-0", pool="pool-2")]),
    "the amount of a counter": (counted(1, "2", "1", "1"), counted(2, "1", "1", "1"), ()),
    "what draws from a counter": (counted(1, "2", "1", "1"), counted(2, "2", "1", "2"), ()),
}


@pytest.mark.parametrize(("first", "second", "used"), DIFFERENT.values(), ids=DIFFERENT)
def test_nodes_are_searched_that_differ_in(first, second, used):
    slices = [*first, *second]
    (_, found), (_, steps) = find(slices, [PAIR], used)
    assert steps > 0
    assert found == find(slices, [PAIR], used, one_by_one=True)[0][1]


def test_nodes_are_searched_on_which_a_selector_matches_other_devices():
    large = resource_claim("large").request("r", "gpu", f"{X} > 0").build()
    (first, second), _ = find([*plain(1, 0, 1), *plain(2, 1, 1)], [large])
    assert (names(first), names(second)) == (["d-1-1"], ["d-2-0"])


def test_nodes_with_counters_of_their_own_are_alike():
    slices = [*counted(1, "2", "1", "1"), *counted(2, "2", "1", "1")]
    (_, second), (searched, not_searched) = find(slices, [PAIR])
    assert searched > 0
    assert not_searched == 0
    assert names(second) == ["d-2-0", "d-2-1"]


# --- any nodes --------------------------------------------------------------------------------

CLAIMS = {
    "a pair": (PAIR,),
    "two claims": (
        resource_claim("a").request("r", "gpu", count=2).build(),
        resource_claim("b").request("r", "gpu", f"{X} > 0").build(),
    ),
    "different values": (
        resource_claim("a").request("r", "gpu", count=2).distinct(f"{DRIVER}/x").build(),
    ),
    "alternatives": (
        resource_claim("a")
        .first_available(
            "r", alternative("big", "gpu", f"{X} == 2", count=2), alternative("small", "gpu")
        )
        .match(f"{DRIVER}/x")
        .build(),
    ),
    "all": (resource_claim("a").all_of("r", "gpu", f"{X} == 1").build(),),
    "a selector that fails": (resource_claim("a").request("r", "gpu", f"{X}.y").build(),),
    "capacity": (
        resource_claim("a").request("r", "gpu", count=2, capacity={"m": "2"}).build(),
        resource_claim("b").request("r", "gpu", capacity={"m": "2"}).build(),
    ),
}

any_thing = st.tuples(
    st.integers(0, 2), st.sampled_from(("", "", "shared", "taint", "counter")), st.booleans()
)


@settings(max_examples=150, deadline=None)
@given(
    kinds=st.lists(st.lists(any_thing, min_size=1, max_size=4), min_size=1, max_size=2),
    nodes=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 15)), min_size=2, max_size=6),
    claims=st.sampled_from(sorted(CLAIMS)),
)
def test_each_node_gets_what_its_own_search_finds(kinds, nodes, claims):
    slices, used = [], []
    for number, (kind, usage) in enumerate(nodes, start=1):
        built = []
        for place, (x, what, is_large) in enumerate(kinds[kind % len(kinds)]):
            one = device(f"d-{number}-{place}").attribute("x", x).attribute("uuid", f"{number}")
            one = one.capacity(m="4" if is_large else "2")
            if what == "counter":
                one = one.consumes("c", m="1")
            one = one.shared() if what == "shared" else one.taint("t") if what == "taint" else one
            built.append(one)
            if usage >> place & 1:
                more = {"share": f"s-{number}-{place}", "consumed": {"m": "2"}}
                used.append(
                    allocated(
                        one.build().name,
                        pool=f"pool-{number}",
                        **(more if what == "shared" else {}),
                    )
                )
        slices.append(published(number, *built).of_pool(slices=2))
        counters = resource_slice(f"counters-{number}", pool=f"pool-{number}").on_node(f"n{number}")
        slices.append(counters.of_pool(slices=2).counters("c", m="2"))
    together, _ = find(slices, CLAIMS[claims], used)
    one_by_one, _ = find(slices, CLAIMS[claims], used, one_by_one=True)
    assert together == one_by_one
