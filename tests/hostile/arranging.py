"""Makes, changes and deletes the objects of a spec, as its tenant would."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from tests.controlplane.api import ApiError, collection_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.controlplane.api import ApiClient
    from tests.hostile.tenant import HostileSpec, Json

_STRATEGIC = "application/strategic-merge-patch+json"
_MERGE = "application/merge-patch+json"


def path_of(manifest: Json) -> str:
    """Return the path of an object that is there."""
    return f"{collection_path(manifest)}/{manifest['metadata']['name']}"


def by_kind(objects: Iterable[Json], most: int | None = None) -> Iterator[list[Json]]:
    """Yield objects of one kind at a time, so that those that others need exist before them.

    Parameters
    ----------
    most
        So many of those that follow each other and are of one kind; None for all.
    """

    def kind(manifest: Json) -> tuple[Any, ...]:
        return manifest["kind"], manifest["spec"].get("nodeName", "") != ""

    for _, alike in itertools.groupby(objects, kind):
        yield list(itertools.islice(alike, most))


async def create(api: ApiClient, objects: list[list[Json]]) -> None:
    """Create groups of objects, one group after the other."""
    for group in objects:
        await api.create_many(group)


async def change(api: ApiClient, spec: HostileSpec, first: Json, number: int) -> None:
    """Send a change of the first object; that it is gone or has changed meanwhile is no error."""
    assert spec.change is not None
    path = path_of(first) + ("/resize" if spec.resized else "")
    try:
        await api.patch(path, spec.change(number), _STRATEGIC if spec.resized else _MERGE)
    except ApiError as error:
        if error.status not in (404, 409):
            raise


async def delete(api: ApiClient, objects: list[list[Json]]) -> None:
    """Delete them at once, and what finalizers hold; that one is gone already is no error."""
    pending = [manifest for group in reversed(objects) for manifest in group]
    pending.reverse()

    async def work() -> None:
        while pending:
            await _delete(api, pending.pop())

    async with asyncio.TaskGroup() as group:
        for _ in range(min(32, len(pending))):
            group.create_task(work())


async def _delete(api: ApiClient, manifest: Json) -> None:
    path = path_of(manifest)
    try:
        answer = await api.delete(path)
        # The API server answers with what is left, or with a Status when nothing is.
        if answer.get("kind") != "Status" and answer["metadata"].get("finalizers"):
            await api.patch(path, {"metadata": {"finalizers": None}})
    except ApiError as error:
        if error.status != 404:
            raise
