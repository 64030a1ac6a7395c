"""The extender chains of all profiles, kept open until no binding can call them any more."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from scheduler.client.errors import ClientConfigError
from scheduler.config import ConfigError
from scheduler.extenders import ExtenderChain
from scheduler.extenders.whole_objects import WHOLE_NODES, ApiWholeObjects, own_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cache.locks import MakeLock
    from cache.pod_info import PodInfo
    from plugins.framework.status import Status
    from scheduler.client.api import Api
    from scheduler.config import Extender
    from scheduler.extenders.whole_objects import WholeObject
    from scheduler.informers import Informer, InformerFactory

FIRST_LIST_S: Final = 30.0
"""Timeout of the first list of whole nodes, if an extender that needs them is added at run time."""

CLOSE_AFTER_S: Final = 60.0
"""Delay before the connections of a chain without a profile are closed. Requests in flight extend
the delay. A binding that a plugin holds for longer opens new connections."""


class ExtenderChains:
    """Creates and closes chains of extenders.

    Parameters
    ----------
    whole_objects
        Holds the informer of whole nodes, which starts with the first extender that needs them.
    settle, write_fence
        As for :class:`~scheduler.extenders.ExtenderChain`.
    make_lock
        Creates the lock of this object.
    node_selector
        Which nodes there are; empty for all.

    Notes
    -----
    *Concurrency*: :meth:`make`, :meth:`release` and the property may be used from any thread; once
    the loop runs, :meth:`make` from any thread but the loop's. :meth:`close` runs on the loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        api: Api,
        whole_objects: InformerFactory,
        settle: Callable[[PodInfo, str], Awaitable[Status | None]],
        write_fence: Callable[[float], float] | None = None,
        make_lock: MakeLock = threading.Lock,
        node_selector: str = "",
    ) -> None:
        self._loop = loop
        self._api = api
        self._whole_objects = whole_objects
        self._settle = settle
        self._write_fence = write_fence
        self._lock = make_lock()
        self._nodes = replace(WHOLE_NODES, label_selector=node_selector)
        self._open: set[ExtenderChain] = set()

    @property
    def binds_in_flight(self) -> int:
        """Number of bindings that were sent to extenders and have no response yet."""
        with self._lock:
            return sum(chain.binds_in_flight for chain in self._open)

    def make(self, extenders: tuple[Extender, ...], path: str) -> ExtenderChain | None:
        """Return a chain of the extenders; None if there are no extenders.

        The first extender that needs whole nodes makes this method wait for their first list.

        Raises
        ------
        ConfigError
            When a TLS configuration cannot be used, or the list does not arrive in time.
        """
        if not extenders:
            return None
        whole_nodes = self._whole_nodes(path) if _wants_whole_nodes(extenders) else None
        objects = ApiWholeObjects(self._api, whole_nodes)
        try:
            chain = ExtenderChain(extenders, objects, self._loop, self._settle, self._write_fence)
        except ClientConfigError as error:
            raise ConfigError(path, str(error)) from error
        with self._lock:
            self._open.add(chain)
        return chain

    def release(self, chain: ExtenderChain | None) -> None:
        """Close a chain that no profile has any more, after its last request has ended."""
        if chain is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended and everything is closed
            self._loop.call_soon_threadsafe(self._close_later, chain)

    async def close(self) -> None:
        """Close all connections."""
        with self._lock:
            chains, self._open = self._open, set()
        for chain in chains:
            await chain.close()

    def _close_later(self, chain: ExtenderChain) -> None:
        self._loop.call_later(CLOSE_AFTER_S, self._close_if_idle, chain)

    def _close_if_idle(self, chain: ExtenderChain) -> None:
        if chain.requests_in_flight:
            self._close_later(chain)
            return
        with self._lock:
            if chain not in self._open:
                return
            self._open.discard(chain)
        self._closing = self._loop.create_task(chain.close(), name="extenders-close")

    def _whole_nodes(self, path: str) -> Informer[WholeObject]:
        if _is_running(self._loop):
            return self._informer()
        try:
            future = asyncio.run_coroutine_threadsafe(self._synced_informer(), self._loop)
            return future.result(FIRST_LIST_S)
        except TimeoutError as error:
            future.cancel()
            raise ConfigError(path, f"nodes could not be listed in {FIRST_LIST_S:g} s") from error

    async def _synced_informer(self) -> Informer[WholeObject]:
        informer = self._informer()
        await informer.wait_synced()
        return informer

    def _informer(self) -> Informer[WholeObject]:
        return self._whole_objects.informer(self._nodes, transform=own_bytes)


def _wants_whole_nodes(extenders: tuple[Extender, ...]) -> bool:
    return any(
        (extender.filter_verb or extender.prioritize_verb) and not extender.node_cache_capable
        for extender in extenders
    )


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this is the loop's own thread.

    It is at the start, when lists are waited for later.
    """
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
