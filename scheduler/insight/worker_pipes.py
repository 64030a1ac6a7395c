"""A child process with pipes to it, started without holding up the event loop.

uvloop starts a process by ``fork`` on the loop's thread, and waits until the child runs its
program. With 300 MB in memory the copy of the page tables takes 17 ms of CPU, and the child has to
find a free core. :class:`subprocess.Popen` uses ``vfork``, which copies nothing, and a thread waits
for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from typing import TYPE_CHECKING

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self


class WorkerPipes(Value, frozen=True):
    """A child process.

    Attributes
    ----------
    source
        What it writes.
    sink
        What it reads.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    source: asyncio.StreamReader
    sink: asyncio.StreamWriter
    _process: subprocess.Popen[bytes]
    _reading: asyncio.ReadTransport

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> Self:
        """Start a process.

        Raises
        ------
        OSError
            When it cannot be started.
        """
        loop = asyncio.get_running_loop()
        process = await asyncio.to_thread(
            subprocess.Popen,
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            bufsize=0,
        )
        source = asyncio.StreamReader()
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(source), process.stdout
        )
        writing, flow = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, process.stdin
        )
        return cls(source, asyncio.StreamWriter(writing, flow, None, loop), process, reading)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await asyncio.to_thread(self._process.wait)

    async def end(self) -> None:
        """Kill the process, close the pipes, and wait for its end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self.sink.close()
        self._reading.close()
        await self.wait()
