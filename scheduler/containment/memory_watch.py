"""Interrupts a call that lets the process grow too much.

While plugins are being called, a thread looks every 10 ms at the resident set of the process. If
it has grown by more than an allowance in the course of one call, a :class:`PluginMemoryError` is
raised in the thread that makes the call, wherever that is; it is contained like any other
exception. A limit of the kernel's (``RLIMIT_AS``) would be exact, but it holds for all threads:
while a plugin has it used up every other one fails, in the middle of a TLS record for one.

What grows by as much again after it was interrupted cannot be stopped: it catches the exception,
or is in a function of C that does not come back. Then the process ends, as with a call that hangs.

What all threads take meanwhile is put down to the call. A plugin that keeps a little of every call
is not found, nor is a single operation in C that keeps the interpreter's lock while it allocates,
for this thread does not run then. The memory limit of the container is for both.

Why no exception gets out of a call
-----------------------------------
The interpreter raises an exception that was set for a thread (``PyThreadState_SetAsyncExc``) at
some later point of that thread, so it must be taken back if it was not raised by the end of the
call. There is no lock: it would cost more, and the exception might hit whoever has just taken it.
All below holds because the interpreter's lock lets one thread run at a time, so that all see
writes to attributes in one order.

The caller writes ``call`` (its number, 0 for none; numbers only grow), the interrupter
``aimed_at`` and ``aiming``. In this order:

    caller, at the end of call n         interrupter, at most once for each n
    C1  call = 0                         I1  aiming = True
    C2  if aimed_at == n:                I2  aimed_at = n
    C3      wait while aiming            I3  if call == n: set the exception
    C4      take the exception back      I4  aiming = False

1. *After C2 to C4 nothing is pending, and nothing will be set for n.* If C2 finds another number,
   I2 comes after C2 and so after C1; then I3 finds ``call`` 0 and sets nothing. If C2 finds n, I1
   has come before; C3 ends after I4, so the exception was set before C4 or never will be, and C4
   takes back what is pending: it sets another one, which takes its place, and catches that. (To
   set none would do, but up to 3.12 the interpreter then looks for it at every call for ever.)
2. *An exception is raised within the outer try or not at all.* It is set only after ``call = n``,
   which stands within the try, and by (1) not after C4, which stands there too.
3. *It may be raised between C1 and C4, which are not finished then.* The handler does them again.
   It is raised at most once for each n, so this time they are not disturbed, and (1) holds.

A call within a call, or one of another thread meanwhile, is not watched: ``call`` is not 0.
"""

from __future__ import annotations

import ctypes
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import structlog

from scheduler.containment.memory_room import (
    DEFAULT_ALLOWANCE_BYTES,
    give_back,
    resident_bytes,
    within_room,
)
from scheduler.containment.watchdog import STOP_S, end_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.containment.note import Note

T = TypeVar("T")

log = structlog.get_logger(__name__)

LOOK_S: Final = 0.01
"""A machine fills some 30 MB in that time."""

REST_AFTER_S: Final = 1.0

_set_async_exc: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_async_exc.argtypes = (ctypes.c_ulong, ctypes.py_object)
_set_async_exc.restype = ctypes.c_int


class PluginMemoryError(MemoryError):
    """Raised in the middle of a plugin's call that has let the process grow too much."""


class _DisarmedError(BaseException):
    """Takes the place of one that is not to be raised any more."""


_INTERRUPTED: Final = ctypes.py_object(PluginMemoryError)
_DISARMED: Final = ctypes.py_object(_DisarmedError)


class _Seen(NamedTuple):
    """What a look found: first the call under way, then the size, then the calls so far."""

    call: int
    resident: int
    made: int


