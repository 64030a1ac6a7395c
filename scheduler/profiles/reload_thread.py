"""The thread on which profiles change, whoever brings the change."""

from __future__ import annotations

from queue import Empty
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.process.ports import Executor, Queue

log = structlog.get_logger(__name__)

LOOK_EVERY_S: Final = 1.0


class ReloadThread:
    """Does one thing after another, in the order in which they came, and every second a look.

    Compiling takes as long as plugins like. Neither the scheduling thread, nor the I/O loop, nor
    the one that watches over plugins may wait for it.

    Parameters
    ----------
    look
        Done every second.
    executor
        Has the thread.

    Notes
    -----
    *Concurrency*: thread-safe; :meth:`start` and :meth:`stop` once.
    """

    def __init__(self, look: Callable[[], object], executor: Executor) -> None:
        self._look = look
        self._jobs: Queue[Callable[[], object] | None] = executor.queue()
        self._thread = executor.thread(self._run, "policies")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def do(self, job: Callable[[], object]) -> None:
        """Have something done after all that was asked for before; never waits."""
        self._jobs.put(job)

    def stop(self, timeout_s: float) -> None:
        """Begin nothing more than was asked for, and wait for so long until that is done."""
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
