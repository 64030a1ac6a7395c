"""A proxy before a real API server that takes single lines out of watches.

A line that is taken is overwritten with newlines, which mean nothing in a watch, so that the
lengths of chunks stay right.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tests.controlplane.proxy import Proxy

if TYPE_CHECKING:
    from tests.controlplane.control_plane import ControlPlane


class LossyProxy(Proxy):
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
        super().__init__(plane, "lossy")
        self._wanted: list[tuple[str, str]] = []
        self.taken: list[tuple[str, str]] = []

    def take(self, event_type: str, name: str) -> None:
        """Take the next line of that type about the object of that name out of a watch."""
        self._wanted.append((event_type, name))

    async def carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        """Pass bytes, and the answer to a watch line by line."""
        head = await reader.readuntil(b"\r\n\r\n")
        far_writer.write(head)
        back = self._lines if b"watch=true" in head else _bytes
        async with asyncio.TaskGroup() as group:
            there = group.create_task(_bytes(reader, far_writer))
            await back(far_reader, writer)
            there.cancel()

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
