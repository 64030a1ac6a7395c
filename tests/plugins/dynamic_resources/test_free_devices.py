"""Counting free devices on all nodes, against the search on each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.columns import Columns
from cache.devices import Devices
from cache.objects import NodeSelector
from plugins.dynamic_resources.allocator import Allocator
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.free_devices import FreeDevices, countable
from plugins.dynamic_resources.pools import PoolIndex
from plugins.dynamic_resources.requests import RequestReader
from plugins.dynamic_resources.selector_cache import SelectorCache
from plugins.framework.attempt_budget import UNLIMITED, AttemptBudget, AttemptBudgetExceededError
from tests.builders import node
from tests.device_builders import (
    allocated,
    alternative,
    device,
    device_class,
    labels_selector,
    resource_claim,
    resource_slice,
)

if TYPE_CHECKING:
    from cache.device_objects import ResourceClaim, ResourceSlice
    from tests.device_builders import DeviceBuilder, ResourceClaimBuilder

CLASSES = (
    device_class("any").build(),
    device_class("gpu").selecting('device.driver == "gpu.example.com"').build(),
    device_class("failing").selecting("device.attributes['gpu.example.com'].size > 1").build(),
)
NAMES = ("n1", "n2", "n3")
SELECTORS = SelectorCache()
ONE = resource_claim("asked").request("r", "gpu")
LIST = resource_claim("asked").first_available(
    "r", alternative("s", "gpu"), alternative("t", "any", count=2)
)


class World:
    """A cluster through which one count lives."""

    def __init__(self) -> None:
        self.devices = Devices()
        for each in CLASSES:
            self.devices.classes.changed(None, each)
        self.columns = Columns()
        self.counting = self.anew()
        self._number = 0

    def anew(self) -> FreeDevices:
        pools = PoolIndex(self.devices.slices.view())
        return FreeDevices(self.columns, pools, self.devices)

    def put_node(self, name: str, zone: str = "a") -> None:
        self.columns.put(node(name).label("zone", zone).info())

    def put_slice(self, new: ResourceSlice) -> None:
        self.devices.slices.changed(self.devices.slices.get(new.metadata.name), new)

    def drop_slice(self, name: str) -> None:
        known = self.devices.slices.get(name)
        if known is not None:
            self.devices.slices.changed(known, None)

    def put_claim(self, claim: ResourceClaimBuilder) -> None:
        self._number += 1
        self.devices.claims.changed(None, claim.resource_version(str(self._number)).build())

    def read(self, *claims: ResourceClaim) -> tuple[object, ...]:
        reader = RequestReader(self.devices.classes.get, SELECTORS)
        return tuple(reader.read(index, claim) for index, claim in enumerate(claims))

    def counted(self, *claims: ResourceClaim) -> dict[str, bool | None]:
        """Return by node whether there are enough devices; None for what has to be searched."""
        self.counting.follow()
        (wanted,) = countable(self.read(*claims))
        enough, unsure = self.counting.enough(wanted, UNLIMITED)
        return {
            info.name: None if unsure[row] else bool(enough[row])
            for row, info in enumerate(self.columns.node_infos)
        }

    def allocator(self, claims: tuple[ResourceClaim, ...]) -> Allocator:
        return Allocator(
            claims,
            self.devices.allocated(),
            PoolIndex(self.devices.slices.view()),
            self.devices.classes.get,
            SELECTORS,
            lambda: "share",
        )

    def found(self, *claims: ResourceClaim, anew: bool = True) -> dict[str, object]:
        """Return by node what the search finds, or the error; each node with a search of its own.

        Without ``anew`` all nodes are asked for in one cycle.
        """
        allocator = self.allocator(claims)
        found: dict[str, object] = {}
        for info in self.columns.node_infos:
            assert info.node is not None
            if anew:
                allocator = self.allocator(claims)
            try:
                found[info.name] = allocator.allocate(info.node)
            except AllocationError as error:
                found[info.name] = str(error)
        return found

    def searched(self, *claims: ResourceClaim) -> dict[str, bool | None]:
        """Return by node whether the search finds devices; None for an error."""
        return {
            name: None if isinstance(each, str) else each is not None
            for name, each in self.found(*claims).items()
        }


def local(name: str, *devices: DeviceBuilder | str, on: str = "n1") -> ResourceSlice:
    return resource_slice(name, pool=name).on_node(on).devices(*devices).build()


def small_world(*devices: DeviceBuilder | str) -> World:
    world = World()
    world.put_node("n1")
    world.put_slice(local("s", *devices))
    return world


# --- rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param((ONE,), True, id="one"),
        pytest.param((resource_claim().request("r", "gpu", count=2),), True, id="as many"),
        pytest.param((resource_claim().request("r", "gpu", count=3),), False, id="too many"),
        pytest.param((ONE.request("q", "gpu"),), True, id="two requests"),
        pytest.param((ONE, resource_claim("other").request("x", "gpu")), True, id="two claims"),
        pytest.param((ONE.request("q", "gpu", count=2),), False, id="too many together"),
        pytest.param((resource_claim().request("r", "failing"),), None, id="a failing selector"),
    ],
)
def test_what_is_counted(claims: tuple[ResourceClaimBuilder, ...], expected: bool | None) -> None:
    world = small_world("a", "b")
    assert world.counted(*(each.build() for each in claims)) == {"n1": expected}


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(resource_claim().all_of("r", "gpu"), id="all"),
        pytest.param(resource_claim().request("r", "gpu", admin=True), id="admin"),
        pytest.param(resource_claim().request("r", "gpu", capacity={"m": "1"}), id="capacity"),
        pytest.param(LIST.request("q", "gpu"), id="list and request"),
        pytest.param(LIST.match("gpu.example.com/numa"), id="list with a constraint"),
        pytest.param(
            resource_claim().first_available("r", alternative("s", "gpu", count=33)),
            id="alternative beyond the limit",
        ),
        pytest.param(ONE.match("gpu.example.com/numa"), id="constraint"),
        pytest.param(ONE.request("q", "any"), id="different requests"),
        pytest.param(resource_claim().request("r", "gone"), id="no such class"),
        pytest.param(resource_claim().request("r", "gpu", count=33), id="beyond the limit"),
    ],
)
def test_what_counting_cannot_decide(claim: ResourceClaimBuilder) -> None:
    assert countable(small_world("a").read(claim.build())) == ()


def test_each_alternative_of_a_single_request_is_counted() -> None:
    claim = LIST.build()
    alternatives = countable(small_world("a").read(claim))
    assert [(each.request.alternative, each.needed) for each in alternatives] == [
        ("s", 1),
        ("t", 2),
    ]


@pytest.mark.parametrize(
    "special",
    [
        pytest.param(device("a").shared(), id="shared"),
        pytest.param(device("a").consumes("counters", slots="1"), id="counters"),
    ],
)
def test_devices_that_are_not_just_free_or_in_use_are_searched(special: DeviceBuilder) -> None:
    world = World()
    world.put_node("n1")
    world.put_slice(resource_slice("s").on_node("n1").devices(special).of_pool(slices=2).build())
    world.put_slice(
        resource_slice("c").on_node("n1").counters("counters", slots="1").of_pool(slices=2).build()
    )
    assert world.counted(ONE.build()) == {"n1": None}


def test_devices_whose_nodes_cannot_be_written_down_are_searched() -> None:
    term = labels_selector("zone", "a").node_selector_terms[0]
    world = World()
    world.put_node("n1")
    nodes = NodeSelector((term, term))
    world.put_slice(resource_slice("s").on_nodes(nodes).devices(device("a")).build())
    assert world.counted(ONE.build()) == {"n1": None}


def test_an_attempt_that_runs_out_goes_on_where_it_stopped() -> None:
    world = World()
    for number in range(50):
        world.put_node(f"n{number}")
        world.put_slice(local(f"s{number}", "a", on=f"n{number}"))
    world.counting.follow()
    (wanted,) = countable(world.read(ONE.build()))
    attempts = 0
    while True:
        ticks = iter(range(1000))
        budget = AttemptBudget(20.0, lambda ticks=ticks: float(next(ticks)))  # type: ignore[misc]
        attempts += 1
        try:
            enough, _ = world.counting.enough(wanted, budget)
        except AttemptBudgetExceededError:
            continue
        break
    assert 1 < attempts < 10
    assert enough.all()


# --- histories --------------------------------------------------------------------------------

_DEVICES = st.lists(
    st.sampled_from(
        [
            device("a"),
            device("b").attribute("size", 2),
            device("c").taint("odd"),
            device("d").shared(),
            device("e").attribute("size", 1),
        ]
    ),
    unique_by=lambda each: each.build().name,
    max_size=4,
)
_POOLS = st.sampled_from(["p1", "p2"])


@st.composite
def _slices(draw: st.DrawFn) -> ResourceSlice:
    made = resource_slice(draw(st.sampled_from(["s1", "s2", "s3"])), pool=draw(_POOLS))
    made = made.of_pool(slices=draw(st.integers(1, 2)), generation=draw(st.integers(1, 2)))
    where = draw(st.sampled_from([*NAMES, "zone", "all", "each"]))
    devices = draw(_DEVICES)
    if where == "all":
        made = made.on_all_nodes()
    elif where == "zone":
        made = made.on_nodes(labels_selector("zone", "a"))
    elif where == "each":
        made = made.per_device()
        devices = [each.on_node(draw(st.sampled_from(NAMES))) for each in devices]
    else:
        made = made.on_node(where)
    return made.devices(*devices).build()


@st.composite
def _users(draw: st.DrawFn) -> ResourceClaimBuilder:
    made = resource_claim(draw(st.sampled_from(["c1", "c2"]))).request("r", "any")
    names = draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=2))
    pool = draw(_POOLS)
    return made.allocated(*(allocated(name, pool=pool) for name in names)) if names else made


@st.composite
def _asked(draw: st.DrawFn) -> ResourceClaim:
    class_name = draw(st.sampled_from(["any", "gpu", "failing"]))
    return resource_claim("asked").request("r", class_name, count=draw(st.integers(1, 3))).build()


def _change(draw: st.DrawFn, world: World) -> None:
    kind = draw(
        st.sampled_from(["node", "no node", "slice", "slice", "no slice", "claim", "claim"])
    )
    name = draw(st.sampled_from(NAMES))
    if kind == "node":
        world.put_node(name, draw(st.sampled_from("ab")))
    elif kind == "no node" and name in world.columns.row_of:
        world.columns.remove(name)
    elif kind == "slice":
        world.put_slice(draw(_slices()))
    elif kind == "no slice":
        world.drop_slice(draw(st.sampled_from(["s1", "s2", "s3"])))
    elif kind == "claim":
        world.put_claim(draw(_users()))


@settings(max_examples=200)
@given(data=st.data())
def test_a_count_that_lives_through_changes_says_what_a_search_finds(data: st.DataObject) -> None:
    world = World()
    for name in NAMES:
        world.put_node(name)
    asked = data.draw(_asked())
    for _ in range(data.draw(st.integers(1, 10))):
        _change(data.draw, world)
        searched = world.searched(asked)
        for name, enough in world.counted(asked).items():
            if enough is not None:
                assert enough == searched[name], name


@settings(max_examples=100)
@given(data=st.data())
def test_what_is_found_on_one_node_says_nothing_wrong_of_another(data: st.DataObject) -> None:
    world = World()
    for name in NAMES:
        world.put_node(name, data.draw(st.sampled_from("ab")))
    for _ in range(data.draw(st.integers(1, 6))):
        _change(data.draw, world)
    asked = data.draw(_asked())
    assert world.found(asked, anew=False) == world.found(asked)


def test_pools_that_are_gone_leave_nothing() -> None:
    world = small_world("a")
    asked = ONE.build()
    for number in range(20):
        world.put_slice(local(f"churn-{number}", "a"))
        world.counted(asked)
        world.drop_slice(f"churn-{number}")
    world.counted(asked)
    assert len(world.counting._row_of_pool) == 1
    assert [len(each._parts_of) for each in world.counting._kinds.values()] == [1]


def test_nodes_that_reach_the_same_slices_are_searched_once() -> None:
    world = World()
    for name in NAMES:
        world.put_node(name)
    world.put_slice(resource_slice("s").on_all_nodes().devices("a").build())
    pools = PoolIndex(world.devices.slices.view())
    nodes = [info.node for info in world.columns.node_infos if info.node is not None]
    assert len({id(pools.pools(each)) for each in nodes}) == 1
    world.put_slice(local("own", "b"))
    pools.update(world.devices.slices.view())
    assert len({id(pools.pools(each)) for each in nodes}) == 2


def test_most_nodes_are_counted() -> None:
    world = World()
    for index, name in enumerate(NAMES):
        world.put_node(name)
        world.put_slice(local(f"s{index}", *"abc"[: index + 1], on=name))
    asked = resource_claim("asked").request("r", "gpu", count=2).build()
    assert world.counted(asked) == {"n1": False, "n2": True, "n3": True}
    world.put_claim(resource_claim("c").allocated(allocated("a", pool="s1")))
    assert world.counted(asked) == {"n1": False, "n2": False, "n3": True}


def many_nodes(count: int) -> World:
    world = World()
    for number in range(count):
        world.put_node(f"n{number}")
        world.put_slice(local(f"s{number}", "a", "b", on=f"n{number}"))
    world.counting.follow()
    return world


def test_devices_that_were_read_ahead_are_there_for_the_first_pod() -> None:
    world = many_nodes(100)
    (wanted,) = countable(world.read(ONE.build()))
    world.counting.enough(wanted, UNLIMITED, exempt=0)
    world.counting.follow()
    assert [each.unknown for each in world.counting._kinds.values()] == [set()]


@pytest.mark.parametrize(
    ("exempt", "charged"),
    [
        pytest.param(0, 300, id="nothing"),
        pytest.param(200, 300 - 128, id="two lots of nodes"),
        pytest.param(10_000, 0, id="everything"),
    ],
)
def test_only_so_many_devices_are_read_at_the_expense_of_all(exempt: int, charged: int) -> None:
    world = many_nodes(300)
    (wanted,) = countable(world.read(ONE.build()))
    # A second for each pool that is read.
    budget = AttemptBudget(1000.0, lambda: float(len(world.counting.pools._built)))
    world.counting.enough(wanted, budget, exempt=exempt)
    assert budget.used_s() == charged


def test_a_device_that_all_nodes_reach_is_counted_once_for_all() -> None:
    world = World()
    for name in NAMES:
        world.put_node(name)
    world.put_slice(resource_slice("s").on_all_nodes().devices("a", "b").build())
    two = resource_claim("asked").request("r", "gpu", count=2).build()
    assert world.counted(two) == dict.fromkeys(NAMES, True)
    (counts,) = world.counting._kinds.values()
    assert [len(parts) for parts in counts._parts_of.values()] == [1]
    world.put_claim(resource_claim("c").allocated(allocated("a")))
    assert world.counted(two) == dict.fromkeys(NAMES, False)
