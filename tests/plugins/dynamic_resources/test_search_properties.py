"""The search against one that tries everything, and what no search may change."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.objects import Toleration
from plugins.dynamic_resources import search
from plugins.dynamic_resources.deadline import Deadline
from plugins.dynamic_resources.errors import AllocationError
from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from tests.device_builders import (
    DRIVER,
    allocated,
    alternative,
    device,
    resource_claim,
    resource_slice,
)
from tests.plugins.dynamic_resources.device_worlds import HERE, World, here, world

TOLERATION = (Toleration(operator="Exists"),)
X = f'device.attributes["{DRIVER}"].x'
SELECTORS = {
    "": lambda x: True,
    f"{X} == 1": lambda x: x == 1,
    f"{X} >= 1": lambda x: x >= 1,
    f"{X} != 1": lambda x: x != 1,
}


@dataclass(frozen=True)
class Thing:
    """A device: its attribute, what it draws from a counter, and its capacity if it is shared."""

    x: int
    drawn: int
    capacity: int | None
    is_tainted: bool
    is_used: bool


@dataclass(frozen=True)
class Wish:
    """A request."""

    count: int
    selector: str
    tolerates: bool
    capacity: int
    is_admin: bool


things = st.builds(
    Thing,
    st.integers(0, 2),
    st.integers(0, 2),
    st.none() | st.none() | st.integers(1, 3),
    st.sampled_from((False, False, False, True)),
    st.sampled_from((False, False, False, True)),
)
wishes = st.builds(
    Wish,
    st.integers(1, 3),
    st.sampled_from(tuple(SELECTORS)),
    st.booleans(),
    st.integers(1, 2),
    st.sampled_from((False, False, False, True)),
)
claims_of_wishes = st.lists(
    st.tuples(st.lists(wishes, min_size=1, max_size=2), st.booleans()), min_size=1, max_size=2
)


def cluster_of(devices: list[Thing], left: int) -> World:
    built = []
    for index, each in enumerate(devices):
        one = device(f"d{index}").attribute("x", each.x).capacity(m=str(each.capacity or 3))
        if each.drawn:
            one = one.consumes("c", n=str(each.drawn))
        if each.is_tainted:
            one = one.taint("t")
        built.append(one if each.capacity is None else one.shared())
    used = [allocated(f"d{i}") for i, each in enumerate(devices) if each.is_used]
    drawn = sum(each.drawn for each in devices if each.is_used)
    return world(
        here(*built, name="s1").of_pool(slices=2),
        here(name="s2").of_pool(slices=2).counters("c", n=str(left + drawn)),
        used=[resource_claim("o").allocated(*used)],
    )


def claims_of(wished: list[tuple[list[Wish], bool]]):
    claims = []
    for number, (requests, matches) in enumerate(wished):
        claim = resource_claim(f"c{number}")
        for index, each in enumerate(requests):
            claim = claim.request(
                f"r{index}",
                "gpu",
                *([each.selector] if each.selector else []),
                count=each.count,
                tolerations=TOLERATION if each.tolerates else (),
                capacity={"m": str(each.capacity)},
                admin=each.is_admin or None,
            )
        claims.append((claim.match(f"{DRIVER}/x") if matches else claim).build())
    return claims


def is_right(devices: list[Thing], left: int, taken) -> bool:
    """Return whether devices may be taken together.

    ``taken`` has for each claim whether its devices must match, and for each of its requests the
    devices.
    """
    ordinary, by_claim, shares, charged = Counter(), [], Counter(), []
    for matches, requests in taken:
        of_claim = Counter()
        for wish, indices in requests:
            for index in indices:
                one = devices[index]
                if one.is_tainted and not wish.tolerates:
                    return False
                if one.is_used and not wish.is_admin:
                    return False
                if not SELECTORS[wish.selector](one.x):
                    return False
                if wish.capacity > (one.capacity or 3):
                    return False
                if one.capacity is not None:
                    shares[index] += wish.capacity
                else:
                    of_claim[index] += 1
                    # An ordinary request finds what any claim took before; an admin's only what
                    # its own claim took.
                    if not wish.is_admin and ordinary[index]:
                        return False
                    ordinary[index] += 1
                if one.capacity is None or index not in charged:
                    charged.append(index)
        by_claim.append(of_claim)
        if matches and len({devices[i].x for _, indices in requests for i in indices}) > 1:
            return False
    return (
        all(count == 1 for of_claim in by_claim for count in of_claim.values())
        and all(amount <= devices[index].capacity for index, amount in shares.items())
        and sum(devices[index].drawn for index in charged) <= left
    )


def first_by_trying_all(devices: list[Thing], left: int, wished):
    """Return the devices of all requests of the first solution, in the order of the search."""
    everything = [wish for requests, _ in wished for wish in requests]
    choices = [tuple(combinations(range(len(devices)), wish.count)) for wish in everything]
    for choice in product(*choices):
        chosen = iter(choice)
        taken = [
            (matches, [(wish, next(chosen)) for wish in requests]) for requests, matches in wished
        ]
        if is_right(devices, left, taken):
            return [f"d{index}" for indices in choice for index in indices]
    return None


@settings(max_examples=150, deadline=None)
@given(st.lists(things, max_size=5), st.integers(0, 6), claims_of_wishes)
def test_the_first_of_all_solutions_is_found(devices, left, wished):
    found = cluster_of(devices, left).find(*claims_of(wished))
    assert found.error == ""
    expected = first_by_trying_all(devices, left, wished)
    if expected is None:
        assert found.devices is None
    else:
        assert [each.split("/")[1] for one in found.devices for each in one] == expected


# --- with and without skipping devices --------------------------------------------------------

KINDS = ("plain", "constraint", "all", "list", "distinct")


@st.composite
def any_claims(draw):
    """Return claims of all kinds, whose selectors may fail."""
    claims = []
    for number in range(draw(st.integers(1, 2))):
        claim = resource_claim(f"c{number}")
        for index in range(draw(st.integers(1, 3))):
            name = f"r{index}"
            kind = draw(st.sampled_from(KINDS))
            selector = draw(st.sampled_from(("true", "true", f"{X} == 1", f"{X} >= 1")))
            count = draw(st.integers(1, 4))
            admin = draw(st.sampled_from((None, None, True)))
            if kind == "list":
                claim = claim.first_available(
                    name,
                    alternative("a", "gpu", selector, count=count),
                    alternative("b", "gpu", mode=draw(st.sampled_from(("ExactCount", "All")))),
                )
            elif kind == "all":
                claim = claim.all_of(name, "gpu", selector, admin=admin)
            else:
                claim = claim.request(name, "gpu", selector, count=count, admin=admin)
            if kind == "constraint":
                claim = claim.match(f"{DRIVER}/x", *draw(st.sampled_from(((), (name,)))))
            elif kind == "distinct":
                claim = claim.distinct(f"{DRIVER}/x", name)
        claims.append(claim.build())
    return claims


@st.composite
def any_clusters(draw):
    """Return a cluster of equal and different devices, some without the attribute."""
    slices, used = [], []
    for pool in ("p", "q")[: draw(st.integers(1, 2))]:
        devices = []
        for index in range(draw(st.integers(0, 6))):
            one = device(f"d{index}")
            x = draw(st.sampled_from((None, 1, 1, 1, 2, 2)))
            one = one if x is None else one.attribute("x", x)
            kind = draw(st.sampled_from(("", "", "", "drawn", "shared", "tainted", "used")))
            if kind == "drawn":
                one = one.consumes("c", n="1")
            elif kind == "shared":
                one = one.shared().capacity(m=draw(st.sampled_from(("1", "2"))))
            elif kind == "tainted":
                one = one.taint("t")
            elif kind == "used":
                used.append(
                    resource_claim(f"o{pool}{index}").allocated(allocated(f"d{index}", pool=pool))
                )
            devices.append(one)
        parts = resource_slice(f"{pool}1", pool=pool).of_pool(slices=2).on_node("n1")
        sets = resource_slice(f"{pool}2", pool=pool).of_pool(slices=2).on_node("n1")
        slices += [parts.devices(*devices), sets.counters("c", n=str(draw(st.integers(0, 3))))]
    return world(*slices, used=used)


@settings(max_examples=150, deadline=None)
@given(any_clusters(), any_claims())
def test_devices_that_are_skipped_make_no_difference(cluster, claims):
    assert cluster.find(*claims) == cluster.find(*claims, prune=False)


@settings(max_examples=200, deadline=None)
@given(any_clusters(), any_claims())
def test_looking_ahead_from_the_first_step_on_makes_no_difference(cluster, claims):
    expected = cluster.find(*claims, prune=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_PATIENCE", 0)
        assert cluster.find(*claims) == expected


@settings(max_examples=50, deadline=None)
@given(any_clusters(), any_claims())
def test_a_search_changes_nothing(cluster, claims):
    state, allocator = cluster.state(), cluster.allocator(claims)
    before = (dict(state.devices), dict(state.shared), dict(state.consumed))

    def search_again():
        try:
            found = allocator.allocate(HERE)
        except AllocationError as error:
            return str(error)
        return found and [
            [(each.device, each.pool) for each in one.devices.results] for one in found
        ]

    first = search_again()
    assert search_again() == first
    assert (dict(state.devices), dict(state.shared), dict(state.consumed)) == before


def test_equal_devices_are_tried_before_a_request_for_all_devices():
    # d2 for the first request lets the second one take d0, and fail at d1 with an error.
    cluster = world(here(*(device(f"d{i}").attribute("x", x) for i, x in enumerate((1, 2, 1)))))
    claim = resource_claim("c").request("r", "gpu", f"{X} == 1").all_of("q", "gpu")
    found = cluster.find(claim.match(f"{DRIVER}/x", "q").build())
    assert found.error == (
        f"claim default/c, request q: cannot add device {DRIVER}/pool/d1 because a claim "
        "constraint would not be satisfied"
    )


def test_equal_devices_are_tried_under_a_constraint_that_forgets():
    cluster = world(here(*(device(f"d{i}").attribute("x", x) for i, x in enumerate("babbc"))))
    claim = resource_claim().request("r", "gpu", count=2).request("q", "gpu", count=2)
    claim = claim.request("p", "gpu", f'{X} == "a"').distinct(f"{DRIVER}/x", "r", "q")
    assert cluster.find(claim.build()).devices == [
        ["r=pool/d2", "r=pool/d4", "q=pool/d0", "q=pool/d3", "p=pool/d1"]
    ]


# --- cost -------------------------------------------------------------------------------------


def steps(cluster, *claims, prune=True):
    """Return how many steps a search takes."""
    asked = []
    deadline = Deadline(0.0, float, is_cancelled=lambda: bool(asked.append(None)))
    cluster.find(*claims, deadline=deadline, prune=prune)
    return len(asked)


def test_equal_devices_are_not_permuted():
    cluster = world(here(*(device(f"d{i}").attribute("x", 1) for i in range(14))))
    claim = resource_claim().request("r", "gpu", count=7).request("q", "gpu", f"{X} == 2").build()
    assert steps(cluster, claim, prune=False) > 3_000
    assert steps(cluster, claim) < 100


def test_a_request_for_more_devices_than_there_are_ends_soon():
    cluster = world(here(*(device(f"d{i}").attribute("x", i) for i in range(14))))
    claim = resource_claim().request("r", "gpu", count=15).build()
    assert steps(cluster, claim, prune=False) > 10_000
    assert steps(cluster, claim) < 100


def test_a_constraint_that_too_few_devices_meet_ends_soon():
    cluster = world(
        here(*(device(f"d{i}").attribute("x", i % 2).attribute("id", i) for i in range(16)))
    )
    claim = resource_claim().request("r", "gpu", count=9).match(f"{DRIVER}/x").build()
    assert steps(cluster, claim) < 400


UNEQUAL = world(here(*(device(f"d{i}").attribute("x", i).attribute("y", i % 4) for i in range(16))))
Y = f'device.attributes["{DRIVER}"].y'
EVERY = [f"{X} != {100 + i}" for i in range(3)]
"""Different selectors that match all devices."""


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(
            resource_claim()
            .request("r0", "gpu", count=3)
            .request("r1", "gpu", f"{X} < 8", count=2)
            .request("r2", "gpu", f"{X} > 4")
            .request("r3", "gpu", f"{X} > 9")
            .request("r4", "gpu", "false"),
            id="no device for the last request",
        ),
        pytest.param(
            resource_claim()
            .request("r0", "gpu", count=3)
            .request("r1", "gpu", f"{X} < 8", count=2)
            .first_available(
                "r2", alternative("a", "gpu", "false"), alternative("b", "gpu", f"{X} > 99")
            ),
            id="no device for any alternative",
        ),
        pytest.param(
            resource_claim()
            .request("r0", "gpu", EVERY[0], f"{X} != 9", count=7)
            .request("r1", "gpu", EVERY[1], f"{X} != 8", count=6)
            .request("r2", "gpu", EVERY[2], f"{X} != 7", count=4),
            id="more devices than there are",
        ),
        pytest.param(
            resource_claim()
            .request("r0", "gpu", f"{X} != 9", count=5)
            .request("r1", "gpu", f"{X} < 3", count=2)
            .request("r2", "gpu", f"{X} < 3", count=2),
            id="two requests for three devices",
        ),
        pytest.param(
            resource_claim()
            .request("r0", "gpu", f"{X} != 9", count=4)
            .request("r1", "gpu", f"{X} >= 0", count=3)
            .request("r2", "gpu", f"{X} != 3", count=2)
            .match(f"{DRIVER}/y", "r1", "r2"),
            id="too few devices with the same value",
        ),
        pytest.param(
            resource_claim()
            .request("r0", "gpu", f"{X} != 9", count=4)
            .request("r1", "gpu", f"{X} != 8", count=4)
            .request("r2", "gpu", "false")
            .distinct(f"{DRIVER}/x"),
            id="no device for the last request beside distinct values",
        ),
        pytest.param(
            resource_claim()
            .request("r0", "gpu", count=6)
            .request("r1", "gpu", count=5)
            .all_of("r2", "gpu", f"{X} > 9"),
            id="all of too many devices",
        ),
        pytest.param(
            resource_claim()
            .request("r0", "gpu", count=3)
            .request("r1", "gpu", count=3)
            .all_of("r2", "gpu", "false")
            .match(f"{DRIVER}/y", "r2"),
            id="all devices where there are none under a constraint",
        ),
        pytest.param(
            resource_claim()
            .request("r0", "gpu", f"{X} != 9", count=4)
            .request("r1", "gpu", f"{X} < 5", count=3)
            .request("r2", "gpu", f"{X} < 5", count=3, admin=True),
            id="an admin's request beside another of the claim",
        ),
    ],
)
def test_what_cannot_succeed_ends_soon(claim):
    assert steps(UNEQUAL, claim.build()) < 60


@pytest.mark.parametrize(
    ("cluster", "claims", "expected"),
    [
        pytest.param(
            world(here(device("d").shared().capacity(m="2"))),
            [resource_claim().request("r", "gpu", capacity={"m": "1"})
             .request("q", "gpu", capacity={"m": "1"})],
            [["r=pool/d", "q=pool/d"]],
            id="requests share a device",
        ),
        pytest.param(
            world(here("d")),
            [resource_claim("a").request("r", "gpu"),
             resource_claim("b").request("r", "gpu", admin=True)],
            [["r=pool/d"], ["r=pool/d"]],
            id="admins of several claims have the same device",
        ),
        pytest.param(
            world(
                here(*(device(f"d{i}").consumes("c", n=n) for i, n in enumerate("211")), name="s1")
                .of_pool(slices=2),
                here(name="s2").of_pool(slices=2).counters("c", n="2"),
            ),
            [resource_claim().request("r", "gpu").request("q", "gpu")],
            [["r=pool/d1", "q=pool/d2"]],
            id="devices that differ in the counters that they consume",
        ),
        pytest.param(
            world(here(*(device(f"d{i}").shared().capacity(m=m) for i, m in enumerate("34")))),
            [resource_claim().request("r", "gpu", capacity={"m": "1"})
             .request("q", "gpu", capacity={"m": "3"}).request("p", "gpu", capacity={"m": "3"})],
            [["r=pool/d1", "q=pool/d0", "p=pool/d1"]],
            id="shared devices that differ in their capacity",
        ),
        pytest.param(
            world(here(*(device(f"d{i}").attribute("x", x) for i, x in enumerate("abb")))),
            [resource_claim().request("r", "gpu").request("q", "gpu").match(f"{DRIVER}/x")],
            [["r=pool/d1", "q=pool/d2"]],
            id="devices that differ in an attribute with a constraint",
        ),
    ],
)  # fmt: skip
def test_what_looks_hopeless_but_is_not(cluster, claims, expected, monkeypatch):
    monkeypatch.setattr(search, "_PATIENCE", 0)
    assert cluster.find(*(each.build() for each in claims)).devices == expected


def test_what_has_come_to_nothing_is_noticed_on_the_way():
    # The first device of r0 decides on a value of which r1 and r2 find too few.
    devices = [device(f"d{i}").attribute("x", i).attribute("y", min(i // 5, 2)) for i in range(16)]
    claim = resource_claim().request("r0", "gpu", f"{Y} < 3", count=2)
    claim = claim.request("r1", "gpu", f"{X} != 9", count=2).request("r2", "gpu", f"{X} > 5")
    claim = claim.request("r3", "gpu", f"{X} > 10").match(f"{DRIVER}/y").build()
    cluster = world(here(*devices))
    assert steps(cluster, claim, prune=False) > 200
    assert steps(cluster, claim) < 60
    assert cluster.find(claim) == cluster.find(claim, prune=False)


def test_a_selector_that_fails_is_not_overlooked():
    # r1 could be told to be hopeless, but kube-scheduler comes across d9 first.
    devices = [device(f"d{i}").attribute("y", i) for i in range(9)]
    cluster = world(here(*devices, device("d9")))
    claim = resource_claim("c").request("r0", "gpu", f"{Y} >= 0", count=9)
    claim = claim.request("r1", "gpu", "false")
    found = cluster.find(claim.build())
    assert found.devices is None
    assert found.error == cluster.find(claim.build(), prune=False).error
    assert "no such key: y" in found.error


def test_the_devices_of_other_nodes_cost_nothing():
    others = [
        resource_slice(f"s{i}", pool=f"p{i}").on_node(f"other-{i}").devices("d") for i in range(50)
    ]
    claim = resource_claim().request("r", "gpu").build()
    assert steps(world(here("d"), *others), claim) == steps(world(here("d")), claim)


# --- deadline ---------------------------------------------------------------------------------

HARD = resource_claim("c").request("r", "gpu", count=15).build()
MANY = world(here(*(device(f"d{i}").attribute("x", i) for i in range(14))))


def test_a_search_ends_at_its_deadline():
    moments = iter(range(100_000))
    deadline = Deadline(500.0, lambda: float(next(moments)))
    error = MANY.find(HARD, deadline=deadline, prune=False).error
    assert error == "filter operation aborted: context deadline exceeded"


def test_a_search_that_is_cancelled_ends():
    deadline = Deadline(0.0, float, is_cancelled=lambda: True)
    assert MANY.find(HARD, deadline=deadline).error == "filter operation aborted: context canceled"


def test_a_search_that_is_in_time_is_not_ended():
    assert MANY.find(HARD, deadline=Deadline(1.0, float)).error == ""


def test_a_search_ends_with_the_budget_of_its_attempt():
    moments = iter(range(100_000))
    budget = AttemptBudget(100.0, lambda: float(next(moments)))
    with pytest.raises(AttemptBudgetExceededError):
        MANY.find(HARD, deadline=Deadline(0.0, float, budget), prune=False)


def test_many_devices_are_looked_at_in_several_steps():
    cluster = world(
        *(
            resource_slice(f"s{i:02}", pool=f"p{i:02}")
            .on_all_nodes()
            .devices(*map(str, range(128)))
            for i in range(32)
        )
    )
    claim = resource_claim().request("r", "gpu", "device.attributes.x.y == 1").build()
    first = resource_claim().request("r", "gpu", "false").build()
    assert steps(cluster, claim) == 1
    assert steps(cluster, first) == 5
