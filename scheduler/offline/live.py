"""Lists the objects of a running cluster once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from scheduler.client.api import Api
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.limiter import InFlightLimiter
from scheduler.client.paths import segment
from scheduler.client.transport import Transport
from scheduler.event_handlers.available_kinds import served_kinds
from scheduler.kinds import PODS, ResourceKind
from scheduler.offline.cluster import LIMIT_RANGE, RESOURCE_QUOTA, qualified_kind
from scheduler.process.version import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scheduler.kinds import WatchedKind

_REQUESTS_IN_FLIGHT: Final = 4


class _NotDecoded(msgspec.Struct, frozen=True):
    pass


_LIMITS: Final = {
    RESOURCE_QUOTA: ResourceKind("resourcequotas", "/api/v1/resourcequotas", _NotDecoded),
    LIMIT_RANGE: ResourceKind("limitranges", "/api/v1/limitranges", _NotDecoded),
}


async def list_cluster(
    kubeconfig: str | None, *, limits: bool = False
) -> list[tuple[msgspec.Raw, str]]:
    """Return every object that a cycle may read, with its kind.

    Parameters
    ----------
    limits
        Whether ResourceQuotas and LimitRanges are listed as well, where the user may do so. An
        empty list of such a kind says that there are none.

    Raises
    ------
    ClientConfigError
        When no configuration of the client is found or usable.
    ApiError
        When the API server cannot be reached or refuses a request.
    """
    async with _api(kubeconfig) as api:
        objects: list[tuple[msgspec.Raw, str]] = []
        for kind in await served_kinds(api):
            objects += await _list(api, kind)
        for name, kind_of_limits in _LIMITS.items() if limits else ():
            objects += await _list_limits(api, kind_of_limits, name)
        return objects


async def list_pods(kubeconfig: str | None, namespace: str) -> list[tuple[msgspec.Raw, str]]:
    """Return the pods of a namespace, with their kind.

    Raises
    ------
    ClientConfigError, ApiError
        As :func:`list_cluster`.
    """
    async with _api(kubeconfig) as api:
        return await _list(api, PODS, f"/api/v1/namespaces/{segment(namespace)}/pods")


@asynccontextmanager
async def _api(kubeconfig: str | None) -> AsyncIterator[Api]:
    """Connect to the API server, and check that it is one."""
    credentials = await load_credentials(kubeconfig)
    transport = Transport(
        credentials,
        user_agent=f"berth/{VERSION} (explain)",
        limiter=InFlightLimiter(_REQUESTS_IN_FLIGHT),
    )
    try:
        api = Api(transport)
        await api.check_server()
        yield api
    finally:
        await transport.close()


async def _list(api: Api, kind: WatchedKind[Any], path: str = "") -> list[tuple[msgspec.Raw, str]]:
    """Return every object of a kind, or those of another path.

    None of an optional kind that the user may not list, nor of one that may appear and that the
    server cannot list: a conversion that fails must not hide all other objects.
    """
    presumed = qualified_kind(kind.kind, kind.group_version)
    try:
        return await _pages(api, replace(kind, path=path or kind.path), presumed)
    except ApiError as error:
        if kind.can_appear or (kind.is_optional and error.status == HTTPStatus.FORBIDDEN):
            return []
        raise


async def _list_limits(
    api: Api, kind: ResourceKind[Any], name: str
) -> list[tuple[msgspec.Raw, str]]:
    """Return every object of a kind, after an empty list of it; nothing where that is forbidden."""
    try:
        found = await _pages(api, kind, name)
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            return []
        raise
    return [(msgspec.Raw(b"{}"), f"{name}List"), *found]


async def _pages(api: Api, kind: ResourceKind[Any], presumed: str) -> list[tuple[msgspec.Raw, str]]:
    found: list[tuple[msgspec.Raw, str]] = []
    token = ""
    while True:
        page = await api.list_page(kind, continue_=token)
        found += [(raw, presumed) for raw in page.items or ()]
        token = page.metadata.continue_
        if not token:
            return found
