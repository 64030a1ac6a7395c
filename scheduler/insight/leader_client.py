"""Asks the leader's insight endpoints, with the user's own kubeconfig.

    Lease -> the leader's pod -> port-forward through the API server -> TLS -> HTTP

The leader may change at any time: what was under way then is asked again, for some seconds.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import msgspec

from scheduler.client.errors import ApiError
from scheduler.client.leases import Leases
from scheduler.client.transport import Transport
from scheduler.insight.port_forward import SecureTunnel, TunnelError, port_forward
from scheduler.insight.refused import NOT_LEADING
from scheduler.process.version import VERSION
from scheduler.serving.options import SECURE_PORT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.client.credentials import Credentials

NAMESPACE: Final = "berth-system"
LEASE: Final = "berth"

PATIENCE_S: Final = 20.0
"""For how long a question is asked again while the leader changes: longer than a handover takes."""

ANSWER_S: Final = 90.0
"""How long one answer may take."""

MAX_ANSWER_BYTES: Final = 64 << 20

_AGAIN_S: Final = 1.0
_LEASE_S: Final = 10.0


class AskError(Exception):
    """There is no answer; the message is one sentence for the user.

    Attributes
    ----------
    status
        That of the leader's response, as of HTTP; None where there was none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _MovedError(Exception):
    """The leader has changed, or is about to."""


@dataclass(frozen=True, slots=True)
class LeaderAddress:
    """Where the leader is found.

    Attributes
    ----------
    namespace, lease
        Of its Lease; the pod is in the same namespace.
    port
        Of its HTTPS server.
    """

    namespace: str = NAMESPACE
    lease: str = LEASE
    port: int = SECURE_PORT


class LeaderClient:
    """Asks the leader.

    Parameters
    ----------
    credentials
        The user's.
    address
        Where the leader is found.

    Notes
    -----
    *Concurrency*: loop-confined; several questions may be under way.
    """

    def __init__(self, credentials: Credentials, address: LeaderAddress | None = None) -> None:
        self._credentials = credentials
        self._address = address or LeaderAddress()
        self._transport = Transport(credentials, user_agent=f"berth/{VERSION} (insight)")
        where = self._address
        self._leases = Leases(self._transport, where.namespace, where.lease)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def ask(
        self, name: str, query: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> bytes:
        """Return the JSON answer of ``/insight/v1/NAME``.

        Parameters
        ----------
        body
            Sent by POST; None for a GET.

        Raises
        ------
        AskError
            There is none.
        """
        path = f"/insight/v1/{quote(name)}" + (f"?{urlencode(query)}" if query else "")
        until_s = time.monotonic() + PATIENCE_S
        leaders: list[str] = []
        while True:
            try:
                pod = await self._leader()
                if pod not in leaders:
                    leaders.append(pod)
                async with asyncio.timeout(ANSWER_S):
                    return await self._ask_pod(pod, path, body)
            except TimeoutError as error:
                raise AskError(f"the leader has not answered within {ANSWER_S:g} s") from error
            except _MovedError as error:
                if time.monotonic() + _AGAIN_S > until_s:
                    raise AskError(_moved(leaders, error)) from error
            await asyncio.sleep(_AGAIN_S)

    async def _leader(self) -> str:
        """Return the name of the leader's pod.

        Raises
        ------
        AskError, _MovedError
            The Lease cannot be read; nobody holds it.
        """
        where = self._address
        try:
            lease = await self._leases.get(timeout_s=_LEASE_S)
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                why = f"you may not read the Lease {self._leases}, which names the leader"
                raise AskError(f"{why}; docs/why.md lists the rights that asking takes") from error
            raise AskError(f"the Lease {self._leases} cannot be read: {error}") from error
        if lease is None:
            raise AskError(
                f"there is no Lease {self._leases}: is Berth in the namespace {where.namespace}? "
                "See --berth-namespace and --lease"
            )
        if not lease.record.holder:
            raise _MovedError("nobody leads at present")
        # The name of the pod, and a part of its own for each start of the process.
        return lease.record.holder.rpartition("_")[0] or lease.record.holder

    async def _ask_pod(self, pod: str, path: str, body: bytes | None) -> bytes:
        where = self._address
        try:
            async with port_forward(self._credentials, where.namespace, pod, where.port) as tunnel:
                secure = SecureTunnel(tunnel, self._credentials.unverified_context())
                await secure.handshake()
                await secure.send(await self._request(path, body))
                status, answer = _response(await secure.receive_all(MAX_ANSWER_BYTES))
        except TunnelError as error:
            if error.status in (401, 403):
                raise AskError(
                    f"you may not forward ports of pods in the namespace {where.namespace}: that "
                    "takes get and create on pods/portforward",
                    error.status,
                ) from error
            raise _MovedError(str(error)) from error
        if status == 200:
            return answer
        raise _refusal(status, answer)

    async def _request(self, path: str, body: bytes | None) -> bytes:
        header = await self._credentials.auth_header()
        lines = [
            f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
            "Host: leader",
            f"User-Agent: berth/{VERSION} (insight)",
            "Connection: close",
        ]
        if header is not None:
            lines.append(f"Authorization: {header}")
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class _Received:
    """What was received, as :class:`http.client.HTTPResponse` reads it."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def makefile(self, _: str) -> io.BytesIO:
        return io.BytesIO(self._received)


def _response(received: bytes) -> tuple[int, bytes]:
    """Return status and body of a response.

    Raises
    ------
    _MovedError
        It is not complete.
    """
    if b"\r\n\r\n" not in received:  # http.client takes a head that was cut for a whole one
        raise _MovedError("the leader ended in the middle of its answer")
    response = http.client.HTTPResponse(_Received(received))  # type: ignore[arg-type]
    try:
        response.begin()
        return response.status, response.read()
    except (http.client.HTTPException, OSError) as error:
        raise _MovedError("the leader ended in the middle of its answer") from error


class _Status(msgspec.Struct, frozen=True):
    message: str = ""
    reason: str = ""


def _refusal(status: int, answer: bytes) -> Exception:
    try:
        found = msgspec.json.decode(answer, type=_Status)
    except msgspec.MsgspecError:
        found = _Status(answer[:200].decode("utf-8", "replace").strip())
    if found.reason == NOT_LEADING:
        return _MovedError("the replica that the Lease names does not schedule")
    if status == 401:
        return AskError(
            "the leader does not know you: it accepts tokens that the API server reviews, and "
            "client certificates of the cluster, and your kubeconfig has neither",
            status,
        )
    if status == 404 and not found.reason:
        return AskError("the leader is of an older version, which answers no questions", status)
    return AskError(found.message or f"the leader responded with {status}", status)


def _moved(leaders: list[str], error: Exception) -> str:
    if len(leaders) > 1:
        return f"the leader changed from {leaders[0]} to {leaders[-1]} meanwhile: ask again"
    return f"no leader has answered within {PATIENCE_S:g} s: {error}"
