"""A proxy before a real API server that lets some writes fail.

They fail as they do behind a load balancer: the connection breaks or an error comes back, before
the request was passed on or after it was carried out.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.controlplane.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.controlplane.control_plane import ControlPlane

BINDS: Final = "bind"
CLAIMS: Final = "claim"


class Fault(enum.Enum):
    """How a write fails: whether it is carried out, and what is answered."""

    REFUSED = "refused by admission (403), not carried out"
    UNAVAILABLE = "answered 503, not carried out"
    NOT_SENT = "connection broken, not carried out"
    ERROR_AFTER = "answered 500, carried out"
    ANSWER_LOST = "connection broken, carried out"
    CONFLICT = "answered 409, not carried out"
    ERROR_BEFORE = "answered 500, not carried out"
    NO_ANSWER = "no answer until the client gives up, carried out"

    @property
    def is_carried_out(self) -> bool:
        """Whether the API server gets the request."""
        return self in (Fault.ERROR_AFTER, Fault.ANSWER_LOST, Fault.NO_ANSWER)


UNSEEN_OR_REFUSED: Final = (
    Fault.REFUSED,
    Fault.UNAVAILABLE,
    Fault.NOT_SENT,
    Fault.ERROR_AFTER,
    Fault.ANSWER_LOST,
)

_ANSWERS: Final[Mapping[Fault, tuple[int, str, str]]] = {
    Fault.REFUSED: (403, "Forbidden", 'admission webhook "test" denied the request: at random'),
    Fault.UNAVAILABLE: (503, "ServiceUnavailable", "no endpoint is available"),
    Fault.ERROR_AFTER: (500, "InternalError", "something broke on the way back"),
    Fault.CONFLICT: (409, "Conflict", "the object has been modified"),
    Fault.ERROR_BEFORE: (500, "InternalError", "something broke on the way"),
}


class _Message(NamedTuple):
    """A request or an answer: its first line, its headers in lower case, and all its bytes."""

    start: str
    headers: dict[str, str]
    content: bytes


class FailingProxy(Proxy):
    """A proxy in a thread of its own.

    Parameters
    ----------
    rates
        The share of requests that fail, by ``bind`` (POST of a binding) and ``claim`` (PATCH of a
        ResourceClaim or its status).
    seed
        For which of them fail.
    faults
        How they fail; each has its turn.

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

    def __init__(
        self,
        plane: ControlPlane,
        rates: Mapping[str, float],
        seed: int,
        faults: Sequence[Fault] = UNSEEN_OR_REFUSED,
    ) -> None:
        super().__init__(plane, "failing")
        self._rates = rates
        self._rng = random.Random(seed)
        self._pass_on = {kind: self._gap(kind) for kind in rates}
        self._faults = {kind: itertools.cycle(faults) for kind in rates}
        self.requests: Counter[str] = Counter()
        self.failed: Counter[tuple[str, Fault]] = Counter()

    async def carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        """Pass request by request."""
        while await self._pass(reader, writer, far_reader, far_writer):
            pass

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
        if fault is Fault.NO_ANSWER:
            await reader.read(1)
            return False
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
