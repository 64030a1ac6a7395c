"""Counts of the devices of a class, by node."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cache.devices import Devices
from plugins.dynamic_resources.device_totals import DeviceTotals
from tests.builders import node
from tests.device_builders import allocated, device, labels_selector, resource_claim, resource_slice
from tests.plugins.dynamic_resources.device_worlds import GPU, HERE, THERE

CLASS = GPU.build()
SLICES = {
    "s1": (
        resource_slice("s1", pool="p1").on_node("n1").devices("a", "b"),
        resource_slice("s1", pool="p1").on_node("n1").devices("a"),
        None,
    ),
    "s2": (
        resource_slice("s2", pool="p2").on_node("n2").devices("a", device("b").shared()),
        resource_slice("s2", pool="p2").on_node("n1").devices("a"),
        None,
    ),
    "s3": (
        resource_slice("s3", pool="p3").on_nodes(labels_selector("zone", "a")).devices("a", "b"),
        resource_slice("s3", pool="p3").on_all_nodes().devices("a"),
        None,
    ),
}

changes = st.one_of(
    st.tuples(st.just("slice"), st.sampled_from(sorted(SLICES)), st.integers(0, 2)),
    st.tuples(st.just("use"), st.sampled_from(("p1", "p2", "p3")), st.sampled_from("ab")),
    st.tuples(st.just("share"), st.just("p2"), st.just("b")),
    st.tuples(st.just("node"), st.integers(0, 1), st.sampled_from("ab")),
    st.tuples(st.just("count"), st.integers(0, 1), st.just(0)),
)


def change_slice(devices, name, builder):
    devices.slices.changed(devices.slices.get(name), None if builder is None else builder.build())


def use(devices, pool, name, **more):
    """Take a device, or free it if it was taken."""
    uid = f"{pool}/{name}"
    if not devices.claims.end_flight(uid):
        claim = resource_claim(uid.replace("/", "-")).uid(uid)
        taken = claim.allocated(allocated(name, pool=pool, **more))
        devices.claims.begin_flight(taken.build())


@settings(max_examples=150, deadline=None)
@given(st.lists(changes, max_size=20))
def test_counts_that_are_kept_are_those_of_a_new_count(history):
    devices, nodes = Devices(), [HERE, THERE]
    for name, builders in SLICES.items():
        change_slice(devices, name, builders[0])
    kept = DeviceTotals(CLASS, devices)
    for kind, which, how in [*history, ("count", 0, 0), ("count", 1, 0)]:
        if kind == "slice":
            change_slice(devices, which, SLICES[which][how])
        elif kind == "node":
            nodes[which] = node(f"n{which + 1}").label("zone", how).build()
        elif kind == "count":
            kept.follow()
            assert kept.of(nodes[which]) == DeviceTotals(CLASS, devices).of(nodes[which])
        else:
            use(devices, which, how, **({"share": "s"} if kind == "share" else {}))
