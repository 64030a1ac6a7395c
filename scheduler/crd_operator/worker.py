"""One thread that does one thing after another, in the order in which they were asked for."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)


class Worker:
    """A thread for calls that may take long and must not meet one another.

    Parameters
    ----------
    name
        The thread's name.

    Notes
    -----
    *Concurrency*: thread-safe. A daemon: a call that never ends does not keep the process alive.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin with the calls."""
        self._thread.start()

    def submit(self, call: Callable[[], object]) -> None:
        """Have something done after all that was asked for before. Never waits."""
        self._calls.put(call)

    def stop(self, timeout_s: float) -> bool:
        """Begin no more calls than were asked for; return whether the last has ended in time."""
        self._calls.put(None)
        if self._thread.ident is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:
                # A mistake of ours about one object, which shall not cost the others.
                log.exception("a change of policies could not be taken over")
