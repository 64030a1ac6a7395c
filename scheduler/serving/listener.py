"""Accept connections, with TLS or without, up to a limit.

A connection counts from its first byte, handshake included, so that neither many of them nor slow
ones can use up what the binds need: file descriptors. Above the limit, the client with the most
connections loses its oldest: a client that opens connections and leaves them idle must not keep
out the kubelet, which would end a healthy process.
"""

from __future__ import annotations

import asyncio
import os
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import structlog

from cache.value import MutableValue
from scheduler.serving.certificate import CertificateError, GivenCertificate

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from scheduler.serving.certificate import Certificate
    from scheduler.serving.options import ServingOptions

MAX_CONNECTIONS: Final = 100
"""Each costs a file descriptor, of which the binds need some too."""

_IPV6_HOST_BITS: Final = 64
"""One client has a whole network of IPv6 addresses, so that network counts as one address."""

_HANDSHAKE_S: Final = 5.0
_NO_DESCRIPTOR_S: Final = 1.0

log = structlog.get_logger(__name__)


class ServerError(Exception):
    """The server cannot start; the message is one sentence for a person."""


class _Connection(MutableValue, eq=False):
    """A connection, from its acceptance to its end.

    Parameters
    ----------
    client
        The address that it comes from.
    arriving
        The task that performs the handshake.
    transport
        None until the handshake is done.
    """

    client: str
    arriving: asyncio.Task[None] | None = None
    transport: asyncio.Transport | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        if self.transport is not None:
            return self.transport.is_closing()
        return self.arriving is not None and self.arriving.done()

    def end(self) -> None:
        """Close it without a word."""
        if self.transport is not None:
            self.transport.abort()
        elif self.arriving is not None:
            self.arriving.cancel()


class Listener:
    """One address that is listened on.

    Parameters
    ----------
    bind_address
        ``host:port``, ``[::1]:port`` or ``:port`` for all interfaces; port 0 takes a free one.
    is_secure
        Whether it speaks TLS; otherwise plain text.

    Attributes
    ----------
    certificate
        Asked for at each handshake where it is secure; has to be there before :meth:`start`.

    Raises
    ------
    ServerError
        `bind_address` is none.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, bind_address: str, *, is_secure: bool = False) -> None:
        self.is_secure = is_secure
        self.certificate: Certificate | None = None
        self._host, self._port = parse_bind_address(bind_address)
        self._bind_address = bind_address
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._connections: list[_Connection] = []

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http{'s' if self.is_secure else ''}://{self.address}"

    @property
    def address(self) -> str:
        """Where it listens, with the real port; what it was told before :meth:`listen`."""
        if self._socket is None:
            return self._bind_address
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def listen(self) -> None:
        """Take the port, unless that is done.

        Raises
        ------
        ServerError
            The port is taken, or the host is not one of this machine's.
        """
        if self._socket is not None:
            return
        try:
            self._socket = _listen(self._host, self._port)
        except OSError as error:
            raise ServerError(f"cannot listen on {self._bind_address}: {_reason(error)}") from error
        self._socket.setblocking(False)

    async def knocked(self) -> None:
        """Wait until somebody wants to connect; after :meth:`listen` and before :meth:`start`."""
        assert self._socket is not None  # noqa: S101 - listen() has been called
        loop, somebody = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._socket, somebody.set)
        try:
            await somebody.wait()
        finally:
            loop.remove_reader(self._socket)

    def start(self, server: web.Server) -> None:
        """Hand each connection to `server`."""
        self._accepting = asyncio.create_task(self._accept(server))

    async def stop(self) -> None:
        """Listen no more, and drop connections that have not arrived."""
        tasks = [each.arriving for each in self._connections if each.arriving is not None]
        if self._accepting is not None:
            tasks.append(self._accepting)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _accept(self, server: web.Server) -> None:
        loop, listening = asyncio.get_running_loop(), self._socket
        assert listening is not None  # noqa: S101 - listen() has been called
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except ConnectionError:
                continue  # it went away while it waited
            except OSError as error:
                log.error("cannot take a connection", error=_reason(error))
                await asyncio.sleep(_NO_DESCRIPTOR_S)
                continue
            is_full = len(self._connections) >= MAX_CONNECTIONS
            if is_full:
                self._make_room()
            connection = _Connection(_client(address[0]))
            connection.arriving = asyncio.create_task(self._arrive(connection, accepted, server))
            self._connections.append(connection)
            if is_full:
                # sock_accept does not wait while there is a queue, and those accepted before have
                # to be served before they are the oldest.
                await asyncio.sleep(0)

    def _make_room(self) -> None:
        """Forget connections that have ended; if that is not enough, end the oldest of a group.

        A group is what one client holds, handshakes that are under way apart from connections that
        are established: idle sockets of whoever shares its address do not evict the kubelet.
        """
        self._connections = [each for each in self._connections if not each.is_over]
        if len(self._connections) < MAX_CONNECTIONS:
            return
        groups: dict[tuple[str, bool], list[_Connection]] = {}
        for each in self._connections:
            groups.setdefault((each.client, each.transport is None), []).append(each)
        # Of groups that are alike the first is the one with the oldest connection.
        oldest = max(groups.values(), key=len)[0]
        self._connections.remove(oldest)
        oldest.end()

    async def _arrive(
        self,
        connection: _Connection,
        accepted: socket.socket,
        server: Callable[[], asyncio.Protocol],
    ) -> None:
        context = None if self.certificate is None else self.certificate.context()
        try:
            accepted.setblocking(False)
            connection.transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                server,
                accepted,
                ssl=context,
                ssl_handshake_timeout=None if context is None else _HANDSHAKE_S,
            )
        except OSError as error:  # ssl.SSLError and time-outs are, too
            log.debug("connection refused", error=str(error))
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise


def _client(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or a network of IPv6 addresses."""
    found = ip_address(address.partition("%")[0])
    if found.version == 4:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{int(found) >> _IPV6_HOST_BITS:x}"


