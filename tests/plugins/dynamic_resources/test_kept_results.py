"""The results of searches that are kept for the next pod."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.ages import AGES
from cache.columns import Columns
from cache.devices import Devices
from plugins.dynamic_resources.allocator import Allocator
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.free_devices import FreeDevices
from plugins.dynamic_resources.pools import PoolIndex
from tests.builders import node
from tests.device_builders import (
    allocated,
    device,
    device_class,
    labels_selector,
    resource_claim,
    resource_slice,
)
from tests.plugins.dynamic_resources.device_worlds import GPU, HERE, SELECTORS, THERE


class Cluster:
    """Devices that change, and an index that follows them."""

    def __init__(self):
        self.devices = Devices()
        self.devices.classes.changed(None, GPU.build())
        self.index = PoolIndex(self.devices.slices.view())
        self.nodes = [HERE, THERE]
        self._ids = count(1)

    def slice(self, name, builder):
        self.devices.slices.changed(
            self.devices.slices.get(name), None if builder is None else builder.build()
        )

    def take(self, pool, name, **more):
        claim = resource_claim(f"o-{pool}-{name}").uid(f"{pool}/{name}")
        self.devices.claims.begin_flight(
            claim.allocated(allocated(name, pool=pool, **more)).build()
        )

    def free(self, pool, name):
        self.devices.claims.end_flight(f"{pool}/{name}")

    def find(self, *claims, on=None, index=None):
        """Return what each node has, with what was kept."""
        devices = self.devices
        index = self.index if index is None else index
        index.update(devices.slices.view())
        state = devices.allocated()
        index.kept.follow(state, devices.device_changes)
        allocator = Allocator(claims, state, index, devices.classes.get, SELECTORS, self._new_id)
        return [_outcome(allocator, each) for each in (self.nodes if on is None else [on])]

    def _new_id(self):
        return f"id-{next(self._ids)}"

    def find_anew(self, *claims):
        """Return what each node has, with nothing kept."""
        return self.find(*claims, index=PoolIndex(self.devices.slices.view()))


def _outcome(allocator, on):
    try:
        return allocator.allocate(on)
    except AllocationError as error:
        return str(error)


ONE = resource_claim("a").request("r", "gpu").build()
TWO = resource_claim("b").request("r", "gpu", count=2).build()
LOCAL = resource_slice("s1", pool="p1").on_node("n1").devices("d", "e")


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.slice("s1", LOCAL)
    return cluster


def test_the_next_pod_of_a_template_gets_the_same_result(cluster):
    first = cluster.find(ONE, on=HERE)[0]
    other = resource_claim("other").request("r", "gpu").build()
    assert cluster.find(other, on=HERE)[0] is first


def test_a_claim_for_something_else_has_a_result_of_its_own(cluster):
    first = cluster.find(ONE, on=HERE)[0]
    assert len(cluster.find(TWO, on=HERE)[0][0].devices.results) == 2
    assert cluster.find(ONE, on=HERE)[0] is first


def test_a_device_that_is_taken_ends_the_results_of_its_pool(cluster):
    cluster.find(ONE)
    cluster.take("p1", "d")
    assert cluster.find(ONE, on=HERE)[0][0].devices.results[0].device == "e"


def test_a_device_of_another_pool_ends_no_result(cluster):
    first = cluster.find(ONE, on=HERE)[0]
    cluster.take("p2", "d")
    assert cluster.find(ONE, on=HERE)[0] is first


def test_a_class_that_changes_ends_the_results(cluster):
    cluster.find(ONE)
    cluster.devices.classes.changed(GPU.build(), device_class("gpu").selecting("false").build())
    assert cluster.find(ONE, on=HERE) == [None]


def test_each_pod_gets_share_ids_of_its_own():
    cluster = Cluster()
    shared = resource_slice("s1", pool="p1").on_node("n1").devices(device("d").shared(), "e")
    cluster.slice("s1", shared)
    ids = [
        [each.share_id for each in cluster.find(TWO, on=HERE)[0][0].devices.results]
        for _ in range(2)
    ]
    assert ids == [["id-1", None], ["id-2", None]]


def test_an_invalid_pool_is_an_error_each_time(cluster):
    cluster.slice("s1", LOCAL.devices("d"))
    assert cluster.find(ONE, on=HERE) == cluster.find(ONE, on=HERE)
    assert cluster.find(ONE, on=HERE) == ["invalid resource pools were encountered"]


def test_nothing_is_kept_for_devices_in_use_that_are_not_followed(cluster):
    cluster.find(ONE)
    cluster.take("p1", "d")
    state = cluster.devices.allocated()
    allocator = Allocator(
        [ONE], state, cluster.index, cluster.devices.classes.get, SELECTORS, lambda: "id"
    )
    assert allocator.allocate(HERE)[0].devices.results[0].device == "e"


def test_results_that_nothing_asks_for_expire(cluster):
    first = cluster.find(ONE, on=HERE)[0]
    AGES.begin()
    AGES.begin()
    assert cluster.find(ONE, on=HERE)[0] is not first


def test_nodes_that_are_alike_weigh_one_shape_and_one_solution(cluster):
    cluster.slice("s2", resource_slice("s2", pool="p2").on_node("n2").devices("d", "e"))
    cluster.find(ONE)
    results, shape, solution = 2, 1, 1
    assert len(cluster.index.kept) == results + shape + solution


def test_the_results_of_the_claims_that_were_not_used_for_longest_are_dropped(cluster):
    kept = cluster.index.kept
    kept._max_results = 9
    first = cluster.find(ONE, on=HERE)[0]
    cluster.find(TWO)
    cluster.find(resource_claim().request("q", "gpu").build())
    assert len(kept) <= 9
    assert cluster.find(ONE, on=HERE)[0] is not first


def test_the_counts_of_free_devices_follow_for_the_search_as_well(cluster):
    free = FreeDevices(Columns(), cluster.index, cluster.devices)
    free.follow()
    allocator = [
        Allocator([ONE], free.allocated, cluster.index, cluster.devices.classes.get, SELECTORS, str)
        for _ in range(2)
    ]
    assert allocator[0].allocate(HERE)[0] is allocator[1].allocate(HERE)[0]


# --- kept and new results are the same --------------------------------------------------------

COUNTED = device("g").consumes("c", m="1")
SLICES = {
    "s1": (LOCAL, LOCAL.devices("f"), None),
    "s2": (
        resource_slice("s2", pool="p2").on_node("n2").devices("d").of_pool(slices=1),
        resource_slice("s2", pool="p2").on_node("n2").devices("d").of_pool(slices=2),
    ),
    "s3": (
        resource_slice("s3", pool="p3").on_nodes(labels_selector("zone", "a")).devices("d", "e"),
        resource_slice("s3", pool="p3").on_nodes(labels_selector("kind", "big")).devices("d"),
    ),
    "s4": (
        resource_slice("s4", pool="p4").of_pool(slices=3).on_node("n1").devices(COUNTED, "h"),
        resource_slice("s4", pool="p4").of_pool(slices=3).on_node("n1").devices("h", "h"),
        None,
    ),
    "s5": (resource_slice("s5", pool="p4").of_pool(slices=3).on_node("n2").devices("i", COUNTED),),
    "s6": (
        resource_slice("s6", pool="p4").of_pool(slices=3).on_all_nodes().counters("c", m="1"),
        resource_slice("s6", pool="p4").of_pool(slices=3).on_all_nodes().counters("c", m="2"),
    ),
}
CLAIMS = (
    (ONE,),
    (TWO,),
    (ONE, TWO),
    (resource_claim("c").all_of("r", "gpu").build(),),
    (resource_claim("d").request("r", "gpu", count=4).build(),),
)

changes = st.one_of(
    st.tuples(st.just("slice"), st.sampled_from(sorted(SLICES)), st.integers(0, 2)),
    st.tuples(
        st.sampled_from(("take", "free")),
        st.sampled_from(("p1", "p2", "p3", "p4")),
        st.sampled_from("deghi"),
    ),
    st.tuples(st.just("node"), st.integers(0, 1), st.sampled_from(("a", "b"))),
    st.tuples(st.just("ask"), st.integers(0, len(CLAIMS) - 1), st.just(0)),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(changes, max_size=20))
def test_what_is_kept_is_what_a_new_search_finds(history):
    cluster = Cluster()
    for name, builders in SLICES.items():
        cluster.slice(name, builders[0])
    for kind, which, how in history:
        if kind == "slice":
            builders = SLICES[which]
            cluster.slice(which, builders[how % len(builders)])
        elif kind == "take":
            cluster.take(which, how)
        elif kind == "free":
            cluster.free(which, how)
        elif kind == "node":
            cluster.nodes[which] = node(f"n{which + 1}").label("zone", how).build()
        else:
            claims = CLAIMS[which]
            assert cluster.find(*claims) == cluster.find_anew(*claims)
    for claims in CLAIMS:
        assert cluster.find(*claims) == cluster.find_anew(*claims)
