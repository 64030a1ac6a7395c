"""The HTTP client of one extender: bounded in time and size, over persistent connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.client.endpoint_tls import endpoint_tls
from scheduler.client.http_poster import HttpPoster, PostError

if TYPE_CHECKING:
    from scheduler.config import Extender

MAX_ANSWER_BYTES: Final = 32 << 20
"""The bytes that a response may have beyond the size of its request. A filter returns some of the
nodes of its request, so the request bounds that part; the rest are reasons by node: 5 000 nodes
with 6 KiB each."""

MAX_CONNECTIONS: Final = 128
"""Connections to one extender: only bindings are sent in parallel; further ones wait, within
their timeout."""

_NS_PER_S: Final = 1_000_000_000


class ExtenderError(Exception):
    """An extender returned no response, or an unusable one; the message names the extender."""


class ExtenderClient:
    """Sends requests to one extender.

    Parameters
    ----------
    extender
        The extender as in the configuration.
    where
        Its path in the configuration, for messages.

    Raises
    ------
    ClientConfigError
        When its TLS configuration or the environment's proxy cannot be used.

    Attributes
    ----------
    timeout_s
        The timeout of one request, including its response.
    in_flight
        The number of requests that have no response yet.

    Notes
    -----
    *Concurrency*: loop-confined, except for the construction.

    *Source*: kube-scheduler 1.36, pkg/scheduler/extender.go, send.

    # Differs: a response is bounded in size, certificate files are read once, and redirects to
    another origin are not followed.
    """

    def __init__(self, extender: Extender, where: str) -> None:
        self._url = extender.url_prefix.rstrip("/")
        tls = extender.tls_config
        # With enableHTTPS and no CA anybody is trusted, as by kube-scheduler.
        self.timeout_s = extender.http_timeout.ns / _NS_PER_S
        self._poster = HttpPoster(
            self._url,
            tls=endpoint_tls(tls, f"{where}.tlsConfig", trusts_anybody=extender.enable_https),
            server_name="" if tls is None else tls.server_name,
            timeout_s=self.timeout_s,
            max_connections=MAX_CONNECTIONS,
        )
        self.in_flight = 0

    async def send(self, verb: str, body: bytes, *, again: bool) -> bytes:
        """POST a body and return the body of the response.

        Parameters
        ----------
        again
            Whether to retry once if a persistent connection was closed: not for bindings.

        Raises
        ------
        ExtenderError
            When the response is late or too long, or has a status other than 200.
        """
        url = f"{self._url}/{verb}"
        self.in_flight += 1
        try:
            answer = await self._poster.post(
                url,
                body,
                {"Content-Type": "application/json"},
                max_bytes=MAX_ANSWER_BYTES + len(body),
                again=again,
                follows_redirects=True,
            )
        except PostError as error:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, {error}") from error
        finally:
            self.in_flight -= 1
        if answer.status != 200:
            why = f"failed {verb} with extender at URL {url}, code {answer.status}"
            raise ExtenderError(why)
        return answer.body

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        await self._poster.close()
