"""Which devices are found: order, counts, backtracking, and the errors before a search."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.device_objects import DeviceConstraint, DeviceRequest, DeviceSelector
from tests.builders import node
from tests.device_builders import (
    allocated,
    alternative,
    device,
    device_class,
    resource_claim,
    resource_slice,
)
from tests.plugins.dynamic_resources.device_worlds import (
    ANY,
    GPU,
    HERE,
    OTHER,
    THERE,
    World,
    here,
    world,
)

AT_LEAST = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("{}")) >= 0'
ONE_GI, TWO_GI = AT_LEAST.format("1Gi"), AT_LEAST.format("2Gi")

ONE = resource_claim("c").request("r", "gpu")
SMALL = device("small").capacity(memory="1Gi")
LARGE = device("large").capacity(memory="2Gi")


def there(*devices, pool="pool-2", driver="gpu.example.com"):
    return resource_slice(f"slice-{pool}", pool=pool, driver=driver).on_node("n2").devices(*devices)


FOUND = {
    "no claims": ((), world(here("d")), []),
    "a device of the node": ((ONE,), world(here("d")), [["r=pool/d"]]),
    "not the device of another node": ((ONE,), world(there("d")), None),
    "the driver must match": (
        (ONE,),
        world(resource_slice(driver=OTHER).on_node("n1").devices("d")),
        None,
    ),
    "no slices": ((ONE,), world(), None),
    "a pool without devices": ((ONE,), world(here()), None),
    "each request gets what suits it": (
        (resource_claim().request("r", "gpu", ONE_GI).request("q", "gpu", TWO_GI),),
        world(here(SMALL, LARGE)),
        [["r=pool/small", "q=pool/large"]],
    ),
    "backtracks over requests": (
        (resource_claim().request("r", "gpu", ONE_GI).request("q", "gpu", TWO_GI),),
        world(here(LARGE, SMALL)),
        [["r=pool/small", "q=pool/large"]],
    ),
    "backtracks over claims": (
        (
            resource_claim("a").request("r", "gpu", ONE_GI),
            resource_claim("b").request("q", "gpu", TWO_GI),
        ),
        world(here(LARGE, SMALL)),
        [["r=pool/small"], ["q=pool/large"]],
    ),
    "two devices from two pools": (
        (resource_claim().request("r", "gpu", count=2),),
        world(here("d", pool="p1"), here("d", pool="p2")),
        [["r=p1/d", "r=p2/d"]],
    ),
    "two devices from two slices, in the order of the slices' names": (
        (resource_claim().request("r", "gpu", count=2),),
        world(
            here("y", name="s2").of_pool(slices=2),
            here("z", name="s1").of_pool(slices=2),
        ),
        [["r=pool/z", "r=pool/y"]],
    ),
    "devices of a slice in the order in which they are published": (
        (resource_claim().request("r", "gpu", count=2),),
        world(here("z", "a", "b")),
        [["r=pool/z", "r=pool/a"]],
    ),
    "pools in the order of their names": (
        (ONE,),
        world(here("d", pool="p2", name="a"), here("d", pool="p1", name="b")),
        [["r=p1/d"]],
    ),
    "pools in the order of their drivers first": (
        (resource_claim().request("r", "any"),),
        world(
            resource_slice("s1", driver="b", pool="p1").on_node("n1").devices("d"),
            resource_slice("s2", driver="a", pool="p2").on_node("n1").devices("d"),
        ),
        [["r=p2/d"]],
    ),
    "a pool with binding conditions last": (
        (resource_claim().request("r", "gpu", count=2),),
        world(here(device("d").binding("ready"), pool="p1"), here("d", pool="p2")),
        [["r=p2/d", "r=p1/d"]],
    ),
    "an empty list of binding conditions counts": (
        (ONE,),
        world(here("a", device("d").binding(), pool="p1"), here("d", pool="p2")),
        [["r=p2/d"]],
    ),
    "too few devices for two claims": (
        (resource_claim("a").request("r", "gpu"), resource_claim("b").request("r", "gpu")),
        world(here("d")),
        None,
    ),
    "one device never twice in a request": (
        (resource_claim().request("r", "gpu", count=2),),
        world(here("d")),
        None,
    ),
    "a device in use": (
        (ONE,),
        world(here("d", "e"), used=[resource_claim("o").allocated(allocated("d"))]),
        [["r=pool/e"]],
    ),
    "a device of the same name in another pool is not in use": (
        (ONE,),
        world(here("d"), used=[resource_claim("o").allocated(allocated("d", pool="q"))]),
        [["r=pool/d"]],
    ),
    "32 devices": (
        (resource_claim().request("r", "gpu", count=32),),
        world(here(*(f"d{i:02}" for i in range(33)))),
        [[f"r=pool/d{i:02}" for i in range(32)]],
    ),
    "32 devices without a pool": (
        (resource_claim().request("r", "gpu", count=32),),
        world(),
        None,
    ),
}


@pytest.mark.parametrize(("claims", "cluster", "devices"), FOUND.values(), ids=FOUND)
def test_which_devices_are_found(claims, cluster, devices):
    found = cluster.find(*(each.build() for each in claims))
    assert (found.error, found.devices) == ("", devices)


def test_the_search_is_for_the_node_it_is_asked_for():
    cluster = world(here("d"), there("e"))
    assert cluster.find(ONE.build(), on=THERE).devices == [["r=pool-2/e"]]


def test_an_allocator_serves_several_nodes():
    allocator = world(here("d"), there("e")).allocator([ONE.build()])
    names = [allocator.allocate(each)[0].devices.results[0].device for each in (HERE, THERE, HERE)]
    assert names == ["d", "e", "d"]


def _with_selector(claim, selector):
    request = claim.spec.devices.requests[0]
    exactly = replace(request.exactly, selectors=(selector,))
    devices = replace(claim.spec.devices, requests=(replace(request, exactly=exactly),))
    return replace(claim, spec=replace(claim.spec, devices=devices))


def _with_constraint(claim):
    devices = replace(claim.spec.devices, constraints=(DeviceConstraint(),))
    return replace(claim, spec=replace(claim.spec, devices=devices))


MANY = [f"d{i}" for i in range(40)]

ERRORS = {
    "unknown class": (
        resource_claim("c").request("r", "none").build(),
        world(here("d")),
        "claim default/c, request r: could not retrieve device class none: "
        'deviceclass.resource.k8s.io "none" not found',
    ),
    "unknown class of the last alternative": (
        resource_claim("c")
        .first_available("r", alternative("a", "gpu"), alternative("b", "none"))
        .build(),
        world(here("d")),
        "claim default/c, request b: could not retrieve device class none: "
        'deviceclass.resource.k8s.io "none" not found',
    ),
    "no class": (
        resource_claim("c").request("r", "").build(),
        world(here("d")),
        "claim default/c, request r: missing device class name (unsupported request type?)",
    ),
    "unknown kind of selector": (
        _with_selector(ONE.build(), DeviceSelector()),
        world(here("d")),
        "claim default/c, request r, selector #0: CEL expression empty "
        "(unsupported selector type?)",
    ),
    "unknown mode": (
        resource_claim("c").request("r", "gpu", mode="Some").build(),
        world(here("d")),
        "claim default/c, request r: unsupported count mode Some",
    ),
    "unknown kind of constraint": (
        _with_constraint(ONE.build()),
        world(here("d")),
        "claim default/c, constraint #0: empty constraint (unsupported constraint type?)",
    ),
    "too many devices in one request": (
        resource_claim("c").request("r", "gpu", count=500).build(),
        world(),
        "claim default/c: number of requested devices 500 exceeds the claim limit of 32",
    ),
    "too many devices in all requests": (
        resource_claim("c").request("r", "gpu", count=32).request("q", "gpu").build(),
        world(here(*MANY)),
        "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
    ),
    "too many devices of the smallest alternative": (
        resource_claim("c")
        .first_available("r", alternative("a", "gpu", count=33), alternative("b", "gpu", count=40))
        .build(),
        world(here(*MANY)),
        "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
    ),
    "an expression that fails": (
        resource_claim("c").request("r", "gpu", "true", ONE_GI).build(),
        world(here("d")),
        "claim default/c: selector #1: CEL runtime error: no such key: memory",
    ),
    "an expression of a class that fails": (
        resource_claim("c").request("r", "broken", "false").build(),
        world(here("d"), classes=[device_class("broken").selecting("true", ONE_GI)]),
        "class broken: selector #1: CEL runtime error: no such key: memory",
    ),
    "an expression that is no bool": (
        resource_claim("c").request("r", "gpu", "device.attributes.x.y").build(),
        world(here(device("d").attribute("x/y", 1))),
        "claim default/c: selector #0: CEL runtime error: "
        "CEL result of type int could not be converted to bool: ",
    ),
}


@pytest.mark.parametrize(("claim", "cluster", "error"), ERRORS.values(), ids=ERRORS)
def test_errors(claim, cluster, error):
    found = cluster.find(claim)
    assert found.devices is None
    assert found.error.startswith(error)


@pytest.mark.parametrize("mode", ["ExactCount", "All"])
def test_an_expression_that_does_not_compile(mode):
    claim = resource_claim("c").request("r", "gpu", "noSuchVar", mode=mode).build()
    error = world(here("d")).find(claim).error
    assert error.startswith("claim default/c: selector #0: CEL compile error: ")
    assert "undeclared reference" in error


def test_an_expression_of_a_class_that_does_not_compile():
    cluster = world(here("d"), classes=[device_class("gpu").selecting("noSuchVar")])
    assert cluster.find(ONE.build()).error.startswith("class gpu: selector #0: CEL compile error: ")


def test_an_expression_is_not_evaluated_for_a_device_in_use():
    cluster = world(
        here("broken", SMALL), used=[resource_claim("o").allocated(allocated("broken"))]
    )
    assert cluster.find(resource_claim().request("r", "gpu", ONE_GI).build()).devices == [
        ["r=pool/small"]
    ]


def test_an_expression_is_not_evaluated_behind_the_device_that_is_taken():
    cluster = world(here(SMALL, "broken"))
    assert cluster.find(resource_claim().request("r", "gpu", ONE_GI).build()).devices == [
        ["r=pool/small"]
    ]


def test_an_expression_of_a_request_is_not_evaluated_where_the_class_says_no():
    cluster = world(resource_slice(driver=OTHER).on_node("n1").devices("broken"))
    assert cluster.find(resource_claim().request("r", "gpu", ONE_GI).build()).error == ""


def test_a_claim_without_namespace_is_named_alone():
    claim = resource_claim("c", namespace="").request("r", "").build()
    assert world().find(claim).error.startswith("claim c, request r: ")


def test_a_request_of_neither_kind():
    claim = resource_claim("c").build()
    devices = replace(claim.spec.devices, requests=(DeviceRequest(name="r"),))
    claim = replace(claim, spec=replace(claim.spec, devices=devices))
    assert world().find(claim).error.startswith("claim default/c, request r: missing device class")


def test_two_classes_share_devices():
    cluster = world(here("d", "e"), classes=[GPU, ANY])
    claim = resource_claim().request("r", "any").request("q", "gpu").build()
    assert cluster.find(claim).devices == [["r=pool/d", "q=pool/e"]]


def test_many_claims_do_not_reach_the_limit_of_recursion():
    claims = [resource_claim(f"c{i}").request("r", "gpu", count=32).build() for i in range(60)]
    cluster = world(*(here(*(f"d{i}" for i in range(120)), pool=f"p{j:02}") for j in range(16)))
    found = cluster.find(*claims)
    assert [len(each) for each in found.devices] == [32] * 60


def test_many_requests_without_devices_do_not_reach_the_limit_of_recursion():
    claim = resource_claim()
    for index in range(2000):
        claim = claim.request(f"r{index}", "gpu", count=0)
    assert world(here("d")).find(claim.build()).devices == [[]]


def test_a_node_without_slices_has_nothing():
    assert World().find(ONE.build(), on=node("n3").build()).devices is None
