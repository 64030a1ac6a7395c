"""What is written: tolerations, parameters, binding conditions, and the nodes of a claim."""

from __future__ import annotations

import pytest

from cache.device_objects import DeviceTaint
from cache.objects import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from plugins.dynamic_resources.requests import tolerates
from tests.device_builders import (
    alternative,
    attribute_of,
    device,
    device_class,
    labels_selector,
    name_selector,
    resource_claim,
    resource_slice,
)
from tests.plugins.dynamic_resources.device_worlds import OTHER, here, world

# --- taints -----------------------------------------------------------------------------------

EXISTS = Toleration(operator="Exists", key="k")

TOLERATIONS = {
    "by key": (EXISTS, True),
    "any key": (Toleration(operator="Exists"), True),
    "another key": (Toleration(operator="Exists", key="l"), False),
    "of this effect": (Toleration(operator="Exists", key="k", effect="NoSchedule"), True),
    "of another effect": (Toleration(operator="Exists", key="k", effect="NoExecute"), False),
    "by value": (Toleration(operator="Equal", key="k", value="v"), True),
    "by another value": (Toleration(operator="Equal", key="k", value="w"), False),
    "without operator": (Toleration(key="k", value="v"), True),
    "without operator and value": (Toleration(key="k"), False),
    "by an unknown operator": (Toleration(operator="Like", key="k", value="v"), False),
}


@pytest.mark.parametrize(("toleration", "expected"), TOLERATIONS.values(), ids=TOLERATIONS)
def test_tolerations(toleration, expected):
    assert tolerates(toleration, DeviceTaint("k", "v", "NoSchedule")) is expected


TAINTED = device("d").taint("k", "v")
TWICE = TAINTED.taint("l", effect="NoExecute")
L = Toleration(operator="Exists", key="l")

TAINTS = {
    "NoSchedule": ([TAINTED], (), None),
    "NoExecute": ([device("d").taint("k", effect="NoExecute")], (), None),
    "None": ([device("d").taint("k", effect="None")], (), "d"),
    "unknown": ([device("d").taint("k", effect="Maybe")], (), "d"),
    "the next device": ([TAINTED, device("e")], (), "e"),
    "tolerated": ([TAINTED, device("e")], (EXISTS,), "d"),
    "one of two tolerated": ([TWICE], (EXISTS,), None),
    "both tolerated": ([TWICE], (EXISTS, L), "d"),
}


@pytest.mark.parametrize("kind", ["exactly", "alternative", "all", "admin"])
@pytest.mark.parametrize(("devices", "tolerations", "expected"), TAINTS.values(), ids=TAINTS)
def test_taints(devices, tolerations, expected, kind):
    if kind == "alternative":
        claim = resource_claim().first_available(
            "r", alternative("x", "gpu", tolerations=tolerations)
        )
    else:
        mode = "All" if kind == "all" else "ExactCount"
        claim = resource_claim().request(
            "r", "gpu", mode=mode, tolerations=tolerations, admin=kind == "admin"
        )
    found = world(here(*devices)).find(claim.build())
    assert found.error == ""
    if expected is None or (kind == "all" and len(devices) == 2 and not tolerations):
        assert found.devices is None
    else:
        results = found.results[0].devices.results
        assert results[0].device == expected
        assert results[0].tolerations == tolerations


# --- parameters -------------------------------------------------------------------------------

GPU = (
    device_class("gpu").selecting('device.driver == "gpu.example.com"').configured({"driver": "g"})
)
NIC = (
    device_class("nic")
    .selecting(f'device.driver == "{OTHER}"')
    .configured({"driver": "n"}, {"driver": "m"})
)
BOTH = (here("d", "e"), resource_slice("nics", driver=OTHER).on_node("n1").devices("n"))

CONFIGS = {
    "of the class": (
        resource_claim().request("r", "gpu"),
        [("FromClass", ("r",), "g")],
    ),
    "of classes, each once": (
        resource_claim().request("r", "gpu").request("q", "nic").request("p", "gpu"),
        [
            ("FromClass", ("r", "p"), "g"),
            ("FromClass", ("q",), "n"),
            ("FromClass", ("q",), "m"),
        ],
    ),
    "of the class of the chosen alternative": (
        resource_claim().first_available(
            "r", alternative("x", "nic", count=2), alternative("y", "gpu", count=2)
        ),
        [("FromClass", ("r/y",), "g")],
    ),
    "of the claim": (
        resource_claim().request("r", "gpu").configured({"driver": "c"}),
        [("FromClass", ("r",), "g"), ("FromClaim", (), "c")],
    ),
    "of the claim for a request": (
        resource_claim()
        .request("r", "gpu")
        .request("q", "nic")
        .configured({"driver": "c"}, "q")
        .configured({"driver": "e"}, "z"),
        [
            ("FromClass", ("r",), "g"),
            ("FromClass", ("q",), "n"),
            ("FromClass", ("q",), "m"),
            ("FromClaim", ("q",), "c"),
        ],
    ),
    "of the claim for two requests, repeated": (
        resource_claim()
        .request("r", "gpu")
        .request("q", "gpu")
        .configured({"driver": "c"}, "r", "q"),
        [
            ("FromClass", ("r", "q"), "g"),
            ("FromClaim", ("r", "q"), "c"),
            ("FromClaim", ("r", "q"), "c"),
        ],
    ),
    "of the claim for alternatives": (
        resource_claim()
        .first_available("r", alternative("x", "nic", count=2), alternative("y", "gpu"))
        .configured({"driver": "a"}, "r/x")
        .configured({"driver": "b"}, "r/y")
        .configured({"driver": "c"}, "r"),
        [
            ("FromClass", ("r/y",), "g"),
            ("FromClaim", ("r/y",), "b"),
            ("FromClaim", ("r",), "c"),
        ],
    ),
}


