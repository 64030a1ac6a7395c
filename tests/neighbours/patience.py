"""Requests of the campaign on a machine that is so busy that they may fail for a while."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from tests.bench.load_client import LoadClient

PATIENCE_S: Final = 120.0
_PAUSE_S: Final = 0.1
_WORKERS: Final = 64


async def insist(request: Callable[[], Awaitable[None]], *, fine: Iterable[int] = ()) -> None:
    """Send a request until it is answered.

    Parameters
    ----------
    fine
        Statuses of refusals that mean that nothing is left to do: an earlier attempt took effect.

    Raises
    ------
    ApiError
        It was refused, or had no answer for two minutes.
    """
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            await request()
        except ApiError as error:
            if error.status in fine:
                return
            may_pass = error.status is None or error.status == 429 or error.status >= 500
            if not may_pass or time.monotonic() > ends_s:
                raise
            await asyncio.sleep(_PAUSE_S)
        else:
            return


async def create(client: LoadClient, manifest: Mapping[str, Any]) -> None:
    """Create one object; one that exists was created by an earlier attempt."""
    await insist(lambda: client.create(manifest), fine=(409,))


async def create_all(client: LoadClient, manifests: Iterable[Mapping[str, Any]]) -> None:
    """Create all, as fast as the server takes them; each is begun in its order."""
    waiting = iter(manifests)

    async def work() -> None:
        # One iterator for all workers: each takes the next one.
        for manifest in waiting:
            await create(client, manifest)

    async with asyncio.TaskGroup() as group:
        for _ in range(_WORKERS):
            group.create_task(work())
