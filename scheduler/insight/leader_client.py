"""Asks the leader's insight endpoints, with the user's own kubeconfig.

    Lease -> the leader's pod -> port-forward through the API server -> TLS -> HTTP

The Lease names the leader's pod and contains its certificate; a server with another certificate
receives nothing. The connection is kept for some seconds, for the next question. The leader may
change at any time: what was under way then is asked again, for some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import msgspec

from scheduler.client.errors import ApiError, ClientConfigError
from scheduler.client.leases import Leases
from scheduler.client.transport import Transport
from scheduler.insight.leader_connection import (
    CutResponseError,
    IdleConnections,
    LeaderConnection,
)
from scheduler.insight.port_forward import CertificateError, TunnelError
from scheduler.insight.refused import NOT_LEADING
from scheduler.process.version import VERSION
from scheduler.serving.options import SECURE_PORT

if TYPE_CHECKING:
    import ssl
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
    status, reason
        Those of the leader's response, as of HTTP, and a word for programs; None and empty where
        no leader has responded.
    """

    def __init__(self, message: str, status: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class _MovedError(Exception):
    """The leader has changed, or is about to."""


class _WrongCertificateError(_MovedError):
    """The leader's certificate is not that of the Lease, maybe since the Lease is about to change.

    The message is a sentence of its own.
    """


@dataclass(frozen=True, slots=True)
class _Leader:
    """Who leads.

    Attributes
    ----------
    pod
        The name of the pod.
    certificate
        That of its HTTPS server as the Lease has it, as PEM; empty for none.
    """

    pod: str
    certificate: str


@dataclass(frozen=True, slots=True)
class LeaderAddress:
    """Where the leader is found.

    Attributes
    ----------
    namespace, lease
        Of its Lease; the pod is in the same namespace.
    port
        Of its HTTPS server.
    ca_file
        The authorities that have signed the leader's certificate, as PEM; empty for the certificate
        that the leader has published in the Lease.
    server_name
        The name that a certificate of these authorities must have; empty for
        ``LEASE.NAMESPACE.svc``, which is that of the chart's Service.
    """

    namespace: str = NAMESPACE
    lease: str = LEASE
    port: int = SECURE_PORT
    ca_file: str = ""
    server_name: str = ""


class LeaderClient:
    """Asks the leader.

    Parameters
    ----------
    credentials
        The user's.
    address
        Where the leader is found.

    Attributes
    ----------
    leader
        The pod that has answered last; empty before the first answer.

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
        self._idle = IdleConnections()
        self.leader = ""

    async def close(self) -> None:
        """Close the connections."""
        await self._idle.close()
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
        kept = await self._idle.take()
        if kept is not None:
            # What has become of its leader meanwhile is found out below.
            with contextlib.suppress(TunnelError, CutResponseError, _MovedError, TimeoutError):
                async with asyncio.timeout(ANSWER_S):
                    return await self._ask_over(kept, path, body)
        until_s = time.monotonic() + PATIENCE_S
        leaders: list[str] = []
        while True:
            try:
                leader = await self._leader()
                if leader.pod not in leaders:
                    leaders.append(leader.pod)
                async with asyncio.timeout(ANSWER_S):
                    answer = await self._ask_leader(leader, path, body)
                self.leader = leader.pod
                return answer
            except TimeoutError as error:
                raise AskError(f"the leader has not answered within {ANSWER_S:g} s") from error
            except _MovedError as error:
                if time.monotonic() + _AGAIN_S > until_s:
                    raise AskError(_moved(leaders, error)) from error
            await asyncio.sleep(_AGAIN_S)

    async def _leader(self) -> _Leader:
        """Return who leads.

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
        pod = lease.record.holder.rpartition("_")[0] or lease.record.holder
        return _Leader(pod, lease.certificate)

    def _context(self, leader: _Leader) -> ssl.SSLContext:
        """Return what verifies the leader.

        Raises
        ------
        AskError, _MovedError
            A certificate cannot be used; the leader has published none.
        """
        where = self._address
        if not where.ca_file and not leader.certificate:
            raise _MovedError(
                f"{leader.pod} has not published its certificate in the Lease {self._leases}; "
                "a leader of an older version never does"
            )
        try:
            if where.ca_file:
                return self._credentials.context_for(ca_file=where.ca_file)
            return self._credentials.context_for(certificate=leader.certificate)
        except ClientConfigError as error:
            whose = where.ca_file or f"the certificate in the Lease {self._leases}"
            raise AskError(f"{whose} cannot be used: {error}") from error

    async def _ask_leader(self, leader: _Leader, path: str, body: bytes | None) -> bytes:
        where, pod = self._address, leader.pod
        context = self._context(leader)
        name = where.server_name or f"{where.lease}.{where.namespace}.svc"
        try:
            connection = await LeaderConnection.open(
                self._credentials, (where.namespace, pod, where.port), context, name
            )
            return await self._ask_over(connection, path, body)
        except CutResponseError as error:
            raise _MovedError(str(error)) from error
        except CertificateError as error:
            if where.ca_file:
                raise AskError(
                    f"the certificate of {where.namespace}/{pod} is refused, and nothing was sent "
                    f"to it: {error}"
                ) from error
            raise _WrongCertificateError(
                f"{where.namespace}/{pod} has another certificate than the Lease {self._leases} "
                f"says, and nothing was sent to it: {error}"
            ) from error
        except TunnelError as error:
            if error.status in (401, 403):
                raise AskError(
                    f"you may not forward ports of pods in the namespace {where.namespace}: that "
                    "takes get and create on pods/portforward"
                ) from error
            raise _MovedError(str(error)) from error

    async def _ask_over(self, connection: LeaderConnection, path: str, body: bytes | None) -> bytes:
        """Ask over a connection, and keep it for the next question if it can be used again."""
        refusal: Exception | None = None
        try:
            request = await self._request(path, body)
            status, answer = await connection.ask(request, MAX_ANSWER_BYTES)
            refusal = None if status == 200 else _refusal(status, answer)
        except BaseException:
            await connection.close()
            raise
        if isinstance(refusal, _MovedError):
            await connection.close()
        else:
            await self._idle.put(connection)
        if refusal is not None:
            raise refusal
        return answer

    async def _request(self, path: str, body: bytes | None) -> bytes:
        header = await self._credentials.auth_header()
        lines = [
            f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
            "Host: leader",
            f"User-Agent: berth/{VERSION} (insight)",
        ]
        if header is not None:
            lines.append(f"Authorization: {header}")
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


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
    message = found.message or f"the leader responded with {status}"
    return AskError(message, status, found.reason)


def _moved(leaders: list[str], error: Exception) -> str:
    if isinstance(error, _WrongCertificateError):
        return str(error)
    if len(leaders) > 1:
        return f"the leader changed from {leaders[0]} to {leaders[-1]} meanwhile: ask again"
    return f"no leader has answered within {PATIENCE_S:g} s: {error}"
