"""Limit the concurrent bindings to the API server, and with them the scheduling thread.

A slot belongs to a binding whose request is under way, or about to be. A binding that only waits
(for a plugin, for volumes, for the pause before another attempt) gives its slot back, so that
bindings without progress, however many, do not delay those of other pods.

When all slots are taken, the scheduling thread goes on once a quarter of them is free: were it
woken for each, both threads would hand the interpreter to each other with every pod. It had 0.39
switches and 141 us of CPU for a pod, and has 0.07 and 121 us; the loop's thread saves another 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.process.thread_executor import THREAD_LOCKS

if TYPE_CHECKING:
    from scheduler.process.ports import Locks

_PATIENCE_S: Final = 0.02
"""For so long many free slots are waited for, then for a single one: the others may hang."""


class BindingSlots:
    """The slots, by the UID of the pod that has one.

    Parameters
    ----------
    count
        How many there are.
    locks
        Makes the lock and its condition.

    Notes
    -----
    *Concurrency*: :meth:`acquire` from the scheduling thread, :meth:`release` from the I/O loop.
    """

    def __init__(self, count: int, locks: Locks = THREAD_LOCKS) -> None:
        self._free = count
        self._many = max(count // 4, 1)
        self._wanted = 0  # free slots that somebody waits for; 0 while nobody does
        self._lock = locks.lock()
        self._given_back = locks.condition(self._lock)
        self._holders: set[str] = set()

    def __len__(self) -> int:
        """Return how many slots are taken."""
        return len(self._holders)

    def acquire(self, uid: str) -> None:
        """Take a slot for a pod that has none; waits while all are taken."""
        with self._lock:
            if not self._free:
                self._wait_locked()
            self._free -= 1
        self._holders.add(uid)

    def _wait_locked(self) -> None:
        self._wanted = self._many
        self._given_back.wait(_PATIENCE_S)
        self._wanted = 1
        while not self._free:
            self._given_back.wait()
        self._wanted = 0

    def release(self, uid: str) -> None:
        """Give the pod's slot back, if it still has one; it gets no other in its place."""
        if uid in self._holders:
            self._holders.discard(uid)
            with self._lock:
                self._free += 1
                if 0 < self._wanted <= self._free:
                    self._given_back.notify()
