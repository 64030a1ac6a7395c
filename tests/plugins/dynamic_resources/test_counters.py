"""Devices that draw from the counters of their pool."""

from __future__ import annotations

import pytest

from tests.device_builders import DRIVER, allocated, alternative, device, resource_claim
from tests.device_builders import resource_slice as a_slice
from tests.plugins.dynamic_resources.device_worlds import OTHER, here, world


def half(name, amount="4Gi", **more):
    return device(name).capacity(memory=amount).consumes("card", memory=amount, **more)


def card(*devices, memory="8Gi", pool="pool", driver=DRIVER, **more):
    """Return a pool whose devices are parts of one card."""
    parts = a_slice(f"parts-{pool}-{driver}", pool=pool, driver=driver).of_pool(slices=2)
    sets = a_slice(f"sets-{pool}-{driver}", pool=pool, driver=driver).of_pool(slices=2)
    return (
        parts.on_node("n1").devices(*devices),
        sets.on_node("n1").counters("card", {"memory": memory, **more}),
    )


def used(*names, **more):
    return [resource_claim("o").allocated(*(allocated(each, **more) for each in names))]


def gpus(count=1):
    return resource_claim().request("r", "gpu", count=count)


WHOLE = half("whole", "8Gi")
LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("6Gi")) >= 0'

ROWS = {
    "one": (gpus(), world(*card(half("a"))), ["a"]),
    "both halves": (gpus(2), world(*card(half("a"), half("b"))), ["a", "b"]),
    "halves exclude the whole": (gpus(2), world(*card(half("a"), WHOLE)), None),
    "the whole leaves nothing": (gpus(2), world(*card(WHOLE, half("a"), half("b"))), ["a", "b"]),
    "a half in use excludes the whole": (
        gpus(),
        world(*card(WHOLE, half("a"), half("b")), used=used("a")),
        ["b"],
    ),
    "the whole in use excludes the halves": (
        gpus(),
        world(*card(half("a"), WHOLE, half("b")), used=used("whole")),
        None,
    ),
    "counters of another card do not matter": (
        gpus(),
        world(*card(half("a"), pool="p1"), *card(half("b"), pool="p2"), used=used("x", pool="p1")),
        ["a"],
    ),
    "the next card": (
        gpus(3),
        world(*card(half("a"), half("b"), half("c"), pool="p1"), *card(half("d"), pool="p2")),
        ["a", "b", "d"],
    ),
    "several counters": (
        gpus(2),
        world(
            *card(
                half("a", slots="2"),
                half("b", slots="2"),
                half("c", slots="1"),
                slots="3",
            )
        ),
        ["a", "c"],
    ),
    "two sets": (
        gpus(2),
        world(
            a_slice("parts")
            .of_pool(slices=2)
            .on_node("n1")
            .devices(
                device("a").consumes("s", m="1").consumes("t", m="1"),
                device("b").consumes("s", m="1").consumes("t", m="2"),
                device("c").consumes("s", m="1").consumes("t", m="1"),
            ),
            a_slice("sets")
            .of_pool(slices=2)
            .on_node("n1")
            .counters("s", m="3")
            .counters("t", m="2"),
        ),
        ["a", "c"],
    ),
    "a counter that nobody consumes": (
        gpus(),
        world(*card(half("a"), unused="0")),
        ["a"],
    ),
    "nothing left": (gpus(), world(*card(half("a"), memory="0")), None),
    "fractions": (
        gpus(2),
        world(*card(half("a", "500m"), half("b", "0.5"), half("c", "1m"), memory="1")),
        ["a", "b"],
    ),
    "any counter below zero, even of another set": (
        gpus(),
        world(
            a_slice("parts")
            .of_pool(slices=2)
            .on_node("n1")
            .devices(
                device("a").consumes("s", m="1"),
                device("b").consumes("t", m="2"),
                device("free"),
            ),
            a_slice("sets")
            .of_pool(slices=2)
            .on_node("n1")
            .counters("s", m="1")
            .counters("t", m="1"),
            used=used("b"),
        ),
        ["free"],
    ),
    "a device without counters beside them": (
        gpus(2),
        world(*card(WHOLE, half("a"), device("plain"))),
        ["whole", "plain"],
    ),
    "a taint gives them back": (
        gpus(),
        world(*card(half("a", "8Gi").taint("broken"), half("b", "8Gi"))),
        ["b"],
    ),
    "a constraint gives them back": (
        gpus(2).match(f"{DRIVER}/x"),
        world(
            *card(
                half("a").attribute("x", "red"),
                half("b").attribute("x", "blue"),
                half("c").attribute("x", "blue"),
            )
        ),
        ["b", "c"],
    ),
    "the first alternative that is left": (
        resource_claim()
        .request("r", "gpu")
        .first_available("q", alternative("x", "gpu", LARGE), alternative("y", "gpu", "true")),
        world(*card(half("a"), half("b", "6Gi"), half("c"))),
        ["a", "c"],
    ),
    "backtracks over what is special": (
        resource_claim()
        .request("r", "gpu", count=2)
        .request("q", "gpu", f'device.attributes["{DRIVER}"].special'),
        world(
            *card(
                half("a", "1").attribute("special", True),
                half("b", "1").attribute("special", False),
                half("c", "1").attribute("special", False),
            )
        ),
        ["b", "c", "a"],
    ),
    "with admin access as well": (
        resource_claim().request("r", "gpu", admin=True),
        world(*card(half("a"), half("b")), used=used("a", "b")),
        None,
    ),
    "all devices": (
        resource_claim().all_of("r", "gpu"),
        world(*card(half("a"), half("b"))),
        ["a", "b"],
    ),
    "all devices, too many of them": (
        resource_claim().all_of("r", "gpu"),
        world(*card(half("a"), WHOLE)),
        None,
    ),
}


