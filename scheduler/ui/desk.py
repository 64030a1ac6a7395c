"""Keeps the newest listing, and one thread on which all work with it is done.

A listing that is older than the refresh interval is replaced in the background when somebody
asks; until then the old one answers. Nothing is listed while nobody looks.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from scheduler.client.errors import ApiError, ClientConfigError
from scheduler.explain import ExplainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.ui.listing import Listing

P = ParamSpec("P")
T = TypeVar("T")


class Desk:
    """The newest listing, and the thread that works with it.

    Parameters
    ----------
    listing
        The first one.
    read
        Reads another one; None where it never changes, as with a dump.
    refresh_s
        The age from which a listing is replaced.
    clock
        Seconds of a monotonic clock.

    Notes
    -----
    *Concurrency*: loop-confined; what it is given to do runs on its one thread.
    """

    def __init__(
        self,
        listing: Listing,
        read: Callable[[], Listing] | None = None,
        refresh_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listing = listing
        self._read = read
        self._refresh_s = refresh_s
        self._clock = clock
        self._read_at_s = clock()
        self._refresh: asyncio.Task[None] | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="page")
        self._lister = ThreadPoolExecutor(1, thread_name_prefix="lister")
        self.failure = ""
        """Why the last attempt to list failed; empty if it did not."""

    @property
    def listing(self) -> Listing:
        """The newest listing; only its attributes may be read outside of :meth:`work`."""
        return self._listing

    @property
    def is_live(self) -> bool:
        """Whether the listing is replaced now and then."""
        return self._read is not None

    async def work(
        self,
        do: Callable[Concatenate[Listing, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Return what a function makes of the newest listing, on the thread for that."""
        self._refresh_if_old()
        loop = asyncio.get_running_loop()
        listing = self._listing
        return await loop.run_in_executor(self._worker, lambda: do(listing, *arguments, **named))

    def _refresh_if_old(self) -> None:
        old = self._clock() - self._read_at_s >= self._refresh_s
        if self._read is not None and old and self._refresh is None:
            self._refresh = asyncio.create_task(self._replace(self._read))

    async def _replace(self, read: Callable[[], Listing]) -> None:
        try:
            loop = asyncio.get_running_loop()
            self._listing = await loop.run_in_executor(self._lister, read)
            self.failure = ""
        except (ApiError, ClientConfigError, ExplainError) as error:
            self.failure = str(error)
        finally:
            self._read_at_s = self._clock()
            self._refresh = None

    async def refreshed(self) -> None:
        """Wait until the refresh that is under way has ended, if there is one."""
        if self._refresh is not None:
            await self._refresh

    def close(self) -> None:
        """End the threads when their work is done."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._lister.shutdown(wait=False, cancel_futures=True)
