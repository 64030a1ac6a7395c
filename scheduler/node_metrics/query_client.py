"""Send queries to one metric source over HTTP, bounded in time and in size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from scheduler.client.endpoint_tls import endpoint_tls
from scheduler.client.http_poster import HttpPoster, PostError
from scheduler.node_metrics.query_response import MetricAnswerError, error_in

if TYPE_CHECKING:
    from scheduler.node_metrics.configuration import MetricSource

MAX_ANSWER_BYTES: Final = 32 << 20
"""15 000 nodes with 2 KiB of labels each."""

MAX_CONNECTIONS: Final = 4
"""To one source: each asks one question after the other."""

_MAX_CREDENTIALS_BYTES: Final = 1 << 16
_MAX_TOLD: Final = 300
"""Characters of a server's own explanation that a message repeats."""


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
        self._authorization = source.authorization
        tls = source.tls_config
        self._poster = HttpPoster(
            self._url,
            tls=endpoint_tls(tls, f"{where}.tlsConfig"),
            server_name="" if tls is None else tls.server_name,
            timeout_s=source.timeout.seconds,
            max_connections=MAX_CONNECTIONS,
        )

    async def query(self, promql: str) -> bytes:
        """POST an instant query and return the answer's body.

        Raises
        ------
        MetricAnswerError
            No answer in time, one too long, a status other than 200, or no credentials.
        """
        form = {"query": promql, "timeout": f"{max(1, int(self._poster.timeout_s))}s"}
        try:
            # A redirect would take the credentials elsewhere, so it is an answer like any other.
            answer = await self._poster.post(
                self._url, form, self._headers(), max_bytes=MAX_ANSWER_BYTES
            )
        except (PostError, OSError, ValueError) as error:
            raise MetricAnswerError(f"{self._url}: {error}") from error
        if answer.status != 200:
            told = error_in(answer.body)[:_MAX_TOLD]
            code = f"{self._url}: code {answer.status}"
            raise MetricAnswerError(f"{code}: {told}" if told else code)
        return answer.body

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        await self._poster.close()

    def _headers(self) -> dict[str, str]:
        if self._authorization is None:
            return {}
        # Some hundred bytes of a mounted secret: not worth a thread.
        with Path(self._authorization.credentials_file).open("rb") as file:
            raw = file.read(_MAX_CREDENTIALS_BYTES)
        return {"Authorization": f"{self._authorization.type} {raw.decode('ascii').strip()}"}
