"""Requests for all devices, with admin access, and with alternatives."""

from __future__ import annotations

import pytest

from tests.device_builders import allocated, alternative, device, resource_claim, resource_slice
from tests.plugins.dynamic_resources.device_worlds import OTHER, here, world

MODEL = 'device.attributes["gpu.example.com"].model == "{}"'
A, B = MODEL.format("a"), MODEL.format("b")


def nics(*names, pool="nics"):
    base = resource_slice(f"slice-{pool}", driver=OTHER, pool=pool)
    return base.on_node("n1").devices(*names)


def claim(name="c"):
    return resource_claim(name)


def used(*names, **more):
    return [resource_claim("o").allocated(*(allocated(each, **more) for each in names))]


def many(count, pool="pool"):
    return here(*(f"d{index:02}" for index in range(count)), pool=pool)


def names(request, count, pool="pool", start=0):
    return [f"{request}={pool}/d{index:02}" for index in range(start, start + count)]


ONLY_A = here(device("d").attribute("model", "a"))

ALL = {
    "one": ((claim().all_of("r", "gpu"),), world(here("d")), [["r=pool/d"]]),
    "of two pools": (
        (claim().all_of("r", "gpu"),),
        world(here("d", pool="p1"), here("d", pool="p2")),
        [["r=p1/d", "r=p2/d"]],
    ),
    "of one class": (
        (claim().all_of("r", "gpu"),),
        world(here("d"), nics("n")),
        [["r=pool/d"]],
    ),
    "and another claim": (
        (claim("a").all_of("r", "gpu"), claim("b").request("r", "nic")),
        world(here("d"), nics("n")),
        [["r=pool/d"], ["r=nics/n"]],
    ),
    "after another claim": (
        (claim("a").request("r", "nic"), claim("b").all_of("r", "gpu")),
        world(here("d", "e"), nics("n")),
        [["r=nics/n"], ["r=pool/d", "r=pool/e"]],
    ),
    "and one of the same": (
        (claim("a").request("r", "gpu"), claim("b").all_of("r", "gpu")),
        world(here("d")),
        None,
    ),
    "and one of the same after it": (
        (claim("a").all_of("r", "gpu"), claim("b").request("r", "gpu")),
        world(here("d")),
        None,
    ),
    "of a slice without devices": ((claim().all_of("r", "gpu"),), world(here()), None),
    "without slices": ((claim().all_of("r", "gpu"),), world(), None),
    "one in use": ((claim().all_of("r", "gpu"),), world(here("d", "e"), used=used("d")), None),
    "one in use by admin": (
        (claim().all_of("r", "gpu"),),
        world(here("d", "e"), used=used("d", admin=True)),
        [["r=pool/d", "r=pool/e"]],
    ),
    "one in use, for admin": (
        (claim().all_of("r", "gpu", admin=True),),
        world(here("d", "e"), used=used("d")),
        [["r=pool/d", "r=pool/e"]],
    ),
    "for admin after one for admin": (
        (claim().request("q", "gpu", admin=True).all_of("r", "gpu", admin=True),),
        world(here("d", "e")),
        None,
    ),
    "that match": (
        (claim().all_of("r", "gpu", A),),
        world(
            here(
                device("x").attribute("model", "b"),
                device("y").attribute("model", "a"),
            )
        ),
        [["r=pool/y"]],
    ),
    "thirty-two": ((claim().all_of("r", "gpu"),), world(many(32)), [names("r", 32)]),
    "two for admin, one in use": (
        (claim().request("r", "gpu", count=2, admin=True),),
        world(here("d", "e"), used=used("d")),
        [["r=pool/d", "r=pool/e"]],
    ),
    "two claims share a device for admin": (
        tuple(claim(each).request("r", "gpu", admin=True) for each in "ab"),
        world(here("d", "e")),
        [["r=pool/d"], ["r=pool/d"]],
    ),
    "two requests of a claim do not": (
        (claim().request("r", "gpu", admin=True).request("q", "gpu", admin=True),),
        world(here("d", "e")),
        [["r=pool/d", "q=pool/e"]],
    ),
    "admin after an ordinary claim": (
        (claim("a").request("r", "gpu"), claim("b").request("r", "gpu", admin=True)),
        world(here("d", "e")),
        [["r=pool/d"], ["r=pool/d"]],
    ),
    "an ordinary claim after admin": (
        (claim("a").request("r", "gpu", admin=True), claim("b").request("r", "gpu")),
        world(here("d", "e")),
        [["r=pool/d"], ["r=pool/e"]],
    ),
    "admin access that is false": (
        (claim().request("r", "gpu", admin=False),),
        world(here("d"), used=used("d")),
        None,
    ),
}

