"""The watchdog: it ends the process when a plugin call does not return.

A Python thread cannot be stopped from outside, so the only way to end a call that does not return
is to end the process. The next process does not load that plugin. There are two kinds of such
calls:

- A call that lets other threads run (it sleeps, or loops in Python) is detected by the watchdog's
  thread, which checks once a second which call is running.
- A call that holds the interpreter's lock (a loop in C) stops that thread too. The thread therefore
  restarts, again and again, a timer that Python's ``faulthandler`` keeps in a C thread. If the
  timer expires, ``faulthandler`` writes the tracebacks and ends the process. The timer runs only
  while plugins are called, so that a process that was suspended and resumed is not ended.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, NoReturn

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from scheduler.user_plugins.containment.crash_note import Note

log = structlog.get_logger(__name__)

DEFAULT_TIMEOUT_S: Final = 10.0
TICK_S: Final = 1.0
STOP_S: Final = 5.0
EXIT_STATUS: Final = 1
"""The exit status of a process that a plugin ended: ``faulthandler`` has no other status."""


class Watchdog:
    """Checks once a second whether a plugin call is still running.

    Parameters
    ----------
    note
        Records the running call.
    timeout_s
        A call that takes longer ends the process; 0 for no timeout.
    evidence
        A file that stays empty unless the C timer ends the process, so that the next process can
        tell. None for standard error.
    duties
        Further functions that this thread calls once a second.

    Attributes
    ----------
    armed
        Whether the C timer runs.

    Notes
    -----
    *Concurrency*: :meth:`arm` on the scheduling thread; it costs about 80 us, once after a second
    without calls.
    """

    def __init__(
        self,
        note: Note,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        evidence: TextIO | None = None,
        duties: Sequence[Callable[[], None]] = (),
        tick_s: float = TICK_S,
    ) -> None:
        self._note = note
        self._timeout_s = timeout_s
        self._evidence = evidence
        self._duties = tuple(duties)
        self._tick_s = tick_s
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="containment", daemon=True)
        self.armed = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and the C timer; a running call is not watched any more."""
        self._stopped = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)
        faulthandler.cancel_dump_traceback_later()
        self.armed = False

    def look(self) -> None:
        """Wake the thread for a check now. May be called from any thread; it sets an Event."""
        self._wake.set()

    def arm(self) -> None:
        """Start the C timer, unless there is no timeout."""
        if not self._timeout_s or self._stopped:
            return
        faulthandler.dump_traceback_later(
            self._timeout_s + self._tick_s, exit=True, file=self._evidence or sys.stderr
        )
        self.armed = True

    def _run(self) -> None:
        seen = -1
        # A call that began before this point has started the timer.
        calls = self._note.calls()
        under_way_s = 0.0
        last = time.monotonic()
        while not self._stopped:
            self._wake.wait(self._tick_s)
            self._wake.clear()
            at_work = self._note.at_work()
            now = time.monotonic()
            # A process that was suspended meanwhile has not spent that time in the call.
            passed_s, last = min(now - last, 2 * self._tick_s), now
            if at_work is None or at_work.number != seen:
                seen = -1 if at_work is None else at_work.number
                under_way_s = 0.0
            else:
                under_way_s += passed_s
                if 0 < self._timeout_s <= under_way_s:
                    self._end_process(under_way_s)
            made = self._note.calls()
            if at_work is not None or made != calls:
                calls = made
                self.arm()
            elif self.armed:
                faulthandler.cancel_dump_traceback_later()
                self.armed = False
            for duty in self._duties:
                try:
                    duty()
                except Exception:
                    log.exception("containment failed")

    def _end_process(self, under_way_s: float) -> NoReturn:
        """End the process because of the running call, after logging the reason."""
        self._note.give_up()
        at_work = self._note.at_work()
        log.critical(
            "plugin call timed out, exiting",
            plugin="" if at_work is None else at_work.plugin,
            point="" if at_work is None else at_work.point,
            seconds=round(under_way_s, 1),
        )
        faulthandler.dump_traceback(sys.stderr)
        sys.stderr.flush()
        os._exit(EXIT_STATUS)
