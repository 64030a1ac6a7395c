"""Send POST requests to one server other than the API server, bounded in time and in size."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.client.proxy import environment_proxy

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    import aiohttp

MAX_REFUSAL_BYTES: Final = 1 << 16
"""How much is read of an answer that is none; the rest is left."""

MAX_REDIRECTS: Final = 10
"""As many as Go's client follows."""

_CHUNK_BYTES: Final = 1 << 16


class PostError(Exception):
    """There was no answer, or one that is too long; the message does not name the server."""


class Answer(NamedTuple):
    """What a server said."""

    status: int
    body: bytes
    """Not more than :data:`MAX_REFUSAL_BYTES` unless the status is 200."""


class HttpPoster:
    """Sends requests to one server, over connections that are kept.

    Parameters
    ----------
    url
        Where the server is: decides about the environment's proxy.
    tls
        How it is verified and how it verifies us.
    server_name
        Whose certificate it has to show, in place of the URL's host; empty for that.
    timeout_s
        For one request, its answer included.
    max_connections
        Further requests wait for one, within their time.

    Raises
    ------
    ClientConfigError
        When the environment's proxy cannot be used.

    Notes
    -----
    *Concurrency*: loop-confined, but for the construction.
    """

    def __init__(
        self,
        url: str,
        *,
        tls: ssl.SSLContext,
        server_name: str,
        timeout_s: float,
        max_connections: int,
    ) -> None:
        self._tls = tls
        self._server_name = server_name or None
        self._max_connections = max_connections
        self._proxy = environment_proxy(url, os.environ)
        self.timeout_s = timeout_s
        # Its import takes a fifth of a second, for which only those with a server should wait.
        import aiohttp  # noqa: PLC0415 - see above

        self._http = aiohttp
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self,
        url: str,
        body: bytes | Mapping[str, str],
        headers: Mapping[str, str],
        *,
        max_bytes: int,
        again: bool = False,
        follows_redirects: bool = False,
    ) -> Answer:
        """POST bytes, or the fields of a form, and return the answer.

        Parameters
        ----------
        max_bytes
            What the body of an answer with status 200 may have.
        again
            Whether to send once more when a kept connection proves dead: for questions only.
        follows_redirects
            Whether a redirect within the same origin is followed that asks for the same request
            (307 and 308). Any other redirect is an answer, so that neither body nor headers go to
            a server that nobody has named.

        Raises
        ------
        PostError
            No answer in time, or one too long.
        """
        try:
            try:
                return await self._follow(url, body, headers, max_bytes, follows_redirects)
            except self._http.ServerDisconnectedError:
                if not again:
                    raise
                return await self._follow(url, body, headers, max_bytes, follows_redirects)
        except TimeoutError as error:
            raise PostError(f"no answer within {self.timeout_s:g} s") from error
        except (self._http.ClientError, OSError, ValueError) as error:
            raise PostError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _follow(
        self,
        url: str,
        body: bytes | Mapping[str, str],
        headers: Mapping[str, str],
        max_bytes: int,
        follows_redirects: bool,
    ) -> Answer:
        # One time-out for all of it: aiohttp's own counts for each request.
        async with asyncio.timeout(self.timeout_s):
            for _ in range(MAX_REDIRECTS if follows_redirects else 0):
                answer, target = await self._exchange(url, body, headers, max_bytes)
                if target is None:
                    return answer
                url = target
            return (await self._exchange(url, body, headers, max_bytes))[0]

    async def _exchange(
        self, url: str, body: bytes | Mapping[str, str], headers: Mapping[str, str], max_bytes: int
    ) -> tuple[Answer, str | None]:
        """Return the answer, and where in the same origin it says that the request belongs."""
        if self._session is None:
            self._session = self._http.ClientSession(
                connector=self._http.TCPConnector(ssl=self._tls, limit=self._max_connections),
                cookie_jar=self._http.DummyCookieJar(),
                timeout=self._http.ClientTimeout(total=self.timeout_s),
            )
        async with self._session.post(
            url,
            data=body,
            headers=headers,
            proxy=self._proxy,
            server_hostname=self._server_name,
            allow_redirects=False,
        ) as response:
            is_answer = response.status == 200
            limit = max_bytes if is_answer else MAX_REFUSAL_BYTES
            read = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                read += chunk
                if len(read) > limit:
                    response.close()
                    if is_answer:
                        raise PostError(f"the answer has more than {limit} bytes")
                    break
            answer = Answer(response.status, bytes(read[:limit]))
            return answer, _target(response) if response.status in (307, 308) else None


def _target(response: aiohttp.ClientResponse) -> str | None:
    """Return the Location of an answer; None if there is none, or it is of another origin."""
    location = response.headers.get("Location", "")
    target = response.url.join(type(response.url)(location))
    return str(target) if location and target.origin() == response.url.origin() else None
