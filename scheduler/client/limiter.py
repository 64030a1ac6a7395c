"""Limit how many requests are in flight, or how many start per second.

Without a rate in the configuration the bound is on requests in flight: a server that slows down
slows the client down by itself. With `clientConnection.qps` the limit is a token bucket of that
rate. Both pause while the server requests it with Retry-After. If the Retry-After did not come from
the server itself, only requests of the same kind in the same namespace are held: `Holds`.

*Concurrency*: loop-confined.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Scope: TypeAlias = tuple[str, str, str]
    """Method, resource and namespace."""

MAX_REQUESTS_IN_FLIGHT = 100
"""Bound where the configuration sets no qps: enough to keep an API server busy, well below its
default of 200 mutating requests at a time for all clients together."""

_MAX_HOLDS = 4096


class Limiter(ABC):
    """Gives out permits to send, to waiters in the order in which they came.

    Parameters
    ----------
    clock
        Monotonic seconds; what `hold_until` is measured in.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._held_until: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @abstractmethod
    def _next_permit_at(self, now: float) -> float | None:
        """Return when there is a permit; None if that is only known once one is given back."""

    @abstractmethod
    def _take(self) -> None:
        """Take a permit that is there."""

    @abstractmethod
    def _refund(self) -> None:
        """Put a permit back that was taken and not used."""

    @abstractmethod
    def release(self) -> None:
        """Give the permit back, once for each one taken."""

    @property
    def waiting(self) -> int:
        """How many wait in line."""
        return sum(not waiter.done() for waiter in self._waiters)

    def try_acquire(self) -> bool:
        """Take a permit if there is one, nobody waits and no hold is in force."""
        if self._is_closed():
            return False
        now = self._clock()
        permit_at = self._next_permit_at(now)
        if permit_at is None or permit_at > now:
            return False
        self._take()
        return True

    async def acquire(self) -> None:
        """Take a permit, waiting in line for it. A cancelled wait takes none."""
        if self.try_acquire():
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._serve()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._refund()  # it had become ours at the same moment
            self._serve()
            raise

    def hold_until(self, deadline: float) -> None:
        """Give out no permit before `deadline` (seconds of the limiter's clock).

        Those that are out stay out. Never shortens a hold that is already in force.
        """
        if self._held_until is None or deadline > self._held_until:
            self._held_until = deadline
            if self._waiters:
                self._serve()

    def _is_closed(self) -> bool:
        """Whether a newcomer must wait, permits or not. Cost: an attribute or two when idle."""
        if self._waiters:
            return True
        if self._held_until is None:
            return False
        if self._clock() < self._held_until:
            return True
        self._held_until = None
        return False

    def _serve(self) -> None:
        """Hand out what can be handed out, and set the timer for the next moment that counts."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters = self._waiters
        while waiters:
            if waiters[0].done():  # cancelled while in line
                waiters.popleft()
                continue
            now = self._clock()
            if self._held_until is not None:
                if now < self._held_until:
                    return self._wake_after(self._held_until - now)
                self._held_until = None
            permit_at = self._next_permit_at(now)
            if permit_at is None:
                return None
            if permit_at > now:
                return self._wake_after(permit_at - now)
            self._take()
            waiters.popleft().set_result(None)
        return None

    def _wake_after(self, delay_s: float) -> None:
        # One wake-up too early costs one more timer; the clocks of loop and limiter may differ
        # by the loop's resolution.
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._serve)


class InFlightLimiter(Limiter):
    """At most `max_in_flight` permits are out at a time.

    Parameters
    ----------
    max_in_flight
        At least 1.
    clock
        See :class:`Limiter`.
    """

    def __init__(self, max_in_flight: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight must be at least 1, not {max_in_flight}")
        self._free = max_in_flight

    def try_acquire(self) -> bool:
        """Take a permit if one is free, nobody waits and no hold is in force."""
        # Without asking the clock: there is one of these before every binding.
        if self._free <= 0 or self._is_closed():
            return False
        self._free -= 1
        return True

    def release(self) -> None:
        """Give the permit back; the first in line has it at once."""
        self._free += 1
        self._serve()

    def _next_permit_at(self, now: float) -> float | None:
        return now if self._free > 0 else None

    def _take(self) -> None:
        self._free -= 1

    def _refund(self) -> None:
        self._free += 1


class TokenBucketLimiter(Limiter):
    """At most `burst` permits at once and `qps` a second in the long run.

    Starts with a full bucket, as client-go's does. A permit is spent when it is taken: giving it
    back changes nothing.

    Parameters
    ----------
    qps
        Permits a second, greater than 0.
    burst
        Size of the bucket, at least 1.
    clock
        See :class:`Limiter`.

    *Source*: client-go 1.36, util/flowcontrol/throttle.go.
    """

    def __init__(
        self, qps: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock)
        if not qps > 0:
            raise ValueError(f"qps must be greater than 0, not {qps}")
        if burst < 1:
            raise ValueError(f"burst must be at least 1, not {burst}")
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = clock()

    def release(self) -> None:
        """Do nothing: a token is spent."""

    def _next_permit_at(self, now: float) -> float | None:
        gained = (now - self._filled_at) * self._qps
        if gained > 0:
            self._tokens = min(self._tokens + gained, float(self._burst))
            self._filled_at = now
        # A billionth of a token is forgiven: the sum of float steps may end just below one.
        missing = 1.0 - 1e-9 - self._tokens
        return now if missing <= 0 else now + missing / self._qps

    def _take(self) -> None:
        self._tokens -= 1.0

    def _refund(self) -> None:
        self._tokens = min(self._tokens + 1.0, float(self._burst))


class Holds:
    """Kinds of requests that are not to be sent for a while, each by its scope.

    A webhook that one tenant has put before its pods may answer with a Retry-After; that says
    nothing of the requests of others. Nobody waits here: whoever asks is refused.

    Parameters
    ----------
    clock
        Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[Scope, float] = {}

    def __len__(self) -> int:
        """Return how many scopes are known; some of the holds may be over."""
        return len(self._until)

    def hold(self, scope: Scope, deadline: float) -> None:
        """Refuse requests of this scope before `deadline`; never shortens a hold."""
        if len(self._until) >= _MAX_HOLDS:
            now = self._clock()
            self._until = {each: until for each, until in self._until.items() if until > now}
            if len(self._until) >= _MAX_HOLDS:
                self._until.clear()
        self._until[scope] = max(deadline, self._until.get(scope, deadline))

    def left_s(self, scope: Scope) -> float:
        """Return for how many seconds more requests of this scope are held; 0 when they are not."""
        until = self._until.get(scope)
        if until is None:
            return 0.0
        left_s = until - self._clock()
        if left_s <= 0.0:
            del self._until[scope]
            return 0.0
        return left_s


def limiter_of(
    qps: float | None, burst: int | None, *, clock: Callable[[], float] = time.monotonic
) -> Limiter:
    """Return the limiter that a configuration asks for: a rate, or by default a bound in flight."""
    if qps is None:
        return InFlightLimiter(MAX_REQUESTS_IN_FLIGHT, clock=clock)
    return TokenBucketLimiter(qps, burst or int(qps), clock=clock)
