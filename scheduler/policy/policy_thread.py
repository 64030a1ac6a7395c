"""The thread on which policies change, but for those that the operator brings."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.vital import VitalThread, no_death

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.vital import OnDeath

log = structlog.get_logger(__name__)

LOOK_EVERY_S: Final = 1.0


class PolicyThread:
    """Does one thing after another, and now and then a look that is always the same.

    Compiling takes as long as plugins like. Neither the scheduling thread, nor the I/O loop, nor
    the one that watches over plugins may wait for it.

    Parameters
    ----------
    look
        Done every second.
    on_death
        Called on the thread when that ends without being told to.

    Notes
    -----
    *Concurrency*: thread-safe; :meth:`start` and :meth:`stop` once.
    """

    def __init__(self, look: Callable[[], object], on_death: OnDeath = no_death) -> None:
        self._look = look
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = VitalThread(self._run, "policies", on_death)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def do(self, job: Callable[[], object]) -> None:
        """Have something done soon; never waits."""
        self._jobs.put(job)

    def stop(self, timeout_s: float) -> None:
        """End with what is under way, and wait for it for so long."""
        self._jobs.put(None)
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        next_look_s = monotonic() + LOOK_EVERY_S
        while True:
            try:
                job = self._jobs.get(timeout=max(next_look_s - monotonic(), 0.0))
            except Empty:
                next_look_s = monotonic() + LOOK_EVERY_S
                job = self._look
            if job is None:
                return
            try:
                job()
            except Exception:
                # A mistake of ours in one change, which shall not cost the next ones.
                log.exception("policies could not be changed")