@pytest.mark.parametrize(("claim", "expected"), CONFIGS.values(), ids=CONFIGS)
def test_parameters(claim, expected):
    found = world(*BOTH, classes=[GPU, NIC]).find(claim.build())
    configs = found.results[0].devices.config
    assert [(each.source, each.requests, each.opaque["driver"]) for each in configs] == expected


# --- binding conditions -----------------------------------------------------------------------


def test_conditions_are_copied():
    slices = here(device("d").binding("ready", failures=("broken",)), "e")
    claim = resource_claim().request("r", "gpu", count=2).build()
    results = world(slices).find(claim).results[0].devices.results
    assert [(each.binding_conditions, each.binding_failure_conditions) for each in results] == [
        (("ready",), ("broken",)),
        ((), ()),
    ]


# --- nodes ------------------------------------------------------------------------------------


def net(pool, *devices):
    return resource_slice(f"net-{pool}", pool=pool).devices(*devices)


ZONE = labels_selector("zone", "a", "b")
SAME_ZONE = labels_selector("zone", "b", "a")
KIND = labels_selector("kind", "big")
MERGED = NodeSelector(
    (
        NodeSelectorTerm(
            (
                NodeSelectorRequirement("zone", "In", ("a", "b")),
                NodeSelectorRequirement("kind", "In", ("big",)),
            )
        ),
    )
)
TWO_TERMS = NodeSelector(ZONE.node_selector_terms + KIND.node_selector_terms)

NODES = {
    "local": ([here("d")], 1, name_selector("n1")),
    "all nodes": ([net("p", "d").on_all_nodes()], 1, None),
    "some nodes": ([net("p", "d").on_nodes(ZONE)], 1, ZONE),
    "some nodes, merged": ([net("p", "d").on_nodes(ZONE), net("q", "e").on_nodes(KIND)], 2, MERGED),
    "the same nodes twice": (
        [net("p", "d").on_nodes(ZONE), net("q", "e").on_nodes(SAME_ZONE)],
        2,
        ZONE,
    ),
    "some nodes and all nodes": (
        [net("p", "d").on_nodes(ZONE), net("q", "e").on_all_nodes()],
        2,
        ZONE,
    ),
    "some nodes and local": ([net("p", "d").on_nodes(ZONE), here("e")], 2, name_selector("n1")),
    "a device that binds to the node": (
        [net("p", device("d").binds_to_node()).on_nodes(ZONE)],
        1,
        name_selector("n1"),
    ),
    "a device for all nodes that binds to the node": (
        [net("p", device("d").binds_to_node()).on_all_nodes()],
        1,
        name_selector("n1"),
    ),
    "by name": ([net("p", "d").on_nodes(name_selector("n1"))], 1, name_selector("n1")),
    "a device on the node": (
        [net("p", device("d").on_node("n1")).per_device()],
        1,
        name_selector("n1"),
    ),
    "a device on all nodes": ([net("p", device("d").on_all_nodes()).per_device()], 1, None),
    "a device on some nodes": ([net("p", device("d").on_nodes(ZONE)).per_device()], 1, ZONE),
}


@pytest.mark.parametrize(("slices", "count", "expected"), NODES.values(), ids=NODES)
def test_nodes(slices, count, expected):
    claim = resource_claim().request("r", "gpu", count=count).build()
    found = world(*slices).find(claim)
    assert found.results[0].node_selector == expected


def test_a_selector_with_two_terms_cannot_be_written():
    claim = resource_claim("c").request("r", "gpu").build()
    assert world(net("p", "d").on_nodes(TWO_TERMS)).find(claim).error == (
        "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms"
    )


def test_each_claim_has_nodes_of_its_own():
    claims = [resource_claim(each).request("r", "gpu").build() for each in "ab"]
    found = world(net("p", "d").on_all_nodes(), here("e")).find(*claims)
    assert [each.node_selector for each in found.results] == [None, name_selector("n1")]


def test_an_allocation_has_no_time_yet():
    claim = resource_claim().request("r", "gpu").build()
    assert (
        world(here(device("d").attribute("x", attribute_of(1))))
        .find(claim)
        .results[0]
        .allocation_timestamp
        is None
    )
