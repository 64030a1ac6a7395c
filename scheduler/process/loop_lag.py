"""Measure the delay of the event loop: everything except scheduling waits for it.

A timer is due every tenth of a second. Its delay is the time for which the loop was blocked: by one
piece of work, by another thread that kept the interpreter, or because the
process got no CPU. Summed up, that is the share of time in which the loop was blocked.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

PERIOD_S: Final = 0.1

STALLED_S: Final = 0.5
"""From here on it is told in the log. Nothing is lost before ten seconds, when a lease runs out;
but bindings, watches and health checks wait that long."""

_QUIET_S: Final = 1.0

log = structlog.get_logger(__name__)


class LoopLag:
    """Measures the loop that it is started on.

    Parameters
    ----------
    observe
        Takes each lag, in seconds.
    clock
        Seconds that only grow. Not the loop's own: uvloop's stands still while a callback runs.

    Notes
    -----
    *Concurrency*: loop-confined.

    *Cost*: some 5 us ten times a second.
    """

    def __init__(self, observe: Callable[[float], None], clock: Callable[[], float]) -> None:
        self._observe = observe
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._thread_s = 0.0
        self._process_s = 0.0
        self._quiet_until = 0.0

    def start(self) -> None:
        """Measure from now on."""
        self._loop = asyncio.get_running_loop()
        self._set()

    def stop(self) -> None:
        """Leave off."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self) -> None:
        self._thread_s, self._process_s = time.thread_time(), time.process_time()
        self._due = self._clock() + PERIOD_S
        self._timer = self._loop.call_later(PERIOD_S, self._called)

    def _called(self) -> None:
        now = self._clock()
        lag_s = max(now - self._due, 0.0)
        self._observe(lag_s)
        if lag_s > STALLED_S and now >= self._quiet_until:
            self._quiet_until = now + _QUIET_S
            # Little of both: the process got no CPU. Much of the process's alone: another thread
            # held the interpreter. Much of the thread's: the loop itself was at work.
            log.warning(
                "event loop blocked",
                seconds=round(lag_s, 3),
                own_cpu_seconds=round(time.thread_time() - self._thread_s, 3),
                process_cpu_seconds=round(time.process_time() - self._process_s, 3),
            )
        self._set()
