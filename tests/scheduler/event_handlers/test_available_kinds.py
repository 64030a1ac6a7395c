"""A kind that berth can do without is watched where the cluster serves it and we may watch it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from scheduler.client.api import Api, Permission
from scheduler.event_handlers.available_kinds import kinds_to_watch, served_kinds
from scheduler.kinds import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS
from tests.scheduler.client.loopback import Loopback, json_answer, status_answer, transport_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from scheduler.kinds import WatchedKind
    from tests.scheduler.client.loopback import Handler

KINDS = (NODES, DEVICE_CLASSES)
RIGHTS = tuple(Permission(verb, "deviceclasses", "resource.k8s.io") for verb in ("list", "watch"))


def serving(*resources: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        assert request.path == "/apis/resource.k8s.io/v1"
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
        assert asyncio.run(named(refusing(404), RIGHTS)) == ["nodes"]
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