class MemoryWatch:
    """Makes calls, and interrupts those that take too much memory.

    Parameters
    ----------
    note
        Counts the calls. Says which one is at work, for the process after one that ends here.
    allowance_bytes
        By how much a call may let the process grow. In a container it is never more than half of
        what is left to the container.

    Attributes
    ----------
    call
        The number of the call that is watched; 0 for none.

    Notes
    -----
    *Concurrency*: :meth:`run` on one thread at a time; :meth:`interrupt` on one other, which is
    the watch's own once it was started.
    """

    __slots__ = (
        "_aimed_at",
        "_aiming",
        "_allowance_bytes",
        "_allowed",
        "_base",
        "_end_at",
        "_hit",
        "_last",
        "_note",
        "_refreshed_at",
        "_resting",
        "_stopped",
        "_thread",
        "_untidy",
        "_wake",
        "_watched",
        "_worker",
        "call",
    )

    def __init__(self, note: Note, allowance_bytes: int = DEFAULT_ALLOWANCE_BYTES) -> None:
        self._note = note
        self._allowance_bytes = allowance_bytes
        # Of the caller.
        self.call = 0
        self._thread = 0
        # Of the interrupter.
        self._aiming = False
        self._aimed_at = 0
        self._hit = 0
        # Of the watch's own thread.
        self._watched = 0
        self._base = 0
        self._end_at = 0
        self._last = _Seen(0, 0, -1)
        self._allowed = allowance_bytes
        self._refreshed_at = float("-inf")
        self._untidy = False
        self._resting = False
        self._stopped = False
        self._wake = threading.Event()
        self._worker = threading.Thread(target=self._run, name="plugin-memory", daemon=True)

    # --- the caller -----------------------------------------------------------------------------

    def run(self, function: Callable[[], T]) -> T:
        """Return what ``function`` returns. The note has been told that the call begins.

        Raises
        ------
        PluginMemoryError
            When the call was interrupted, whatever it made of that; by then no exception is
            pending.

        Notes
        -----
        *Cost*: some 0.3 us. See the module for why this is right.
        """
        if self.call:
            return function()
        number = self._note.calls()
        if self._resting:
            self._wake_up(number)
        self._thread = threading.get_ident()
        try:
            try:
                self.call = number
                answer = function()
            finally:
                self.call = 0
                if self._aimed_at == number:
                    self._disarm()
        except BaseException as error:
            self.call = 0
            if self._aimed_at == number:
                self._disarm()
            if self._hit == number and not isinstance(error, PluginMemoryError):
                raise PluginMemoryError().with_traceback(error.__traceback__) from error
            raise
        if self._hit == number:
            raise PluginMemoryError
        return answer

    def tidy(self) -> None:
        """Have what an interrupted call has freed given back to the kernel. From any thread."""
        self._untidy = True

    def _disarm(self) -> None:
        while self._aiming:
            time.sleep(0)
        try:
            _set_async_exc(self._thread, _DISARMED)
            while True:  # it is raised at the jump back if not before
                pass
        except _DisarmedError:
            return

    def _wake_up(self, number: int) -> None:
        """Have the thread look again; it has not for long, so tell it how things stand."""
        self._last = _Seen(0, resident_bytes(), number - 1)
        self._wake.set()

    # --- the interrupter ------------------------------------------------------------------------

    def interrupt(self, number: int) -> bool:
        """Raise the exception in a call, if it is still under way; return whether it was.

        Once for each call, further times do nothing.
        """
        if number <= self._aimed_at:
            return False
        self._aiming = True
        try:
            self._aimed_at = number
            if self.call != number:
                return False
            self._hit = number
            _set_async_exc(self._thread, _INTERRUPTED)
            return True
        finally:
            self._aiming = False

    # --- its thread -----------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def stop(self) -> None:
        """End the thread; a call that is under way is not watched any more."""
        self._stopped = True
        self._wake.set()
        if self._worker.is_alive():
            self._worker.join(STOP_S)

    def _run(self) -> None:
        busy_at = time.monotonic()
        made = -1
        while not self._stopped:
            try:
                self._look()
            except Exception:
                log.exception("memory of plugins cannot be watched")
            now = time.monotonic()
            if self.call or made != self._last.made:
                made = self._last.made
                busy_at = now
            if now - busy_at < REST_AFTER_S:
                time.sleep(LOOK_S)
                continue
            # A caller counts its call and then asks whether this thread rests: so either it sees
            # that, or its call is seen here.
            self._resting = True
            if self._note.calls() == made:
                self._wake.wait()
            self._wake.clear()
            self._resting = False
            busy_at = time.monotonic()

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._refreshed_at >= REST_AFTER_S:
            self._refreshed_at = now
            self._allowed = within_room(self._allowance_bytes)
        last = self._last
        call = self.call
        if self._untidy:
            self._untidy = False
            before = resident_bytes()
            give_back()
            self._base -= max(before - resident_bytes(), 0)
        seen = self._last = _Seen(call, resident_bytes(), self._note.calls())
        if not call:
            return
        if call != self._watched:
            self._watched = call
            # Between then and now nothing else was called: it is this call that has grown.
            is_first_since = not last.call and last.made == call - 1
            self._base = last.resident if is_first_since else seen.resident
        grown = seen.resident - self._base
        if call == self._hit:
            if grown > self._end_at and self.call == call:
                end_process(
                    self._note, "plugin takes more and more memory", memory=True, mib=grown >> 20
                )
        elif grown > self._allowed and self.interrupt(call):
            self._end_at = grown + self._allowed