def listeners(options: ServingOptions) -> tuple[Listener, ...]:
    """Return a listener for HTTPS, and one for plain text, as far as they are wanted.

    The certificate that was given is there already; one that is to be made is not.

    Raises
    ------
    ServerError
        An address is none, or the certificate cannot be used.
    """
    found = []
    if options.secure_port is not None:
        secure = Listener(joined(options.bind_address, options.secure_port), is_secure=True)
        secure.certificate = _given_certificate(options)
        found.append(secure)
    if options.insecure_bind_address is not None:
        found.append(Listener(options.insecure_bind_address))
    return tuple(found)


def _given_certificate(options: ServingOptions) -> GivenCertificate | None:
    cert_file, key_file = options.tls_cert_file, options.tls_private_key_file
    if not cert_file and not key_file:
        return None
    if not cert_file or not key_file:
        raise ServerError("a certificate and a private key are given together or not at all")
    try:
        return GivenCertificate(cert_file, key_file)
    except CertificateError as error:
        raise ServerError(str(error)) from error


def parse_bind_address(text: str) -> tuple[str, int]:
    """Return host and port of ``host:port``; the host is empty for all interfaces.

    Raises
    ------
    ServerError
        It is not of this form.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ServerError(f"bind address {text!r} is not host:port with a port from 0 to 65535")
    if ":" in bare and bare == host:
        raise ServerError(f"bind address {text!r}: an IPv6 address stands in brackets")
    return bare, int(port)


def joined(host: str, port: int) -> str:
    """Return ``host:port``, for :func:`parse_bind_address`."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family, _, _, _, address = socket.getaddrinfo(
        host or "0.0.0.0",  # noqa: S104 - what an empty host means
        port,
        type=socket.SOCK_STREAM,
        flags=socket.AI_PASSIVE,
    )[0]
    return socket.create_server((str(address[0]), port), family=family)


def _reason(error: OSError) -> str:
    # The numbers of gaierror are not the system's, and create_server adds the address to its text.
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or str(error)
    return os.strerror(error.errno)
