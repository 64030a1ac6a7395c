"""Send HTTP requests to the API server over pooled connections, and open streams beside them.

A request is bounded in every direction: by the limiter, by its timeout, by the size of the
response. A stream (a watch, or a list that is streamed) is bounded by silence only: it breaks when
nothing has come for `read_timeout_s`. Streams have connections of their own, so that no number of
watches can starve a bind, and no burst of binds a watch.

Requests go through :mod:`~scheduler.client.connection_pool`, streams each through a connection of
:mod:`~scheduler.client.stream`; responses are parsed by :mod:`~scheduler.client.http1`.

Each failure is an :class:`~scheduler.client.errors.ApiError` that says whether a write may have
been carried out.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlencode

from yarl import URL

from cache.value import Value
from scheduler.client.connection import ExchangeError, close_all
from scheduler.client.connection_pool import ConnectionPool
from scheduler.client.connector import CONNECT_TIMEOUT_S, Address, Connector, proxy_credentials
from scheduler.client.errors import RETRY_AFTER_CAP_S, ApiError, ClientConfigError
from scheduler.client.http1 import Headers, RawResponse
from scheduler.client.limiter import Holds
from scheduler.client.paths import namespace_of, resource_of, stores_nothing
from scheduler.client.refusal import READS, read_refusal
from scheduler.client.stream import Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from scheduler.client.credentials import Credentials
    from scheduler.client.limiter import Limiter, Scope


MAX_BODY_BYTES: Final = 128 << 20
"""A page of 500 ordinary pods has 5 MB; one of the largest pods that etcd takes has 750 MB."""

_MAX_HEADS: Final = 16
_JSON: Final = "application/json"
_END_OF_HEAD: Final = b"\r\n\r\n"
_NO_BODY: Final = b"Content-Length: 0\r\n"
_FENCED: Final = "this process may not write, or not any more"


class Measure(Protocol):
    """Whoever counts requests."""

    def requested(
        self,
        host: str,
        method: str,
        status: int | None,
        duration_s: float,
        sent: int,
        received: int | None,
    ) -> None:
        """Take in a request, or the opening of a stream; bytes are those of the bodies."""

    def waited(self, host: str, method: str, duration_s: float) -> None:
        """Take in how long a request waited for the limiter, or that it did not."""


class Bounds(Value, frozen=True):
    """What a transport may use.

    Attributes
    ----------
    connections
        Of requests; streams have their own and are not counted. With more of them a busy moment
        begins with more TLS handshakes, 2 ms of CPU each, and no request is answered sooner.
    body_bytes
        Of an answer to a request.
    """

    connections: int = 64
    body_bytes: int = MAX_BODY_BYTES


class Transport:
    """Requests and streams to one API server.

    Parameters
    ----------
    credentials
        Where the server is and who we are.
    user_agent
        As the server's audit log shall show it.
    limiter
        Asked before each request; streams are not limited.
    bounds
        How many connections there may be, and how large an answer; its defaults if None.
    write_fence
        Asked with the timeout in seconds before a request that is not a read goes out: after the
        wait for the limiter, and once more when the connection is there. Returns how much of the
        timeout the request may have; nothing or less refuses it with reason ``"Fenced"``.
        Invariant I6: no write starts whose timeout could end after the lease deadline. Access
        reviews store nothing and are not asked about.
    clock
        Monotonic seconds, the limiter's clock.

    Attributes
    ----------
    measure
        Told of every request, for metrics; None for nobody.

    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        user_agent: str,
        limiter: Limiter | None = None,
        bounds: Bounds | None = None,
        write_fence: Callable[[float], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._credentials = credentials
        self._user_agent = user_agent
        self._limiter = limiter
        bounds = bounds or Bounds()
        self._max_body_bytes = bounds.body_bytes
        self.measure: Measure | None = None
        self._write_fence = write_fence
        self._clock = clock
        self._holds = Holds(clock)
        self._base_url = credentials.base_url.rstrip("/")
        url = URL(self._base_url)
        self._host_header = url.host_port_subcomponent or ""
        self._address = Address.of(self._base_url, credentials.tls_server_name, credentials.proxy)
        # A proxy for plain HTTP wants the whole URL, anybody else the path.
        absolute = self._address.proxy is not None and not self._address.tls
        self._target_prefix = self._base_url if absolute else url.raw_path.rstrip("/")
        self._connector = Connector(self._address, lambda: credentials.ssl_context)
        self._pool = ConnectionPool(
            self._connector,
            ssl_context=lambda: credentials.ssl_context,
            max_connections=bounds.connections,
        )
        self._streams: set[Stream] = set()
        self._closed = False
        self._writes_in_flight = 0
        self._unsure_until_s = -math.inf
        # Header blocks by what varies in them, so that a request is one concatenation.
        self._heads: dict[tuple[str | None, str, str], bytes] = {}

    @property
    def base_url(self) -> str:
        """The server, as the credentials name it."""
        return self._base_url

    @property
    def writes_in_flight(self) -> int:
        """How many requests that are not reads have passed the fence and are not settled yet.

        One whose sender was cancelled may be carried out all the same: it counts until its time
        is over.
        """
        is_unsure = self._clock() < self._unsure_until_s
        return self._writes_in_flight + is_unsure

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
        timeout_s: float = 30.0,
        discard_body: bool = False,
        may_send: Callable[[], bool] | None = None,
    ) -> RawResponse:
        """Send one request and return the whole answer.

        A 401 is answered once with fresh credentials, and a read whose kept connection proves
        dead is sent once more; nothing else is sent twice.

        Parameters
        ----------
        path
            Absolute and already percent-encoded, without query.
        body
            Sent as it is, with `content_type`.
        accept
            In which form the answer is wanted.
        timeout_s
            From the moment the limiter lets go to the last byte of the answer.
        discard_body
            The status is all that counts: the answer comes with an empty body, and a write that
            was accepted stays accepted even if the rest of the answer does not arrive.
        may_send
            Asked right before a request that is not a read is written, after the waits for the
            limiter and for a connection. False refuses it with reason ``"Withheld"``.

        Raises
        ------
        ApiError
            No answer, or one with a status of 300 and more; or it was not sent, because a
            Retry-After about such requests is not over yet.
        """
        limiter, measure, waited_s = self._limiter, self.measure, 0.0
        self._refuse_held(method, path)
        if limiter is not None and not limiter.try_acquire():
            since_s = self._clock()
            await limiter.acquire()
            waited_s = self._clock() - since_s
        if measure is not None and limiter is not None:
            measure.waited(self._host_header, method, waited_s)
        try:
            self._refuse_held(method, path)  # what others were told while this one was in line
            proof = await self._proof(self._credentials.auth_header, method, path)
            request = self._encode(method, path, query, body, content_type, accept, proof)
            answer = await self._exchange(method, path, request, timeout_s, discard_body, may_send)
            if answer.status == 401:
                proof = await self._proof(self._credentials.refresh, method, path)
                request = self._encode(method, path, query, body, content_type, accept, proof)
                answer = await self._exchange(
                    method, path, request, timeout_s, discard_body, may_send
                )
        finally:
            if limiter is not None:
                limiter.release()
        if answer.status < 300:
            return answer
        error = read_refusal(method, path, answer.status, answer.headers, answer.body)
        if limiter is not None and error.retry_after_s is not None:
            self._hold(limiter, error, error.retry_after_s)
        raise error

    async def get(self, path: str, *, timeout_s: float = 30.0) -> bytes | None:
        """Return the body of a GET's answer, or None for a 404; raises like :meth:`request`."""
        try:
            answer = await self.request("GET", path, timeout_s=timeout_s)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return answer.body

    def _hold(self, limiter: Limiter, error: ApiError, retry_after_s: float) -> None:
        """Send nothing for a while of what a Retry-After is about.

        What the server refuses for its own sake (priority and fairness, its shutdown) its filters
        refuse in plain text, before they know what a request wants. A write that is refused with
        a Status has come through: that is the word of admission or storage about this resource.

        *Source*: k8s.io/apiserver/pkg/server/filters, priority-and-fairness.go and
        with_retry_after.go (0.36).
        """
        if error.path.endswith("/eviction"):
            return  # a disruption budget says "not now", of that one pod
        deadline = self._clock() + min(retry_after_s, RETRY_AFTER_CAP_S)
        if error.is_explained and error.method not in READS:
            self._holds.hold(_scope_of(error.method, error.path), deadline)
        else:
            limiter.hold_until(deadline)

    def _refuse_held(self, method: str, path: str) -> None:
        if not self._holds:
            return
        left_s = self._holds.left_s(_scope_of(method, path))
        if left_s > 0.0:
            raise ApiError(
                429,
                "TooManyRequests",
                "not sent: the server asked to be left alone with such requests",
                retry_after_s=left_s,
            ).about(method, path)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        read_timeout_s: float = 75.0,
    ) -> AsyncIterator[Stream]:
        """Open a GET whose answer is read as it comes; closed when the context is left.

        Raises
        ------
        ApiError
            No answer within `read_timeout_s`, or one with a status of 300 and more.
        """
        connection = await self._open(path, query, connect_timeout_s, read_timeout_s)
        try:
            if connection.status == 401:
                connection.abort()
                await self._proof(self._credentials.refresh, "GET", path)
                connection = await self._open(path, query, connect_timeout_s, read_timeout_s)
            if connection.status >= 300:
                body = await connection.read_start()
                raise read_refusal("GET", path, connection.status, connection.headers, body)
            yield connection
        finally:
            connection.abort()

    async def close(self) -> None:
        """Close all connections; requests and streams under way fail."""
        self._closed = True
        await self._pool.close()
        await close_all(self._streams)

    # --- requests -----------------------------------------------------------------------------

    def _encode(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: bytes | None,
        content_type: str,
        accept: str,
        proof: str | None,
    ) -> bytes:
        if not (path.isascii() and path.isprintable() and path.startswith("/")) or " " in path:
            raise ValueError(f"this is not an encoded path: {path!r}")
        target = f"{self._target_prefix}{path}"
        if query:
            target = f"{target}?{urlencode(query)}"
        start = f"{method} {target} HTTP/1.1\r\n".encode()
        head = self._head(content_type if body is not None else "", accept, proof)
        if body is None:
            return b"%b%b%b\r\n" % (start, head, b"" if method in READS else _NO_BODY)
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (start, head, len(body), body)

    def _head(self, content_type: str, accept: str, proof: str | None) -> bytes:
        head = self._heads.get((proof, content_type, accept))
        if head is not None:
            return head
        lines = [
            f"Host: {self._host_header}\r\n",
            f"User-Agent: {self._user_agent}\r\n",
            f"Accept: {accept}\r\n",
        ]
        if proof is not None:
            lines.append(f"Authorization: {proof}\r\n")
        if content_type:
            lines.append(f"Content-Type: {content_type}\r\n")
        if self._address.proxy is not None and not self._address.tls:
            lines.append(proxy_credentials(self._address.proxy))
        if len(self._heads) >= _MAX_HEADS:
            self._heads.clear()  # tokens come and go; the old ones have no business in memory
        head = self._heads[proof, content_type, accept] = "".join(lines).encode()
        return head

    async def _exchange(
        self,
        method: str,
        path: str,
        request: bytes,
        timeout_s: float,
        discard_body: bool,
        may_send: Callable[[], bool] | None,
    ) -> RawResponse:
        is_read, fence = method in READS, self._write_fence
        if is_read or stores_nothing(path):
            fence = None
        if fence is not None:
            timeout_s = fence(timeout_s)
            if timeout_s <= 0.0:
                raise ApiError(None, "Fenced", _FENCED).about(method, path)
            self._writes_in_flight += 1
        started = self._clock()
        status: int | None = None
        received: int | None = None
        try:
            answer = await self._pool.exchange(
                request,
                timeout_s=timeout_s,
                max_body_bytes=self._max_body_bytes,
                keep_body=not discard_body,
                may_resend=is_read,
                before_send=None
                if is_read
                else lambda: self._refuse_late(method, path, fence, may_send),
            )
            status = answer.status
            if not discard_body:
                received = len(answer.body)
        except ExchangeError as error:
            status = error.status or None
            if discard_body and 200 <= error.status < 300:
                return RawResponse(error.status, Headers(b""), b"", reusable=False)
            in_doubt = error.sent and not is_read
            failure = ApiError(None, error.reason, error.message, ambiguous=in_doubt)
            raise failure.about(method, path) from error
        except asyncio.CancelledError:
            if fence is not None:
                self._unsure_until_s = max(self._unsure_until_s, started + timeout_s)
            raise
        finally:
            if fence is not None:
                self._writes_in_flight -= 1
            sent = len(request) - request.find(_END_OF_HEAD) - len(_END_OF_HEAD)
            self._count(method, status, started, sent, received)
        return answer

    def _refuse_late(
        self,
        method: str,
        path: str,
        fence: Callable[[float], float] | None,
        may_send: Callable[[], bool] | None,
    ) -> None:
        """Refuse a write that has waited for a connection and may not go out any more."""
        # The timeout was granted before and the lease can only have been renewed since: what is
        # asked is whether it is still held.
        if fence is not None and fence(1.0) <= 0.0:
            raise ApiError(None, "Fenced", _FENCED).about(method, path)
        self._refuse_held(method, path)
        if may_send is not None and not may_send():
            raise ApiError(None, "Withheld", "not sent: it is not wanted any more").about(
                method, path
            )

    def _count(
        self, method: str, status: int | None, started_s: float, sent: int, received: int | None
    ) -> None:
        if self.measure is not None:
            duration_s = self._clock() - started_s
            self.measure.requested(self._host_header, method, status, duration_s, sent, received)

    # --- streams ------------------------------------------------------------------------------

    async def _open(
        self,
        path: str,
        query: Sequence[tuple[str, str]],
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> Stream:
        proof = await self._proof(self._credentials.auth_header, "GET", path)
        request = self._encode("GET", path, query, None, "", _JSON, proof)
        started = self._clock()
        status: int | None = None
        connection: Stream | None = None
        try:
            connection = await self._connector.connect(
                lambda loop, _: Stream(loop, path, read_timeout_s), connect_timeout_s
            )
            self._streams = {stream for stream in self._streams if not stream.closed}
            self._streams.add(connection)
            if self._closed:
                raise ExchangeError("Unreachable", "the client has been closed", sent=False)
            await connection.open(request)
            status = connection.status
        except ExchangeError as error:
            raise ApiError(None, error.reason, error.message).about("GET", path) from error
        finally:
            if status is None and connection is not None:
                connection.abort()
            self._count("GET", status, started, 0, None)
        return connection

    # --- credentials --------------------------------------------------------------------------

    async def _proof(
        self, obtain: Callable[[], Awaitable[str | None]], method: str, path: str
    ) -> str | None:
        """Return the value of ``Authorization`` that the credentials give."""
        try:
            return await obtain()
        except ClientConfigError as error:
            raise ApiError(None, "Credentials", str(error)).about(method, path) from error


def _scope_of(method: str, path: str) -> Scope:
    return method, resource_of(path), namespace_of(path)
