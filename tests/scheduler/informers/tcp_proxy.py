"""A TCP proxy on loopback whose connections can be cut or frozen: a network that fails."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class TcpProxy:
    """Pass bytes on to `port`, from a port of its own; an async context manager.

    Entered again, it listens where it did before.

    Concurrency: loop-confined.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()
        while self._tasks or self._writers:
            self.cut()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._writers) // 2

    def cut(self) -> None:
        """Reset all connections; new ones are welcome."""
        for writer in self._writers:
            writer.transport.abort()

    def freeze(self, *, new_too: bool = True) -> None:
        """Pass nothing on, in connections that are opened later neither if `new_too`."""
        self._flowing.clear()
        if not new_too:
            self._flowing = asyncio.Event()
            self._flowing.set()

    def thaw(self) -> None:
        """Pass on again what comes."""
        self._flowing.set()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pipe(source, sink, self._flowing))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pipe(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, flowing: asyncio.Event
    ) -> None:
        try:
            with contextlib.suppress(OSError):
                while data := await source.read(1 << 16):
                    await flowing.wait()
                    sink.write(data)
                    await sink.drain()
        finally:
            sink.transport.abort()
            self._writers.discard(sink)
