"""A proxy on loopback before a real API server, which lets some writes fail.

It speaks HTTP to its clients and TLS to the API server, request by request. What fails does so as
it does behind a load balancer: the connection breaks or an error comes back, before the request was
passed on or after it was carried out.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import itertools
import json
import random
import ssl
import threading
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from tests.controlplane.control_plane import ControlPlane

BINDS: Final = "bind"
CLAIMS: Final = "claim"

_LIMIT_BYTES: Final = 1 << 20


class Fault(enum.Enum):
    """How a write fails: whether it is carried out, and what is answered."""

    REFUSED = "refused by admission (403), not carried out"
    UNAVAILABLE = "answered 503, not carried out"
    NOT_SENT = "connection broken, not carried out"
    ERROR_AFTER = "answered 500, carried out"
    ANSWER_LOST = "connection broken, carried out"

    @property
    def is_carried_out(self) -> bool:
        """Whether the API server gets the request."""
        return self in (Fault.ERROR_AFTER, Fault.ANSWER_LOST)


_ANSWERS: Final[Mapping[Fault, tuple[int, str, str]]] = {
    Fault.REFUSED: (403, "Forbidden", 'admission webhook "test" denied the request: at random'),
    Fault.UNAVAILABLE: (503, "ServiceUnavailable", "no endpoint is available"),
    Fault.ERROR_AFTER: (500, "InternalError", "something broke on the way back"),
}


class _Message(NamedTuple):
    """A request or an answer: its first line, its headers in lower case, and all its bytes."""

    start: str
    headers: dict[str, str]
    content: bytes


class FailingProxy:
    """A proxy in a thread of its own.

    Parameters
    ----------
    rates
        The share of requests that fail, by ``bind`` (POST of a binding) and ``claim`` (PATCH of a
        ResourceClaim or its status).
    seed
        For which of them fail. Each :class:`Fault` has its turn.

    Attributes
    ----------
    requests
        How many requests came, by the same names.
    failed
        How many failed, by name and :class:`Fault`.

    Notes
    -----
    *Concurrency*: the attributes may be read by any thread.
    """

    def __init__(self, plane: ControlPlane, rates: Mapping[str, float], seed: int) -> None:
        self._host, _, port = plane.url.removeprefix("https://").partition(":")
        self._port = int(port)
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._rates = rates
        self._rng = random.Random(seed)
        self._pass_on = {kind: self._gap(kind) for kind in rates}
        self._faults = {kind: itertools.cycle(Fault) for kind in rates}
        self.requests: Counter[str] = Counter()
        self.failed: Counter[tuple[str, Fault]] = Counter()
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._stop = asyncio.Event()
        self._own_port = 0
        self._thread = threading.Thread(target=self._run, name="failing-proxy")

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
        """Write and return a copy of a kubeconfig that leads through the proxy."""
        content = yaml.safe_load(original.read_text())
        content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self._own_port}"}
        path = original.with_name(f"failing-{original.name}")
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        return path

    # --- which fail ---------------------------------------------------------------------------

    def _fault(self, request: _Message) -> Fault | None:
        kind = kind_of(request.start)
        if kind is None:
            return None
        self.requests[kind] += 1
        if not self._rates.get(kind):
            return None
        if self._pass_on[kind]:
            self._pass_on[kind] -= 1
            return None
        self._pass_on[kind] = self._gap(kind)
        fault = next(self._faults[kind])
        self.failed[kind, fault] += 1
        return fault

    def _gap(self, kind: str) -> int:
        """Return how many requests pass before the next one fails: a random number, but bounded."""
        rate = self._rates[kind]
        return self._rng.randrange(max(round(2 / rate) - 1, 1)) if rate else 0

    # --- how requests pass --------------------------------------------------------------------

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
                while await self._pass(reader, writer, far_reader, far_writer):
                    pass
        finally:
            for each in (writer, far_writer):
                if each is not None:
                    each.transport.abort()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> bool:
        """Pass one request and its answer; return whether the connection goes on."""
        request = await _read(reader)
        fault = self._fault(request)
        if fault is None or fault.is_carried_out:
            far_writer.write(request.content)
            if "watch=true" in request.start:
                await _until_either_ends(reader, writer, far_reader)
                return False
            answer = (await _read(far_reader)).content
        if fault is not None:
            if fault not in _ANSWERS:
                return False
            answer = _answer(*_ANSWERS[fault])
        writer.write(answer)
        await writer.drain()
        return True


def kind_of(start: str) -> str | None:
    """Return ``bind`` or ``claim`` for the first line of such a write, else None."""
    method, path, _ = start.split(" ", 2)
    if method == "POST" and path.partition("?")[0].endswith("/binding"):
        return BINDS
    return CLAIMS if method == "PATCH" and "/resourceclaims/" in path else None


def _answer(status: int, reason: str, message: str) -> bytes:
    body = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "reason": reason,
            "message": message,
            "code": status,
        }
    )
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


async def _read(reader: asyncio.StreamReader) -> _Message:
    """Read a message whose length its head gives, or that comes in chunks."""
    content = await reader.readuntil(b"\r\n\r\n")
    start, *lines = content.decode("latin-1").rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    if headers.get("transfer-encoding") == "chunked":
        size = -1
        while size:
            line = await reader.readuntil(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            content += line + await reader.readexactly(size + 2)
    else:
        content += await reader.readexactly(int(headers.get("content-length", "0")))
    return _Message(start, headers, content)


async def _until_either_ends(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far_reader: asyncio.StreamReader
) -> None:
    async def back() -> None:
        while data := await far_reader.read(1 << 16):
            writer.write(data)
            await writer.drain()

    tasks = {asyncio.ensure_future(back()), asyncio.ensure_future(reader.read(1))}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
