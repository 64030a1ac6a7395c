"""Sends large answers, and limits what those take together that their readers have not read yet.

A client that reads slowly leaves its answer in the leader's memory. Small answers are not counted:
the number of connections limits them.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from scheduler.insight.refused import RefusedError

LIMIT_BYTES: Final = 64 << 20
"""What all answers may take: twice the largest one, or 64 with the data of 5 000 nodes."""

SMALL_BYTES: Final = 64 << 10
_CHUNK_BYTES: Final = 64 << 10


class Outgoing:
    """The answers that are being sent.

    Parameters
    ----------
    limit_bytes
        What they may take together.

    Attributes
    ----------
    bytes
        What they take.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self.bytes = 0

    async def json(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """Return the response with a body; a large one has been sent by then.

        A caller's limit of time includes the sending, and cuts the connection.

        Raises
        ------
        RefusedError
            Too much is being sent.
        """
        if len(body) <= SMALL_BYTES:
            return web.Response(body=body, content_type="application/json")
        if self.bytes + len(body) > self._limit_bytes:
            raise RefusedError(503, "TooManyRequests", "too many large answers are sent", 2.0)
        response = web.StreamResponse()
        response.content_type = "application/json"
        response.content_length = len(body)
        self.bytes += len(body)
        try:
            await response.prepare(request)
            view = memoryview(body)
            for start in range(0, len(body), _CHUNK_BYTES):
                await response.write(view[start : start + _CHUNK_BYTES])
        except BaseException:
            # What follows would be taken for the rest of the body.
            if request.transport is not None:
                request.transport.abort()
            raise
        finally:
            self.bytes -= len(body)
        return response
