"""Lists the objects of a running cluster once."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from scheduler.client.api import Api
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.limiter import InFlightLimiter
from scheduler.client.transport import Transport
from scheduler.event_handlers.available_kinds import served_kinds
from scheduler.offline.cluster import qualified_kind
from scheduler.process.version import VERSION

if TYPE_CHECKING:
    import msgspec

    from scheduler.kinds import WatchedKind

_REQUESTS_IN_FLIGHT: Final = 4


async def list_cluster(kubeconfig: str | None) -> list[tuple[msgspec.Raw, str]]:
    """Return every object that a cycle may read, with its kind.

    Raises
    ------
    ClientConfigError
        When no configuration of the client is found or usable.
    ApiError
        When the API server cannot be reached or refuses a request.
    """
    credentials = await load_credentials(kubeconfig)
    transport = Transport(
        credentials,
        user_agent=f"berth/{VERSION} (explain)",
        limiter=InFlightLimiter(_REQUESTS_IN_FLIGHT),
    )
    try:
        api = Api(transport)
        await api.check_server()
        objects: list[tuple[msgspec.Raw, str]] = []
        for kind in await served_kinds(api):
            objects += await _list(api, kind)
        return objects
    finally:
        await transport.close()


async def _list(api: Api, kind: WatchedKind[Any]) -> list[tuple[msgspec.Raw, str]]:
    """Return every object of a kind.

    None of an optional kind that the user may not list, nor of one that may appear and that the
    server cannot list: a conversion that fails must not hide all other objects.
    """
    found: list[tuple[msgspec.Raw, str]] = []
    presumed = qualified_kind(kind.kind, kind.group_version)
    token = ""
    while True:
        try:
            page = await api.list_page(kind, continue_=token)
        except ApiError as error:
            if kind.can_appear or (kind.is_optional and error.status == HTTPStatus.FORBIDDEN):
                return []
            raise
        found += [(raw, presumed) for raw in page.items or ()]
        token = page.metadata.continue_
        if not token:
            return found
