"""What was worked out for a pod once, for as long as the pod stays as it is.

Hints are asked about the same waiting pods again and again, a thousand times a second when many
pods wait for what others do. To compile a pod's terms takes ten times as long as to try them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod

T = TypeVar("T")

CAPACITY: Final = 4096
"""Pods to remember: they, and what they are made of, are kept in memory for that long."""


class PodMemo(Generic[T]):
    """Remembers one value for each pod, and works it out anew for each version of it.

    Parameters
    ----------
    make
        Works the value out from the pod alone; what it raises is raised, and not remembered.
    capacity
        When more pods than that are asked about, all are forgotten.

    Notes
    -----
    *Concurrency*: none of its own; hints are called under the queue's lock.

    *Cost*: a look-up, for a version that is known.
    """

    def __init__(self, make: Callable[[Pod], T], capacity: int = CAPACITY) -> None:
        self._make = make
        self._capacity = capacity
        self._known: dict[str, tuple[Pod, T]] = {}

    def of(self, pod: Pod) -> T:
        """Return the pod's value."""
        known = self._known.get(pod.metadata.uid)
        if known is not None and known[0] is pod:
            return known[1]
        value = self._make(pod)
        if len(self._known) >= self._capacity:
            self._known.clear()
        self._known[pod.metadata.uid] = pod, value
        return value
