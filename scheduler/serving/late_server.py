"""Start the HTTP server in the background: it listens at once and responds a little later.

The HTTP modules take a quarter of a second to import, and a certificate may have to be generated.
At the start, pods could already be placed in that time. Clients that connect meanwhile wait.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from scheduler.serving.listener import listeners

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scheduler.serving.listener import Listener
    from scheduler.serving.options import ServingOptions
    from scheduler.serving.server import Server

PATIENCE_S: Final = 5.0
"""So long whoever asks has to wait at most, whatever else there is to be done."""

_LOOK_AGAIN_S: Final = 0.05


class LateServer:
    """Listens, and hands what arrives to a server that is made later.

    Parameters
    ----------
    options
        Where.
    make
        Makes the server, on a thread of its own; may import what it needs.
    is_busy
        Whether there is something more urgent than to make it.
    on_failure
        Called on the loop when that fails.

    Attributes
    ----------
    failure
        Why there is no server.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        options: ServingOptions,
        make: Callable[[Sequence[Listener]], Server],
        is_busy: Callable[[], bool],
        on_failure: Callable[[], None],
    ) -> None:
        self._options = options
        self._make = make
        self._is_busy = is_busy
        self._on_failure = on_failure
        self._listeners: Sequence[Listener] = ()
        self._wanted = asyncio.Event()
        self._starting: asyncio.Task[None] | None = None
        self._server: Server | None = None
        self.failure: Exception | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The URLs it is reached by."""
        return tuple(listener.url for listener in self._listeners)

    @property
    def address(self) -> str:
        """``host:port`` in plain text if that is served, else of HTTPS; empty for neither."""
        return self._listeners[-1].address if self._listeners else ""

    @property
    def certificate(self) -> str:
        """The certificate of HTTPS as PEM; empty as long as there is none."""
        found = (each.certificate for each in self._listeners)
        return next((each.pem for each in found if each is not None), "")

    def listen(self) -> None:
        """Take the ports.

        Raises
        ------
        ServerError
            An address is none or taken, or the given certificate cannot be used.
        """
        self._listeners = listeners(self._options)
        for each in self._listeners:
            each.listen()
        self._starting = asyncio.create_task(self._start())

    def answer(self) -> None:
        """Answer as soon as nobody is busy."""
        self._wanted.set()

    async def stop(self) -> None:
        """Listen no more, let the requests under way end, and close all connections."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._server is not None:
            await self._server.stop()
        for each in self._listeners:
            await each.stop()

    async def _start(self) -> None:
        reasons = [asyncio.create_task(self._at_leisure())]
        reasons += [asyncio.create_task(_asked(each)) for each in self._listeners]
        try:
            await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in reasons:
                each.cancel()
            await asyncio.gather(*reasons, return_exceptions=True)
        try:
            # Off the loop: it imports, and may make a certificate.
            self._server = await asyncio.to_thread(self._make, self._listeners)
            await self._server.start()
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody has to be told
            self.failure = error
            self._on_failure()

    async def _at_leisure(self) -> None:
        await self._wanted.wait()
        while self._is_busy():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_LOOK_AGAIN_S)


async def _asked(listener: Listener) -> None:
    """Wait for somebody who asks, and let them wait."""
    await listener.knocked()
    await asyncio.sleep(PATIENCE_S)
