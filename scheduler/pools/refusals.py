"""Remember since when the pods of a pool are refused for want of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.locks import MakeLock


class Refused(NamedTuple):
    """A refused pod.

    Attributes
    ----------
    since_s
        When it was refused first, by the monotonic clock.
    namespace, name
        The pod.
    """

    since_s: float
    namespace: str
    name: str


class Refusals:
    """The refused pods by UID.

    Parameters
    ----------
    clock
        Monotonic seconds.
    make_lock
        Creates the lock.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    def __init__(self, clock: Callable[[], float], make_lock: MakeLock) -> None:
        self._clock = clock
        self._lock = make_lock()
        self._refused: dict[str, Refused] = {}

    def __len__(self) -> int:
        return len(self._refused)

    def refused(self, uid: str, namespace: str, name: str) -> None:
        """Record that no node of the pool can take a pod, and that evictions do not help."""
        with self._lock:
            if uid not in self._refused:
                self._refused[uid] = Refused(self._clock(), namespace, name)

    def forget(self, uid: str) -> None:
        """Forget a pod: it is bound, gone, or waits for something else."""
        with self._lock:
            self._refused.pop(uid, None)

    def all(self) -> list[tuple[str, Refused]]:
        """Return all of them."""
        with self._lock:
            return list(self._refused.items())
