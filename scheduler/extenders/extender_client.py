"""HTTP to one extender: bounded in time and in size, over connections that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.client.endpoint_tls import endpoint_tls
from scheduler.client.http_poster import HttpPoster, PostError

if TYPE_CHECKING:
    from scheduler.config import Extender

MAX_ANSWER_BYTES: Final = 32 << 20
"""What an answer may have beyond the size of its request. A filter gives back some of the nodes
that it was sent, so the request is the measure of that part; what is left are reasons by node:
5 000 nodes with 6 KiB each."""

MAX_CONNECTIONS: Final = 128
"""Of one extender: only bindings come many at a time; the others wait, within their time."""

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

    Attributes
    ----------
    timeout_s
        The time that one request may take, answer included.
    in_flight
        How many requests have no answer yet.

    Notes
    -----
    *Concurrency*: loop-confined, but for the construction.

    *Source*: kube-scheduler 1.36, pkg/scheduler/extender.go, send.

    # Differs: an answer is bounded in size, certificate files are read once, and no redirect leads
    to another origin.
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
        """Close all connections; requests under way fail."""
        await self._poster.close()
