"""Create separate transports to the API server, so that none has to wait for another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from scheduler.client.limiter import InFlightLimiter, limiter_of
from scheduler.client.transport import Bounds, Transport
from scheduler.process.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.client.credentials import Credentials
    from scheduler.config import ClientConnection

MAX_REVIEWS_IN_FLIGHT: Final = 4
"""Questions to the API server about who may read our pages: many strangers cost no more."""


def election_transport(
    credentials: Credentials, *, clock: Callable[[], float] = time.monotonic
) -> Transport:
    """Return the way for the lease, which must be renewed whatever else is under way.

    Parameters
    ----------
    clock
        Monotonic seconds.
    """
    return Transport(
        credentials,
        user_agent=f"berth/{VERSION} (leader-election)",
        bounds=Bounds(connections=2, body_bytes=1 << 20),
        clock=clock,
    )


def review_transport(credentials: Credentials) -> Transport:
    """Return the way for questions about who may read our pages."""
    return Transport(
        credentials,
        user_agent=f"berth/{VERSION} (serving)",
        limiter=InFlightLimiter(MAX_REVIEWS_IN_FLIGHT),
        bounds=Bounds(connections=MAX_REVIEWS_IN_FLIGHT),
    )


def scheduling_transport(
    credentials: Credentials,
    connection: ClientConnection,
    write_fence: Callable[[float], float] | None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Transport:
    """Return the way for everything else.

    Parameters
    ----------
    connection
        How many requests there may be.
    write_fence
        What every write has to pass; see :class:`scheduler.client.transport.Transport`.
    clock
        Monotonic seconds.
    """
    return Transport(
        credentials,
        user_agent=f"berth/{VERSION} (scheduler)",
        limiter=limiter_of(connection.qps, connection.burst, clock=clock),
        write_fence=write_fence,
        clock=clock,
    )
