"""Limit the concurrent bindings to the API server, and with them the scheduling thread.

A slot belongs to a binding whose request is under way, or about to be. A binding that only waits
(for a plugin, for volumes, for the pause before another attempt) gives its slot back, so that
bindings without progress, however many, do not delay those of other pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.process.thread_executor import THREAD_LOCKS

if TYPE_CHECKING:
    from scheduler.process.ports import Locks


class BindingSlots:
    """The slots, by the UID of the pod that has one.

    Parameters
    ----------
    count
        How many there are.
    locks
        Makes the semaphore.

    Notes
    -----
    *Concurrency*: :meth:`acquire` from the scheduling thread, :meth:`release` from the I/O loop.
    """

    def __init__(self, count: int, locks: Locks = THREAD_LOCKS) -> None:
        self._semaphore = locks.semaphore(count)
        self._holders: set[str] = set()

    def __len__(self) -> int:
        """Return how many slots are taken."""
        return len(self._holders)

    def acquire(self, uid: str) -> None:
        """Take a slot for a pod that has none; waits while all are taken."""
        self._semaphore.acquire()
        self._holders.add(uid)

    def release(self, uid: str) -> None:
        """Give the pod's slot back, if it still has one; it gets no other in its place."""
        if uid in self._holders:
            self._holders.discard(uid)
            self._semaphore.release()
