"""HTTP to one metric source: bounded in time and in size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scheduler.client.proxy import environment_proxy
from scheduler.config import Extender
from scheduler.extenders.extender_tls import ssl_context_of
from scheduler.node_metrics.answer import MetricAnswerError, error_in

if TYPE_CHECKING:
    import aiohttp

    from scheduler.node_metrics.configuration import MetricSource

MAX_ANSWER_BYTES: Final = 32 << 20
"""15 000 nodes with 2 KiB of labels each."""

_MAX_CREDENTIALS_BYTES: Final = 1 << 16
_MAX_TOLD: Final = 300
"""Characters of a server's own explanation that a message repeats."""

_CHUNK_BYTES: Final = 1 << 16


class QueryClient:
    """Sends queries to one source.

    Parameters
    ----------
    source
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
    """

    def __init__(self, source: MetricSource, where: str) -> None:
        self._url = f"{source.url.rstrip('/')}/api/v1/query"
        self._timeout_s = source.timeout.seconds
        self._authorization = source.authorization
        # The same rules as for an extender that verifies its server.
        self._ssl = ssl_context_of(
            Extender(url_prefix=source.url, tls_config=source.tls_config), where
        )
        self._server_name = None if source.tls_config is None else source.tls_config.server_name
        self._proxy = environment_proxy(self._url, os.environ)
        # Its import takes a fifth of a second, for which only those with a source should wait.
        import aiohttp  # noqa: PLC0415 - see above

        self._http = aiohttp
        self._session: aiohttp.ClientSession | None = None

    async def query(self, promql: str) -> bytes:
        """POST an instant query and return the answer's body.

        Raises
        ------
        MetricAnswerError
            No answer in time, one too long, a status other than 200, or no credentials.
        """
        try:
            return await self._exchange(promql)
        except TimeoutError as error:
            why = f"{self._url}: no answer within {self._timeout_s:g} s"
            raise MetricAnswerError(why) from error
        except (self._http.ClientError, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise MetricAnswerError(f"{self._url}: {why}") from error

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, promql: str) -> bytes:
        if self._session is None:
            self._session = self._http.ClientSession(
                connector=self._http.TCPConnector(ssl=self._ssl, limit=4),
                cookie_jar=self._http.DummyCookieJar(),
                timeout=self._http.ClientTimeout(total=self._timeout_s),
            )
        # A redirect would take the credentials elsewhere, so it is an answer like any other.
        async with self._session.post(
            self._url,
            data={"query": promql, "timeout": f"{max(1, int(self._timeout_s))}s"},
            headers=self._headers(),
            proxy=self._proxy,
            server_hostname=self._server_name or None,
            allow_redirects=False,
        ) as response:
            body = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    response.close()
                    raise MetricAnswerError(
                        f"{self._url}: the answer has more than {MAX_ANSWER_BYTES} bytes"
                    )
            if response.status != 200:
                told = error_in(bytes(body))[:_MAX_TOLD]
                code = f"{self._url}: code {response.status}"
                raise MetricAnswerError(f"{code}: {told}" if told else code)
            return bytes(body)

    def _headers(self) -> dict[str, str]:
        if self._authorization is None:
            return {}
        # Some hundred bytes of a mounted secret: not worth a thread.
        with Path(self._authorization.credentials_file).open("rb") as file:
            raw = file.read(_MAX_CREDENTIALS_BYTES)
        return {"Authorization": f"{self._authorization.type} {raw.decode('ascii').strip()}"}
