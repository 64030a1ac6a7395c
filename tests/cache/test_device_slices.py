"""Slices are found by node and by pool, as they are at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.change_journal import MAX_CHANGES
from cache.device_objects import PoolId
from cache.device_slices import DeviceSlices
from cache.sharded_map import MAX_CHANGED
from tests.device_builders import DRIVER, resource_slice

if TYPE_CHECKING:
    from cache.device_objects import ResourceSlice
    from cache.device_slices import SlicesView
    from tests.device_builders import ResourceSliceBuilder

POOL, OTHER = PoolId(DRIVER, "pool"), PoolId(DRIVER, "other")


def known(*slices: ResourceSliceBuilder) -> DeviceSlices:
    found = DeviceSlices()
    for each in slices:
        found.changed(None, each.build())
    return found


def names(slices: tuple[ResourceSlice, ...]) -> list[str]:
    return [each.metadata.name for each in slices]


def test_slices_are_sorted_by_name() -> None:
    view = known(
        resource_slice("b").on_node("n1"),
        resource_slice("a").on_node("n1"),
        resource_slice("c").on_node("n2"),
        resource_slice("e").on_all_nodes(),
        resource_slice("d").per_device(),
    ).view()
    assert {node: names(slices) for node, slices in view.by_node.items()} == {
        "n1": ["a", "b"],
        "n2": ["c"],
    }
    assert names(view.shared) == ["d", "e"]
    assert {pool: names(slices) for pool, slices in view.by_pool.items()} == {
        POOL: ["a", "b", "c", "d", "e"]
    }


def test_slices_with_counters_are_found_whatever_their_node() -> None:
    counters = resource_slice("b").on_node("n1").counters("set", memory="1")
    slices = known(counters, resource_slice("a").counters("set", memory="1"), resource_slice("c"))
    assert names(slices.view().with_counters) == ["a", "b"]
    slices.changed(counters.build(), None)
    assert names(slices.view().with_counters) == ["a"]


def test_a_slice_that_changes_its_pool_or_node_leaves_the_old_ones() -> None:
    before, after = resource_slice("s").on_node("n1"), resource_slice("s", pool="other")
    slices = known(before)
    slices.view()
    slices.changed(before.build(), after.on_all_nodes().build())
    view = slices.view()
    assert (dict(view.by_node), names(view.shared), list(view.by_pool)) == ({}, ["s"], [OTHER])


def test_a_view_does_not_change_later() -> None:
    one = resource_slice("one").on_node("n1")
    slices = known(one)
    before = slices.view()
    slices.changed(one.build(), None)
    assert list(before.by_node) == ["n1"]
    assert not slices.view().by_node
    assert slices.view() is slices.view()


def test_the_journal_names_the_pools_that_changed() -> None:
    one = resource_slice("one")
    slices = known(one, resource_slice("two"))
    pools_since = slices.pool_changes(0)[0]
    slices.changed(one.build(), resource_slice("one", pool="other").build())
    assert slices.pool_changes(pools_since)[1] == {POOL, OTHER}


def test_a_journal_that_is_too_short_says_so() -> None:
    slices = known(resource_slice("one"))
    for i in range(MAX_CHANGES + 1):
        slices.changed(None, resource_slice("one").resource_version(str(i)).build())
    assert slices.pool_changes(0)[1] is None


@pytest.mark.parametrize("kept", ["by_node", "by_pool", "shared", "with_counters"])
def test_what_is_gone_leaves_nothing_behind(kept: str) -> None:
    local, shared = resource_slice("l").on_node("n"), resource_slice("s").counters("c", m="1")
    slices = known(local, shared)
    slices.view()
    for each in (local, shared):
        slices.changed(each.build(), None)
    assert not getattr(slices.view(), kept)
    tables = (slices._slices, slices._names_of_node, slices._names_of_pool)
    assert not any(tables)


def test_pools_that_come_and_go_do_not_pile_up_without_views() -> None:
    slices = known(resource_slice("kept"))
    for i in range(MAX_CHANGED):
        short_lived = resource_slice("s", pool=f"pool-{i}").build()
        slices.changed(None, short_lived)
        slices.changed(short_lived, None)
    assert len(slices._stale_pools) < MAX_CHANGED
    assert list(slices.view().by_pool) == [POOL]


SLICES = st.builds(
    lambda name, pool, node, counted: shaped(resource_slice(name, pool=pool), node, counted),
    st.sampled_from("abc"),
    st.sampled_from(["p", "q"]),
    st.sampled_from(["", "n1", "n2"]),
    st.booleans(),
)


def shaped(builder: ResourceSliceBuilder, node: str, counted: bool) -> ResourceSlice:
    placed = builder.on_node(node) if node else builder.on_all_nodes()
    return (placed.counters("set", memory="1") if counted else placed).build()


@settings(max_examples=60)
@given(st.lists(st.tuples(SLICES, st.booleans(), st.booleans()), max_size=12))
def test_the_incremental_view_is_the_rebuilt_one(
    history: list[tuple[ResourceSlice, bool, bool]],
) -> None:
    slices, model = DeviceSlices(), dict[str, "ResourceSlice"]()
    for each, goes, is_looked_at in history:
        name = each.metadata.name
        if goes:
            slices.changed(each, None)
            model.pop(name, None)
        else:
            slices.changed(model.get(name), each)
            model[name] = each
        if is_looked_at:
            slices.view()
    rebuilt = DeviceSlices()
    for each in sorted(model.values(), key=lambda each: each.metadata.name, reverse=True):
        rebuilt.changed(None, each)
    assert parts(slices.view()) == parts(rebuilt.view())


def parts(view: SlicesView) -> tuple[object, ...]:
    return dict(view.by_node), view.shared, view.with_counters, dict(view.by_pool)