LISTS = {
    "the first": (
        (claim().first_available("r", alternative("x", "gpu"), alternative("y", "nic")),),
        world(here("d"), nics("n")),
        [["r/x=pool/d"]],
    ),
    "the second": (
        (claim().first_available("r", alternative("x", "nic"), alternative("y", "gpu")),),
        world(here("d")),
        [["r/y=pool/d"]],
    ),
    "none": (
        (
            claim().first_available(
                "r", alternative("x", "nic", count=2), alternative("y", "gpu", count=2)
            ),
        ),
        world(here("d"), nics("n")),
        None,
    ),
    "with selectors, beside a request": (
        (
            claim()
            .request("q", "gpu")
            .first_available(
                "r",
                alternative("x", "gpu", A),
                alternative("y", "gpu", B, count=2),
            ),
        ),
        world(here(*(device(each).attribute("model", each[0]) for each in ("b1", "b2", "c")))),
        [["q=pool/c", "r/y=pool/b1", "r/y=pool/b2"]],
    ),
    "the request before it comes first": (
        (
            claim()
            .request("q", "gpu", A)
            .first_available("r", alternative("x", "gpu", A), alternative("y", "gpu", B)),
        ),
        world(here(device("d").attribute("model", "a"), device("e").attribute("model", "b"))),
        [["q=pool/d", "r/y=pool/e"]],
    ),
    "the request after it decides": (
        (
            claim()
            .first_available("r", alternative("x", "gpu", A), alternative("y", "gpu", B))
            .request("q", "gpu", A),
        ),
        world(here(device("d").attribute("model", "a"), device("e").attribute("model", "b"))),
        [["r/y=pool/e", "q=pool/d"]],
    ),
    "all alternatives are tried before another device of the request before": (
        (
            claim()
            .request("q", "any", count=1)
            .first_available("r", alternative("x", "gpu", A), alternative("y", "gpu", B)),
        ),
        world(here(device("d").attribute("model", "a"), device("e").attribute("model", "b"))),
        [["q=pool/d", "r/y=pool/e"]],
    ),
    "all devices, where there are none": (
        (
            claim().first_available(
                "r", alternative("x", "gpu", mode="All"), alternative("y", "nic")
            ),
        ),
        world(here(), nics("n")),
        [["r/y=nics/n"]],
    ),
    "all devices, where one is in use": (
        (
            claim().first_available(
                "r", alternative("x", "gpu", mode="All"), alternative("y", "nic")
            ),
        ),
        world(here("d", "e"), nics("n"), used=used("d")),
        [["r/y=nics/n"]],
    ),
    "all devices that match": (
        (
            claim().first_available(
                "r",
                alternative("x", "gpu", B, mode="All"),
                alternative("y", "gpu", A, mode="All"),
            ),
        ),
        world(ONLY_A),
        [["r/y=pool/d"]],
    ),
    "all devices in two pools": (
        (claim().first_available("r", alternative("x", "gpu", mode="All")),),
        world(here("d", pool="p1"), here("e", pool="p2")),
        [["r/x=p1/d", "r/x=p2/e"]],
    ),
    "all devices twice": (
        (
            claim()
            .first_available("r", alternative("x", "gpu", mode="All"))
            .first_available("q", alternative("x", "gpu", mode="All"), alternative("y", "nic")),
        ),
        world(here("d"), nics("n")),
        [["r/x=pool/d", "q/y=nics/n"]],
    ),
    "500 or one": (
        (
            claim().first_available(
                "r", alternative("x", "nic", count=500), alternative("y", "gpu")
            ),
        ),
        world(here("d")),
        [["r/y=pool/d"]],
    ),
    "two lists of 32 or 16": (
        (
            claim()
            .first_available(
                "r", alternative("x", "gpu", count=32), alternative("y", "gpu", count=16)
            )
            .first_available(
                "q", alternative("x", "gpu", count=32), alternative("y", "gpu", count=16)
            ),
        ),
        world(many(64)),
        [names("r/y", 16) + names("q/y", 16, start=16)],
    ),
    "all 31 and two more": (
        (
            claim()
            .first_available(
                "r", alternative("x", "gpu", mode="All"), alternative("y", "gpu", count=2)
            )
            .request("q", "nic", count=2),
        ),
        world(many(31), nics("n1", "n2")),
        [["r/y=pool/d00", "r/y=pool/d01", "q=nics/n1", "q=nics/n2"]],
    ),
    "too many in the second claim only": (
        (
            claim("a").request("r", "gpu"),
            claim("b")
            .first_available(
                "r", alternative("x", "gpu", count=33), alternative("y", "gpu", count=20)
            )
            .first_available(
                "q", alternative("x", "gpu", count=20), alternative("y", "gpu", count=2)
            ),
        ),
        world(many(40)),
        [["r=pool/d00"], names("r/y", 20, start=1) + names("q/y", 2, start=21)],
    ),
    "combinations": (
        (
            claim()
            .first_available(
                "r", alternative("x", "gpu", B, count=3), alternative("y", "gpu", count=2)
            )
            .first_available("q", alternative("x", "gpu", count=2), alternative("y", "gpu", A)),
        ),
        world(
            here(
                device("a").attribute("model", "a"),
                *(device(each).attribute("model", "b") for each in ("b1", "b2")),
            )
        ),
        [["r/y=pool/b1", "r/y=pool/b2", "q/y=pool/a"]],
    ),
}


def _check(claims, cluster, devices):
    found = cluster.find(*(each.build() for each in claims))
    assert (found.error, found.devices) == ("", devices)


@pytest.mark.parametrize(("claims", "cluster", "devices"), ALL.values(), ids=ALL)
def test_all_devices_and_admin_access(claims, cluster, devices):
    _check(claims, cluster, devices)


@pytest.mark.parametrize(("claims", "cluster", "devices"), LISTS.values(), ids=LISTS)
def test_prioritized_lists(claims, cluster, devices):
    _check(claims, cluster, devices)


def test_more_devices_than_a_claim_may_have():
    found = world(many(33)).find(claim("c").all_of("r", "gpu").build())
    assert found.error == (
        "claim default/c: number of requested devices 33 exceeds the claim limit of 32"
    )


def test_an_expression_is_evaluated_for_devices_in_use():
    cluster = world(here("broken"), used=used("broken"))
    found = cluster.find(claim("c").all_of("r", "gpu", A).build())
    assert found.error == "claim default/c: selector #0: CEL runtime error: no such key: model"


def test_the_results_of_admin_access_say_so():
    found = world(here("d")).find(claim().request("r", "gpu", admin=True).build())
    assert found.results[0].devices.results[0].admin_access is True
    found = world(here("d")).find(claim().request("r", "gpu", admin=False).build())
    assert found.results[0].devices.results[0].admin_access is None
