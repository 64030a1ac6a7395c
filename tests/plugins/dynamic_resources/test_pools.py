"""Which pools a node can use: generations, complete and valid pools, and the nodes of slices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.device_slices import DeviceSlices
from cache.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.pools import PoolIndex
from tests.builders import node
from tests.device_builders import (
    device,
    labels_selector,
    name_selector,
    resource_claim,
    resource_slice,
)
from tests.plugins.dynamic_resources.device_worlds import HERE, OTHER, THERE, here, world

ONE = resource_claim("c").request("r", "gpu").build()
ALL = resource_claim("c").all_of("r", "gpu").build()
INVALID = "invalid resource pools were encountered"
UPDATED = (
    "claim default/c, request r: asks for all devices, but resource pool "
    "gpu.example.com/{} is currently being updated"
)
BROKEN = (
    "claim default/c, request r: asks for all devices, but resource pool "
    "gpu.example.com/{} is currently invalid"
)


def part(name, *devices, slices=2, generation=1, pool="pool"):
    """Return one of several slices of a pool, so far on no node."""
    base = resource_slice(name, pool=pool).of_pool(slices=slices, generation=generation)
    return base.devices(*devices)


BOTH_GENERATIONS = (
    part("old-1", "d1").on_node("n1"),
    part("old-2", "d2").on_node("n1"),
    part("new-1", "d1", generation=2).on_node("n2"),
)

# Name, slices, and what one device and all devices give on n1.
POOLS = {
    "incomplete": ((part("s", "d").on_node("n1"),), None, UPDATED.format("pool")),
    "complete with a slice for another node": (
        (part("s1", "d").on_node("n1"), part("s2", "e").on_node("n2")),
        ["d"],
        ["d"],
    ),
    "more slices than the pool has": (
        (part("s1", "d", slices=1).on_node("n1"), part("s2", "e", slices=1).on_node("n1")),
        None,
        UPDATED.format("pool"),
    ),
    "older generation is ignored": (
        (
            part("s1", "d", slices=1).on_node("n1"),
            part("s2", "e", slices=1, generation=2).on_node("n1"),
        ),
        ["e"],
        ["e"],
    ),
    "newer generation is incomplete": (
        (part("s1", "d", slices=1).on_node("n1"), part("s2", "e", generation=2).on_node("n1")),
        None,
        UPDATED.format("pool"),
    ),
    "newer generation for another node only": (
        (part("s1", "d").on_node("n1"), part("s2", "e", generation=2).on_node("n2")),
        None,
        None,
    ),
    "newer generation for another node, not noticed": (BOTH_GENERATIONS, ["d1"], ["d1", "d2"]),
    "stale slice of this node": (
        (
            part("s1", "d", generation=1).on_node("n1"),
            part("s2", "e", generation=2).on_node("n2"),
            part("s3", "f", generation=2).on_node("n2"),
        ),
        None,
        None,
    ),
    "complete update towards this node": (
        (
            part("s1", "d").on_node("n2"),
            part("s2", "e").on_node("n2"),
            part("s3", "f", generation=2).on_node("n1"),
            part("s4", "g", generation=2).on_node("n1"),
        ),
        ["f"],
        ["f", "g"],
    ),
    "incomplete update towards this node": (
        (
            part("s1", "d").on_node("n2"),
            part("s2", "e").on_node("n2"),
            part("s3", "f", generation=2).on_node("n1"),
        ),
        None,
        UPDATED.format("pool"),
    ),
    "a device name twice": (
        (part("s1", "d").on_node("n1"), part("s2", "d").on_node("n1")),
        INVALID,
        BROKEN.format("pool"),
    ),
    "a device name twice, but not on this node": (
        (part("s1", "d").on_node("n1"), part("s2", "d").on_node("n2")),
        ["d"],
        ["d"],
    ),
    "an invalid pool and a good one": (
        (here("d", "d", pool="bad"), here("e", pool="good")),
        ["e"],
        BROKEN.format("bad"),
    ),
    "an incomplete pool and a good one": (
        (part("s", "d", pool="bad").on_node("n1"), here("e", pool="good")),
        ["e"],
        UPDATED.format("bad"),
    ),
    "an incomplete pool of another driver": (
        (
            resource_slice("s", driver=OTHER).of_pool(slices=2).on_node("n1").devices("n"),
            here("e"),
        ),
        ["e"],
        UPDATED.format("pool").replace("gpu.example.com", OTHER),
    ),
    "a counter set twice": (
        (
            part("s1", "d", slices=3).on_node("n1"),
            part("s2", slices=3).on_node("n1").counters("c", m="1"),
            part("s3", slices=3).on_node("n1").counters("c", m="1"),
        ),
        INVALID,
        BROKEN.format("pool"),
    ),
    "an unknown counter set": (
        (
            part("s1", device("d").consumes("x", m="1")).on_node("n1"),
            part("s2").on_node("n1").counters("c", m="1"),
        ),
        INVALID,
        BROKEN.format("pool"),
    ),
    "an unknown counter": (
        (
            part("s1", device("d").consumes("c", x="1")).on_node("n1"),
            part("s2").on_node("n1").counters("c", m="1"),
        ),
        INVALID,
        BROKEN.format("pool"),
    ),
    "an unknown counter of a device on another node": (
        (
            part("s1", device("d").consumes("c", m="1"), slices=3).on_node("n1"),
            part("s2", device("e").consumes("c", x="1"), slices=3).on_node("n2"),
            part("s3", slices=3).on_all_nodes().counters("c", m="1"),
        ),
        INVALID,
        BROKEN.format("pool"),
    ),
    "a counter set of another pool": (
        (
            part("s1", device("d").consumes("c", m="1"), slices=1).on_node("n1"),
            part("s2", slices=1, pool="other").on_node("n1").counters("c", m="1"),
        ),
        INVALID,
        BROKEN.format("pool"),
    ),
    "counters of another node count as a slice": (
        (part("s1", "d").on_node("n1"), part("s2").on_node("n2").counters("c", m="1")),
        ["d"],
        ["d"],
    ),
    "for all nodes": ((part("s", "d", slices=1).on_all_nodes(),), ["d"], ["d"]),
    "for nodes with a label": (
        (part("s", "d", slices=1).on_nodes(labels_selector("zone", "a", "b")),),
        ["d"],
        ["d"],
    ),
    "for nodes with another label": (
        (part("s", "d", slices=1).on_nodes(labels_selector("zone", "b")),),
        None,
        None,
    ),
    "for a node by its name": (
        (part("s", "d", slices=1).on_nodes(name_selector("n1")),),
        ["d"],
        ["d"],
    ),
    "for nodes without a label": (
        (
            part("s", "d", slices=1).on_nodes(
                NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("x", "DoesNotExist"),)),))
            ),
        ),
        ["d"],
        ["d"],
    ),
    "for no nodes that are known": ((part("s", "d", slices=1),), None, None),
    "devices choose their nodes": (
        (
            part(
                "s",
                device("a").on_node("n2"),
                device("b").on_nodes(labels_selector("zone", "b")),
                device("c"),
                device("d").on_nodes(labels_selector("zone", "a")),
                device("e").on_all_nodes(),
                device("f").on_node("n1"),
                slices=1,
            ).per_device(),
        ),
        ["d"],
        ["d", "e", "f"],
    ),
    "no device chooses this node": (
        (part("s", device("a").on_node("n2"), slices=1).per_device(),),
        None,
        None,
    ),
}


def _devices(found):
    return [each.split("/")[1] for each in found.devices[0]]


@pytest.mark.parametrize("claim", [ONE, ALL], ids=["one device", "all devices"])
@pytest.mark.parametrize("row", POOLS.values(), ids=POOLS)
def test_pools(row, claim):
    slices, one, all_of_them = row
    expected = one if claim is ONE else all_of_them
    found = world(*slices).find(claim)
    if expected is None:
        assert (found.devices, found.error) == (None, "")
    elif isinstance(expected, str):
        assert found.error == expected
    else:
        assert _devices(found) == expected


def test_a_selector_of_a_foreign_device_may_fail():
    cluster = world(
        part("s", device("a").on_node("n2"), device("b").on_node("n1"), slices=1).per_device()
    )
    claim = resource_claim("c").request("r", "gpu", "device.attributes.x.y == 1").build()
    assert cluster.find(claim).error.endswith("no such key: y")


def test_a_malformed_node_selector_is_an_error():
    bad = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "Near", ("a",)),)),))
    found = world(part("s", "d", slices=1).on_nodes(bad)).find(ONE)
    assert found.error.startswith(
        "gather pool information: failed to perform node selection for slice s: "
    )


def test_an_error_names_the_device_whose_node_selector_is_malformed():
    bad = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "In", ()),)),))
    found = world(part("s", device("a").on_nodes(bad), slices=1).per_device()).find(ONE)
    assert found.error == (
        "gather pool information: failed to perform node selection for device a in slice s: failed "
        "to parse node selector: nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values: In "
        "needs at least one value"
    )


# --- the index --------------------------------------------------------------------------------

SLICES = (
    part("a1", "d", slices=1, pool="a").on_node("n1"),
    part("a1", "e", slices=1, pool="a").on_node("n2"),
    part("a1", "e", slices=2, pool="a", generation=2).on_node("n2"),
    part("b1", "d", pool="b").on_node("n1"),
    part("b2", "f", pool="b").on_node("n2"),
    part("b2", "f", pool="b", generation=2).on_node("n2"),
    part("b3", "g", pool="b").on_all_nodes(),
    part("b3", pool="b", slices=2).on_node("n2").counters("c", m="1"),
    part("c1", "h", slices=1, pool="c").on_nodes(labels_selector("zone", "a")),
    part("c1", "h", slices=1, pool="c").on_nodes(labels_selector("kind", "big")),
    part("d1", device("i").on_node("n1"), device("j").on_all_nodes(), slices=1).per_device(),
)


def _seen(index, on):
    return [
        (pool.id, pool.is_incomplete, pool.is_invalid, [each.id for each in pool.devices])
        for pool in index.pools(on).pools
    ]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(SLICES) - 1), st.booleans(), st.booleans()), max_size=12)
)
def test_an_index_that_follows_changes_equals_a_new_one(changes):
    known = DeviceSlices()
    index = PoolIndex(known.view())
    nodes = [HERE, THERE]
    for which, is_deleted, moves in changes:
        new = SLICES[which].build()
        known.changed(known.get(new.metadata.name), None if is_deleted else new)
        if moves:
            nodes[0] = node("n1").label("zone", "b" if nodes[0] is HERE else "a").build()
        index.update(known.view())
        for each in nodes:
            assert _seen(index, each) == _seen(PoolIndex(known.view()), each)


def test_pools_of_other_nodes_are_not_gathered_again():
    known = DeviceSlices()
    known.changed(None, part("s1", "d", slices=1, pool="p1").on_node("n1").build())
    index = PoolIndex(known.view())
    before = index.pools(HERE)
    known.changed(None, part("s2", "d", slices=1, pool="p2").on_node("n2").build())
    index.update(known.view())
    assert index.pools(HERE) is before


def test_a_slice_that_all_nodes_share_has_its_devices_once():
    known = DeviceSlices()
    known.changed(None, part("s", "d", slices=1).on_all_nodes().build())
    index = PoolIndex(known.view())
    assert index.pools(HERE).devices[0] is index.pools(THERE).devices[0]


def test_nodes_share_a_pool_that_is_for_all_of_them():
    known = DeviceSlices()
    known.changed(None, part("s1", "d").on_all_nodes().build())
    known.changed(None, part("s2", "e").on_all_nodes().build())
    known.changed(None, part("s3", "f", slices=1, pool="q").on_node("n1").build())
    index = PoolIndex(known.view())
    assert index.pools(HERE).pools[0] is index.pools(THERE).pools[0]


def test_devices_and_their_pools_are_in_the_same_order():
    pools = PoolIndex(
        world(
            *(here(*"ab"[:count], pool=f"p{count}{i}") for i, count in enumerate((0, 2, 0, 1)))
        ).view()
    ).pools(HERE)
    assert [pools.pool_at(index).id.pool for index in range(3)] == [
        each.id.pool for each in pools.devices
    ]
    assert len(pools.devices) == 3


def test_a_malformed_selector_hides_no_node_that_is_asked_for_later():
    bad = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "Near", ("a",)),)),))
    known = DeviceSlices()
    known.changed(None, part("s", "d", slices=1).on_nodes(bad).build())
    index = PoolIndex(known.view())
    with pytest.raises(AllocationError):
        index.pools(HERE)
    known.changed(known.get("s"), part("s", "d", slices=1).on_all_nodes().build())
    index.update(known.view())
    assert len(index.pools(HERE).devices) == 1
