"""Check queued pods against the event backlog in short slices on the I/O loop.

Thousands of pods may wait, and hundreds of events come each second. The loop that renews the
lease and sends bindings must not be blocked by that: each slice is short, and between two slices
the loop does its other work and the scheduling thread gets the interpreter.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import TypeAlias

    Judge: TypeAlias = Callable[[Callable[[], bool]], bool]

SLICE_S: Final = 0.001
"""How long one slice takes; the event path and the queue's lock wait that long at most."""

PAUSE_S: Final = 0.002
"""Between two slices: waking gets a third of the loop's time at most."""


class WakeUpSlices:
    """Drain the queue's backlog of events.

    Parameters
    ----------
    loop
        The loop on which the slices run.
    timer
        Seconds that only grow.

    Notes
    -----
    *Concurrency*: :meth:`wake_later` from any thread, also after the loop has ended; everything
    else on the loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._loop = loop
        self._timer = timer
        self._is_due = False

    def wake_later(self, judge: Judge) -> None:
        """Have a backlog emptied, beginning soon.

        Parameters
        ----------
        judge
            :meth:`scheduler.queueing.SchedulingQueue.judge_backlog`.
        """
        if self._is_due:
            return
        self._is_due = True
        try:
            self._loop.call_soon_threadsafe(self._run, judge)
        except RuntimeError:  # the loop is closed: no pod is tried any more
            self._is_due = False

    def _run(self, judge: Judge) -> None:
        # First the flag: an event that comes during the slice asks for another one, which is
        # harmless; the other order could leave it lying.
        self._is_due = False
        end_s = self._timer() + SLICE_S
        if judge(lambda: self._timer() >= end_s) and not self._is_due:
            self._is_due = True
            self._loop.call_later(PAUSE_S, self._run, judge)
