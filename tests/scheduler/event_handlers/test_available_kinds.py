"""A kind that berth can do without is watched where the cluster serves it and we may watch it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from scheduler.client.api import Api, Permission
from scheduler.event_handlers.available_kinds import kinds_to_watch, served_kinds
from scheduler.kinds import (
    DEVICE_CLASSES,
    NODES,
    POD_GROUPS,
    RESOURCE_CLAIMS,
    X_POD_GROUPS,
)
from tests.scheduler.client.loopback import Loopback, json_answer, status_answer, transport_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from scheduler.kinds import WatchedKind
    from tests.scheduler.client.loopback import Handler

KINDS = (NODES, DEVICE_CLASSES)
RIGHTS = tuple(Permission(verb, "deviceclasses", "resource.k8s.io") for verb in ("list", "watch"))


DEVICES = "resource.k8s.io/v1"


def serving(*resources: str, versions: Sequence[str] = (DEVICES,)) -> Handler:
    """Return a server with these resources in each of some versions of API groups."""

    async def handler(request: web.Request) -> web.Response:
        if request.path == "/apis":
            listed = [{"versions": [{"groupVersion": each}]} for each in versions]
            return json_answer({"groups": listed})
        assert request.path.removeprefix("/apis/") in versions
        return json_answer({"resources": [{"name": each} for each in resources]})

    return handler


def refusing(status: int) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return status_answer(status, "Refused", "the message")

    return handler


async def named(
    handler: Handler,
    missing: Sequence[Permission] = (),
    kinds: Sequence[WatchedKind[Any]] = KINDS,
    *,
    listed: bool = False,
) -> list[str]:
    """Return the names of the kinds to watch, or to list."""
    async with Loopback(handler) as server, transport_to(server.url) as transport:
        api = Api(transport)
        found = await (served_kinds(api, kinds) if listed else kinds_to_watch(api, missing, kinds))
        return [kind.name for kind in found]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(("deviceclasses",), ["nodes", "deviceclasses"], id="served"),
        pytest.param(("resourceslices",), ["nodes"], id="others-of-the-group-are"),
        pytest.param((), ["nodes"], id="none-of-the-group-is"),
    ],
)
def test_what_is_served_is_watched(resources: tuple[str, ...], expected: list[str]) -> None:
    assert asyncio.run(named(serving(*resources))) == expected
    assert asyncio.run(named(serving(*resources), listed=True)) == expected


def test_a_group_that_the_cluster_does_not_have_is_no_reason_for_a_warning() -> None:
    with capture_logs() as lines:
        assert asyncio.run(named(serving("deviceclasses", versions=()), RIGHTS)) == ["nodes"]
    assert lines == []


def test_a_server_that_does_not_tell_is_one_that_does_not_serve() -> None:
    with capture_logs() as lines:
        assert asyncio.run(named(refusing(403))) == ["nodes"]
    assert [line["event"] for line in lines] == ["cannot list API groups"]


def test_without_a_right_it_is_not_watched_and_a_warning_says_what_follows() -> None:
    with capture_logs() as lines:
        assert asyncio.run(named(serving("deviceclasses"), RIGHTS[1:])) == ["nodes"]
    assert lines == [
        {
            "event": "resource is not watched: permission missing",
            "log_level": "warning",
            "resource": "deviceclasses",
            "missing": "watch deviceclasses.resource.k8s.io in all namespaces",
            "consequence": "devices count as ordinary extended resources",
        }
    ]


def test_a_right_on_another_resource_changes_nothing() -> None:
    missing = (Permission("watch", "deviceclasses", "example.com"), Permission("list", "nodes"))
    assert asyncio.run(named(serving("deviceclasses"), missing)) == ["nodes", "deviceclasses"]


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(Permission("patch", "resourceclaims", "resource.k8s.io"), id="finalizer"),
        pytest.param(Permission("patch", "resourceclaims/status", "resource.k8s.io"), id="status"),
        pytest.param(
            Permission("patch", "resourceclaims/binding", "resource.k8s.io"), id="allocations"
        ),
    ],
)
def test_claims_that_we_may_not_write_are_not_watched(missing: Permission) -> None:
    with capture_logs() as lines:
        kinds = asyncio.run(named(serving("resourceclaims"), (missing,), (NODES, RESOURCE_CLAIMS)))
    assert kinds == ["nodes"]
    assert [line["missing"] for line in lines] == [str(missing)]


def test_claims_that_we_may_write_are_watched() -> None:
    missing = (Permission("patch", "resourceclaims", "example.com"),)
    kinds = (NODES, RESOURCE_CLAIMS)
    assert asyncio.run(named(serving("resourceclaims"), missing, kinds)) == [
        "nodes",
        "resourceclaims",
    ]


# --- kinds that can be read in several versions, and that may appear later ---------------------


def path_of_groups(*versions: str) -> list[str]:
    """Return the paths of the pod groups that are listed where these versions are served."""

    async def asked() -> list[str]:
        handler = serving("podgroups", "podgroups/status", versions=versions)
        async with Loopback(handler) as server, transport_to(server.url) as transport:
            found = await served_kinds(Api(transport), (POD_GROUPS, X_POD_GROUPS))
            return [kind.path for kind in found]

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param(["v1"], [], id="unknown"),
        pytest.param(["v1", "v1alpha2"], ["v1alpha2"], id="1.36"),
        pytest.param(["v1", "v1alpha3"], ["v1alpha3"], id="1.37-alpha"),
        pytest.param(["v1", "v1beta1", "v1alpha3"], ["v1beta1"], id="1.37"),
        pytest.param(["v1alpha1", "v1"], [], id="1.35"),
    ],
)
def test_the_best_version_that_is_served_is_read(versions: list[str], expected: list[str]) -> None:
    served = [f"scheduling.k8s.io/{each}" for each in versions]
    paths = [f"/apis/scheduling.k8s.io/{each}/podgroups" for each in expected]
    assert path_of_groups(*served) == paths


def test_a_group_of_the_same_name_is_another_kind() -> None:
    assert path_of_groups("scheduling.x-k8s.io/v1alpha1", "scheduling.volcano.sh/v1beta1") == [
        "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
    ]


def test_what_may_appear_is_nothing_that_the_start_looks_for() -> None:
    kinds = (NODES, X_POD_GROUPS)
    server = serving("podgroups", versions=("scheduling.x-k8s.io/v1alpha1",))
    assert asyncio.run(named(server, (), kinds)) == ["nodes"]
