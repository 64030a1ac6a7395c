"""The requests of the special claim, by upstream's table of containers and sidecars."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.objects import Container, ResourceRequirements
from plugins.dynamic_resources.extended_resources import (
    device_requests,
    find_special_claim,
    new_special_claim,
)
from tests.builders import pod
from tests.device_builders import resource_claim

GPU, NIC = "example.com/gpu", "example.com/nic"
CLASSES = {GPU: "gpus", NIC: "nics"}


def box(name: str, *, sidecar: bool = False, **amounts: str) -> Container:
    names = {"gpu": GPU, "nic": NIC, "cpu": "cpu"}
    requests = {names[key]: amount for key, amount in amounts.items()}
    return Container(
        name,
        resources=ResourceRequirements(requests=requests),
        restart_policy="Always" if sidecar else None,
    )


def asked(init: list[Container], main: list[Container]) -> tuple[list[str], list[str]]:
    """Return requests as ``name class*count``, and mappings as ``container resource name``."""
    plain = pod("web").build()
    spec = replace(plain.spec, init_containers=tuple(init), containers=tuple(main))
    plain = replace(plain, spec=spec)
    found = device_requests(plain, CLASSES)
    requests = []
    for each in found.requests:
        assert each.exactly is not None
        assert each.exactly.allocation_mode == "ExactCount"
        requests.append(f"{each.name} {each.exactly.device_class_name}*{each.exactly.count}")
    return requests, [
        f"{each.container_name} {each.resource_name} {each.request_name}" for each in found.mappings
    ]


@pytest.mark.parametrize(
    ("init", "main", "requests", "mappings"),
    [
        pytest.param(
            [],
            [box("a", cpu="1", gpu="2", nic="1")],
            ["container-0-request-1 gpus*2", "container-0-request-2 nics*1"],
            [f"a {GPU} container-0-request-1", f"a {NIC} container-0-request-2"],
            id="the place among the sorted names of all requests",
        ),
        pytest.param(
            [],
            [box("a", gpu="1"), box("b", gpu="2")],
            ["container-0-request-0 gpus*1", "container-1-request-0 gpus*2"],
            [f"a {GPU} container-0-request-0", f"b {GPU} container-1-request-0"],
            id="containers add up",
        ),
        pytest.param(
            [box("i", gpu="2")],
            [box("a", gpu="1")],
            ["container-0-request-0 gpus*1", "container-1-request-0 gpus*1"],
            [
                f"a {GPU} container-1-request-0",
                f"i {GPU} container-1-request-0",
                f"i {GPU} container-0-request-0",
            ],
            id="an init container reuses what comes later",
        ),
        pytest.param(
            [box("i", gpu="1")],
            [box("a", gpu="2")],
            ["container-1-request-0 gpus*2"],
            [f"a {GPU} container-1-request-0", f"i {GPU} container-1-request-0"],
            id="an init container that needs less needs nothing",
        ),
        pytest.param(
            [box("i", gpu="1"), box("j", gpu="3"), box("k", gpu="2")],
            [],
            ["container-1-request-0 gpus*3"],
            [
                f"i {GPU} container-1-request-0",
                f"j {GPU} container-1-request-0",
                f"k {GPU} container-1-request-0",
            ],
            id="of init containers the largest stays",
        ),
        pytest.param(
            [box("i", gpu="1"), box("s", sidecar=True, gpu="1"), box("j", gpu="2")],
            [box("a", cpu="1")],
            ["container-1-request-0 gpus*1", "container-2-request-0 gpus*2"],
            [
                f"s {GPU} container-1-request-0",
                f"i {GPU} container-1-request-0",
                f"j {GPU} container-2-request-0",
            ],
            id="a sidecar is only reused by those before it",
        ),
        pytest.param([], [box("a", gpu="0", cpu="1")], [], [], id="none of it"),
        pytest.param([], [box("a", gpu="1500m")], [], [], id="not whole"),
    ],
)
def test_requests_and_mappings(init, main, requests, mappings) -> None:
    assert asked(init, main) == (requests, mappings)


def test_requests_are_sorted_as_texts() -> None:
    names = [name.split()[0] for name in asked([], [box(f"c{i}", gpu="1") for i in range(11)])[0]]
    assert names.index("container-10-request-0") < names.index("container-2-request-0")


def test_the_special_claim_of_an_earlier_attempt_is_found_by_owner_and_annotation() -> None:
    waiting = pod("web").build()
    special = "resource.kubernetes.io/extended-resource-claim"
    claims = [
        resource_claim("plain").owned_by(waiting).build(),
        resource_claim("other").owned_by(pod("web").uid("x").build()).annotation(special, "true"),
        resource_claim("mine").owned_by(waiting).annotation(special, "true"),
    ]
    built = [claims[0], *(each.build() for each in claims[1:])]
    found = find_special_claim(waiting, built)
    assert found is built[2]


def test_a_new_special_claim_is_found_as_one() -> None:
    waiting = pod("web").build()
    claim = new_special_claim(waiting, "uid")
    assert find_special_claim(waiting, [claim]) is claim
