"""Connects to a port of a pod through the API server, as ``kubectl port-forward`` does.

The API server checks the user's right to ``pods/portforward`` and hands the connection to the
node's kubelet. Inside, TLS goes from end to end, so that neither sees the user's proof of identity.

*Source*: k8s.io/kubelet pkg/cri/streaming/portforward/websocket.go (0.36): the protocol
``v4.channel.k8s.io`` has two channels for each port, data and errors; the first message of each is
the port's number.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import aiohttp

from scheduler.client.paths import segment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scheduler.client.credentials import Credentials

PROTOCOL: Final = "v4.channel.k8s.io"

_DATA: Final = 0
_ERRORS: Final = 1
_PORT_BYTES: Final = 2
_CHUNK_BYTES: Final = 1 << 16

_TLS_END_S: Final = 0.1
"""aiohttp ends the TLS of a connection in the background, and the loop may end before."""


class TunnelError(ConnectionError):
    """The connection cannot be made, or has ended; the message is one sentence.

    Attributes
    ----------
    status
        Of the API server's refusal; None where the connection ended.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class CertificateError(TunnelError):
    """The server's certificate is not the expected one; nothing has been sent to it."""


@asynccontextmanager
async def port_forward(
    credentials: Credentials, namespace: str, pod: str, port: int
) -> AsyncIterator[Tunnel]:
    """Connect to a port of a pod.

    Raises
    ------
    TunnelError
        The API server refuses, or cannot be reached.
    """
    path = f"/api/v1/namespaces/{segment(namespace)}/pods/{segment(pod)}/portforward"
    header = await credentials.auth_header()
    async with aiohttp.ClientSession() as session:
        try:
            socket = await session.ws_connect(
                f"{credentials.base_url}{path}",
                params={"ports": str(port)},
                protocols=(PROTOCOL,),
                headers={} if header is None else {"Authorization": header},
                ssl=credentials.ssl_context or True,
                server_hostname=credentials.tls_server_name,
                proxy=credentials.proxy,
                max_msg_size=0,
            )
        except aiohttp.WSServerHandshakeError as error:
            await asyncio.sleep(_TLS_END_S)
            raise TunnelError(f"port-forward to {namespace}/{pod}", error.status) from error
        except (aiohttp.ClientError, OSError) as error:
            raise TunnelError(f"the API server cannot be reached: {error}") from error
        try:
            async with socket:
                yield Tunnel(socket, port)
        finally:
            await asyncio.sleep(_TLS_END_S)


class Tunnel:
    """A stream of bytes to one port of a pod.

    Notes
    -----
    *Concurrency*: loop-confined; one reader and one writer.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, port: int) -> None:
        self._socket = socket
        self._port = port
        self._greeted: set[int] = set()

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        for start in range(0, len(data), _CHUNK_BYTES):
            part = data[start : start + _CHUNK_BYTES]
            try:
                await self._socket.send_bytes(bytes([_DATA]) + part)
            except (aiohttp.ClientError, ConnectionError) as error:
                raise TunnelError("the connection to the pod has ended") from error

    async def receive(self) -> bytes:
        """Return the next bytes; none at the end.

        Raises
        ------
        TunnelError
            The pod does not listen there, or its node cannot reach it.
        """
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return b""
            channel, data = message.data[0], message.data[1:]
            if channel not in self._greeted:
                self._greeted.add(channel)
                data = data[_PORT_BYTES:]
            if not data:
                continue
            if channel == _ERRORS:
                why = data.decode("utf-8", "replace").strip()
                raise TunnelError(f"the pod's port {self._port} cannot be reached: {why[:300]}")
            return bytes(data)


class SecureTunnel:
    """TLS inside a tunnel.

    Parameters
    ----------
    tunnel
        Connected.
    context
        Verifies the server, and shows the user's certificate.
    server_name
        The name that the server has to prove, if the context verifies names.
    """

    def __init__(self, tunnel: Tunnel, context: ssl.SSLContext, server_name: str = "") -> None:
        self._tunnel = tunnel
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._in, self._out, server_hostname=server_name if context.check_hostname else None
        )

    async def handshake(self) -> None:
        """Agree on keys.

        Raises
        ------
        CertificateError
            The server's certificate is not the expected one.
        TunnelError
            The server does not accept our certificate, or speaks no TLS.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
                continue
            except ssl.SSLCertVerificationError as error:
                raise CertificateError(error.verify_message) from error
            except ssl.SSLError as error:
                raise TunnelError(f"the leader refuses the connection: {error.reason}") from error
            await self._flush()
            return

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        self._tls.write(data)
        await self._flush()

    async def receive(self) -> bytes:
        """Return the next bytes; none at the end of the connection.

        Raises
        ------
        TunnelError
            The server refuses our certificate.
        """
        while True:
            try:
                return self._tls.read(_CHUNK_BYTES)
            except ssl.SSLWantReadError:
                if not await self._fill():
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except ssl.SSLError as error:
                # With TLS 1.3 the verdict on our certificate comes after the handshake.
                raise TunnelError(f"the leader refuses the connection: {error.reason}") from error

    async def _flush(self) -> None:
        if data := self._out.read():
            await self._tunnel.send(data)

    async def _fill(self) -> bool:
        data = await self._tunnel.receive()
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()
        return bool(data)
