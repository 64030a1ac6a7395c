"""A proxy on loopback before a real API server; subclasses say how a connection is passed on.

It speaks HTTP to its clients and TLS to the API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Self

import yaml

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.controlplane.control_plane import ControlPlane

_LIMIT_BYTES: Final = 1 << 20
_DEADLINE_S: Final = 10.0


class Proxy(ABC):
    """A proxy in a thread of its own.

    Parameters
    ----------
    name
        Of the thread, and of the files of :meth:`kubeconfig`.

    Notes
    -----
    *Concurrency*: :meth:`carry` is called on the event loop of that thread.
    """

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self._name = name
        self._host, _, port = plane.url.removeprefix("https://").partition(":")
        self._port = int(port)
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._stop = asyncio.Event()
        self._own_port = 0
        self._thread = threading.Thread(target=self._run, name=f"{name}-proxy")

    @abstractmethod
    async def carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        """Pass what a client sends to the API server, and the answers back, until one ends.

        An OSError or IncompleteReadError ends the connection as well.
        """

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(_DEADLINE_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_DEADLINE_S)
        assert not self._thread.is_alive()

    def kubeconfig(self, original: Path) -> Path:
        """Write and return a copy of a kubeconfig that leads through the proxy."""
        content = yaml.safe_load(original.read_text())
        content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self._own_port}"}
        path = original.with_name(f"{self._name}-{original.name}")
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        return path

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._connect(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=_LIMIT_BYTES)
        self._own_port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._stop.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_writer: asyncio.StreamWriter | None = None
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                far_reader, far_writer = await asyncio.open_connection(
                    self._host, self._port, ssl=self._tls, limit=_LIMIT_BYTES
                )
                await self.carry(reader, writer, far_reader, far_writer)
        finally:
            for each in (writer, far_writer):
                if each is not None:
                    each.transport.abort()
