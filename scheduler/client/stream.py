"""An answer without end: what a watch reads.

Concurrency: loop-confined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from scheduler.client.errors import ApiError
from scheduler.client.refusal import MAX_REFUSAL_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


class Stream:
    """An answer that is read as it comes.

    Concurrency: loop-confined; one reader.
    """

    __slots__ = ("_path", "_response")

    def __init__(self, response: aiohttp.ClientResponse, path: str) -> None:
        self._response = response
        self._path = path

    @property
    def status(self) -> int:
        """HTTP status, below 300."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the answer; names are case-insensitive."""
        return self._response.headers

    def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over what arrives, cut anywhere, never empty; ends when the server is done.

        Raises
        ------
        ApiError
            Reason ``"Timeout"``: silence for `read_timeout_s`. Reason ``"Disconnected"``: the
            connection broke before the server was done.
        """
        return _Chunks(self._response.content, self._path)


class _Chunks:
    # Not an async generator: one that is left in the middle is finalised by the loop at some
    # later time, which shows up as a warning at shutdown.
    __slots__ = ("_content", "_path")

    def __init__(self, content: aiohttp.StreamReader, path: str) -> None:
        self._content = content
        self._path = path

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise stream_failure(error, self._path) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk


async def read_start(response: aiohttp.ClientResponse) -> bytes:
    """Return what there is of a short body, at most `MAX_REFUSAL_BYTES`."""
    parts: list[bytes] = []
    n_bytes = 0
    try:
        while n_bytes < MAX_REFUSAL_BYTES:
            part = await response.content.readany()
            if not part:
                break
            parts.append(part)
            n_bytes += len(part)
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass  # the status has come, and it says more than the failure to read on
    return b"".join(parts)


def stream_failure(error: Exception, path: str) -> ApiError:
    """Make the error of a stream that could not be opened or read on."""
    if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError):
        reason = "Timeout"
    elif isinstance(
        error,
        aiohttp.ClientConnectorError
        | aiohttp.ConnectionTimeoutError
        | aiohttp.ClientHttpProxyError,
    ):
        reason = "Unreachable"
    elif isinstance(error, aiohttp.ClientResponseError):
        reason = "BadResponse"
    else:
        reason = "Disconnected"
    message = str(error) or type(error).__name__
    return ApiError(None, reason, message, method="GET", path=path)
