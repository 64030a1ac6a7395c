"""HTTP to one extender: bounded in time and in size, over connections that are kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from scheduler.client.proxy import environment_proxy
from scheduler.extenders.extender_tls import ssl_context_of

if TYPE_CHECKING:
    import aiohttp

    from scheduler.config import Extender

MAX_ANSWER_BYTES: Final = 32 << 20
"""What an answer may have beyond the size of its request. A filter gives back some of the nodes
that it was sent, so the request is the measure of that part; what is left are reasons by node:
5 000 nodes with 6 KiB each."""

MAX_CONNECTIONS: Final = 128
"""Of one extender: only bindings come many at a time; the others wait, within their time."""

_CHUNK_BYTES: Final = 1 << 16
_NS_PER_S: Final = 1_000_000_000


class ExtenderError(Exception):
    """An extender gave no answer, or none that can be used; the message names it."""


class ExtenderClient:
    """Sends requests to one extender.

    Parameters
    ----------
    extender
        As the configuration has it.
    where
        Its path there, for messages.

    Raises
    ------
    ClientConfigError
        When its TLS configuration or the environment's proxy cannot be used.

    Notes
    -----
    *Concurrency*: loop-confined, but for the construction.

    *Source*: kube-scheduler 1.36, pkg/scheduler/extender.go, send.

    # Differs: an answer is bounded in size, and certificate files are read once.
    """

    def __init__(self, extender: Extender, where: str) -> None:
        self._url = extender.url_prefix.rstrip("/")
        self._timeout_s = extender.http_timeout.ns / _NS_PER_S
        self._ssl = ssl_context_of(extender, where)
        self._server_name = None if extender.tls_config is None else extender.tls_config.server_name
        self._proxy = environment_proxy(self._url, os.environ)
        # Its import takes a fifth of a second, for which only those with an extender should wait.
        import aiohttp  # noqa: PLC0415 - see above

        self._http = aiohttp
        self._session: aiohttp.ClientSession | None = None

    @property
    def timeout_s(self) -> float:
        """The time that one request may take, answer included."""
        return self._timeout_s

    async def send(self, verb: str, body: bytes, *, again: bool) -> bytes:
        """POST a body and return the answer's.

        Parameters
        ----------
        again
            Whether to send once more when a kept connection proves dead: for questions only.

        Raises
        ------
        ExtenderError
            No answer in time, one too long, or a status other than 200.
        """
        url = f"{self._url}/{verb}"
        try:
            try:
                return await self._exchange(verb, url, body)
            except self._http.ServerDisconnectedError:
                if not again:
                    raise
                return await self._exchange(verb, url, body)
        except TimeoutError as error:
            why = f"no answer within {self._timeout_s:g} s"
            raise ExtenderError(f"failed {verb} with extender at URL {url}, {why}") from error
        except (self._http.ClientError, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise ExtenderError(f"failed {verb} with extender at URL {url}, {why}") from error

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, verb: str, url: str, body: bytes) -> bytes:
        if self._session is None:
            self._session = self._http.ClientSession(
                connector=self._http.TCPConnector(ssl=self._ssl, limit=MAX_CONNECTIONS),
                cookie_jar=self._http.DummyCookieJar(),
                timeout=self._http.ClientTimeout(total=self._timeout_s),
            )
        async with self._session.post(
            url,
            data=body,
            headers={"Content-Type": "application/json"},
            proxy=self._proxy,
            server_hostname=self._server_name or None,
        ) as response:
            if response.status != 200:
                raise ExtenderError(
                    f"failed {verb} with extender at URL {url}, code {response.status}"
                )
            limit = MAX_ANSWER_BYTES + len(body)
            answer = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                answer += chunk
                if len(answer) > limit:
                    response.close()
                    raise ExtenderError(
                        f"failed {verb} with extender at URL {url}, "
                        f"its answer has more than {limit} bytes"
                    )
            return bytes(answer)
