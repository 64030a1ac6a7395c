"""List the metadata of one resource's objects in pages: their identity and version.

The metadata is less than half of the bytes of the objects themselves, and of each object only the
identity and the version are decoded.

*Source*: Kubernetes API concepts, "Metadata-only fetches".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cache.objects import ListMeta
from scheduler.client.codec import read_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from scheduler.client.transport import Transport

METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
"""The media type to ask for."""

PAGE_SIZE: Final = 250
"""Objects in a page: so that no turn of the loop takes long."""

_TIMEOUT_S: Final = 60.0


class ListedObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Who an object is, and its version."""

    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class MetadataPage(msgspec.Struct, frozen=True):
    """One page of a list; all pages of a list have the same version.

    Attributes
    ----------
    resource_version
        What the whole list shows the state of.
    """

    resource_version: str
    objects: tuple[ListedObject, ...]


class _Item(msgspec.Struct, gc=False):
    metadata: ListedObject


class _List(msgspec.Struct):
    metadata: ListMeta
    # Go encodes an empty list as null.
    items: list[_Item] | None = None


_LIST: Final = msgspec.json.Decoder(_List)


async def metadata_pages(
    transport: Transport,
    path: str,
    page_size: int = PAGE_SIZE,
    selected: Sequence[tuple[str, str]] = (),
) -> AsyncIterator[MetadataPage]:
    """Yield all that there is, by a read of the most recent state.

    Parameters
    ----------
    path
        Of the list over all namespaces.
    selected
        Parameters of the query that say which objects there shall be.

    Raises
    ------
    ApiError
        A page cannot be had; also 410 when the caller takes minutes for a list.

    Notes
    -----
    *Cost*: in the API server that of a list; here some 1.6 ms of CPU for a page of 250 pods, its
    bytes received in several turns of the loop.
    """
    token = ""
    while True:
        query = [*selected, ("limit", str(page_size))]
        if token:
            query.append(("continue", token))
        response = await transport.request(
            "GET", path, query=query, accept=METADATA_LIST, timeout_s=_TIMEOUT_S
        )
        page = read_answer(_LIST, response.body, "a list")
        objects = tuple(item.metadata for item in page.items or ())
        yield MetadataPage(page.metadata.resource_version, objects)
        token = page.metadata.continue_
        if not token:
            return
