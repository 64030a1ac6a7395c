"""The objects of a running cluster, listed once."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from scheduler.client.api import Api
from scheduler.client.codec import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    ResourceKind,
)
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.limiter import InFlightLimiter
from scheduler.client.transport import Transport
from scheduler.device_events import serves_devices
from scheduler.version import VERSION

if TYPE_CHECKING:
    import msgspec

LISTED: Final[tuple[ResourceKind[Any], ...]] = (
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    POD_DISRUPTION_BUDGETS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
)
"""What a cycle looks at."""

_REQUESTS_IN_FLIGHT: Final = 4


async def list_cluster(kubeconfig: str | None) -> list[tuple[msgspec.Raw, str]]:
    """Return every object that a cycle may look at, with its kind.

    Raises
    ------
    ClientConfigError
        When there is no way to the API server.
    ApiError
        When it cannot be reached or refuses.
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
        for kind in LISTED:
            objects += await _list(api, kind)
        if await serves_devices(api):
            objects += await _list_allowed(api, DEVICE_CLASSES)
        return objects
    finally:
        await transport.close()


async def _list_allowed(api: Api, kind: ResourceKind[Any]) -> list[tuple[msgspec.Raw, str]]:
    """Return every object of a kind; none where whoever asks may not list it."""
    try:
        return await _list(api, kind)
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return []


async def _list(api: Api, kind: ResourceKind[Any]) -> list[tuple[msgspec.Raw, str]]:
    found: list[tuple[msgspec.Raw, str]] = []
    token = ""
    while True:
        page = await api.list_page(kind, continue_=token)
        found += [(raw, kind.struct.__name__) for raw in page.items or ()]
        token = page.metadata.continue_
        if not token:
            return found