@pytest.mark.parametrize(("claim", "cluster", "expected"), ROWS.values(), ids=ROWS)
def test_counters(claim, cluster, expected):
    found = cluster.find(claim.build())
    assert found.error == ""
    if expected is None:
        assert found.devices is None
    else:
        assert [each.split("/")[-1] for each in found.devices[0]] == expected


def part(name, *devices):
    return a_slice(name).of_pool(slices=3).devices(*devices)


def test_a_device_on_another_node_consumes_counters():
    slices = (
        part("s1", half("a")).on_node("n1"),
        part("s2", WHOLE).on_node("n2"),
        part("s3").on_all_nodes().counters("card", memory="8Gi"),
    )
    assert world(*slices).find(gpus().build()).devices == [["r=pool/a"]]
    assert world(*slices, used=used("whole")).find(gpus().build()).devices is None


def test_two_drivers_with_pools_of_one_name_have_counters_of_their_own():
    cluster = world(
        *card(half("a", "8Gi")),
        *card(half("b", "8Gi"), driver=OTHER, memory="16Gi"),
    )
    claim = resource_claim().request("r", "any", count=2).build()
    assert cluster.find(claim).devices == [["r=pool/a", "r=pool/b"]]
    tight = world(*card(half("a", "8Gi")), *card(half("b", "8Gi"), driver=OTHER, memory="4Gi"))
    assert tight.find(claim).devices is None


# --- shared devices ---------------------------------------------------------------------------


def test_shares_of_a_device_consume_its_counters_once():
    cluster = world(*card(half("a", "8Gi").capacity(memory="8Gi").shared()))
    claim = gpus().request("q", "gpu").build()
    assert cluster.find(claim).devices is None  # each share takes all of the memory
    cluster = world(*card(device("a").consumes("card", memory="8Gi").shared()))
    assert cluster.find(claim).devices == [["r=pool/a", "q=pool/a"]]


def test_a_share_of_another_claim_has_consumed_the_counters():
    devices = [half(name, "8Gi").capacity(memory="8Gi").shared() for name in "ab"]
    share = {"share": "s", "consumed": {"memory": "1Gi"}}
    request = resource_claim().request("r", "gpu", capacity={"memory": "1Gi"}).build()
    cluster = world(*card(*devices), used=used("a", **share))
    assert cluster.find(request).devices == [["r=pool/a"]]
    cluster = world(
        *card(devices[1], device("a").consumes("card", memory="8Gi").shared()),
        used=used("a", share="s"),
    )
    # A share without capacities leaves no trace: the next one needs the counters again.
    assert cluster.find(request).devices is None


def test_a_share_that_is_given_back_leaves_the_counters_to_the_first():
    shared = device("a").attribute("x", "red").attribute("kind", "shared").shared()
    cluster = world(
        *card(
            shared.consumes("card", memory="8Gi"),
            device("b").attribute("x", "blue").attribute("kind", "spare"),
            device("c").attribute("x", "blue").attribute("kind", "gate"),
        )
    )

    def kind(*kinds):
        return " || ".join(f'device.attributes["{DRIVER}"].kind == "{each}"' for each in kinds)

    first = resource_claim("1").request("r", "gpu", kind("shared"))
    second = (
        resource_claim("2")
        .request("q", "gpu", kind("shared", "spare"))
        .request("p", "gpu", kind("gate"))
        .request("o", "gpu", kind("shared"))
        .match(f"{DRIVER}/x", "q", "p")
    )
    assert cluster.find(first.build(), second.build()).devices == [
        ["r=pool/a"],
        ["q=pool/b", "p=pool/c", "o=pool/a"],
    ]


def test_the_counters_of_a_share_that_is_given_back_are_free():
    cluster = world(
        *card(
            device("a").attribute("kind", "any").consumes("card", memory="8Gi").shared(),
            device("b").attribute("kind", "any"),
            device("c").attribute("kind", "counted").consumes("card", memory="8Gi"),
        )
    )
    kind = f'device.attributes["{DRIVER}"].kind == '
    claim = (
        resource_claim().request("r", "gpu", f'{kind}"any"').request("q", "gpu", f'{kind}"counted"')
    )
    assert cluster.find(claim.build()).devices == [["r=pool/b", "q=pool/c"]]


def test_devices_without_pools_of_counters_stay_as_they_are():
    assert world(here("a")).find(gpus().build()).devices == [["r=pool/a"]]


def test_counters_that_are_no_numbers_are_not_enough():
    cluster = world(*card(half("a"), odd_one("odd-1"), odd_one("odd-2"), half("b")))
    assert cluster.find(gpus(2).build()).devices == [["r=pool/a", "r=pool/b"]]
    backtracks = gpus().request("q", "gpu", "false").build()
    assert cluster.find(backtracks).devices is None


def odd_one(name):
    return device(name).consumes("card", memory="some")


def test_a_card_that_is_no_number_has_nothing():
    assert world(*card(half("a"), memory="some"), here("d", pool="z")).find(
        gpus().build()
    ).devices == [["r=z/d"]]
