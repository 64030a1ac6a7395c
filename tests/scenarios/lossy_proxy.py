"""A proxy on loopback before a real API server, which takes single lines out of watches.

It speaks HTTP to its clients and TLS to the API server. A line that is taken is overwritten with
newlines, which mean nothing in a watch, so that the lengths of chunks stay right.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from typing import TYPE_CHECKING, Self

import yaml

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.controlplane.control_plane import ControlPlane


class LossyProxy:
    """A proxy in a thread of its own.

    Attributes
    ----------
    taken
        Type of event and name of the object of each line that was taken.

    Notes
    -----
    *Concurrency*: :meth:`take` and ``taken`` from any thread.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._host, _, port = plane.url.removeprefix("https://").partition(":")
        self._port = int(port)
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._wanted: list[tuple[str, str]] = []
        self.taken: list[tuple[str, str]] = []
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._stop = asyncio.Event()
        self._own_port = 0
        self._thread = threading.Thread(target=self._run, name="lossy-proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def kubeconfig(self, original: Path) -> Path:
        """Write and return a copy of a kubeconfig that leads through here."""
        content = yaml.safe_load(original.read_text())
        content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self._own_port}"}
        path = original.with_name(f"lossy-{original.name}")
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        return path

    def take(self, event_type: str, name: str) -> None:
        """Take the next line of that type about the object of that name out of a watch."""
        self._wanted.append((event_type, name))

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._connect(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
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
                head = await reader.readuntil(b"\r\n\r\n")
                far_reader, far_writer = await asyncio.open_connection(
                    self._host, self._port, ssl=self._tls
                )
                far_writer.write(head)
                back = self._lines if b"watch=true" in head else _bytes
                async with asyncio.TaskGroup() as group:
                    there = group.create_task(_bytes(reader, far_writer))
                    await back(far_reader, writer)
                    there.cancel()
        finally:
            for each in (writer, far_writer):
                if each is not None:
                    each.transport.abort()

    async def _lines(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = b""
        while data := await reader.read(1 << 16):
            *lines, left = (left + data).split(b"\n")
            for line in lines:
                writer.write(self._passed(line) + b"\n")
            await writer.drain()

    def _passed(self, line: bytes) -> bytes:
        for wanted in self._wanted:
            event_type, name = (each.encode() for each in wanted)
            if line.startswith(b'{"type":"%b"' % event_type) and b'"name":"%b"' % name in line:
                self._wanted.remove(wanted)
                self.taken.append(wanted)
                return b"\n" * len(line)
        return line


async def _bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
