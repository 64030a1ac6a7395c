"""A heap of pods, ordered by a key and indexed by UID."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.queueing.queued_pod import QueuedPod

_MAX_STALE = 64
"""So many entries of pods that left may lie about before their number is compared with the
others': a small heap is not worth the tidying."""

_TRIES = 4
"""Entries that are looked at for each pod that comes next."""


class PodHeap:
    """Store pods in a heap, with a look-up by UID.

    A pod that leaves, or gets another key, leaves its old entry in the heap. The entry is dropped
    when it reaches the top. Once such entries outnumber the others, the heap is rebuilt.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: push, pop O(log n), remove O(1), all amortised; memory O(pods in it).
    """

    __slots__ = ("_entries", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[float, ...], int, QueuedPod]] = []
        self._entries: dict[str, tuple[tuple[float, ...], int, QueuedPod]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods in no order."""
        return (entry[2] for entry in self._entries.values())

    def push(self, queued: QueuedPod, key: tuple[float, ...]) -> None:
        """Put a pod in, or to another place if it is in; equal keys are ordered by sequence."""
        entry = (key, queued.sequence, queued)
        self._entries[queued.info.uid] = entry
        heapq.heappush(self._heap, entry)
        self._tidy()

    def remove(self, uid: str) -> bool:
        """Take a pod out; return whether it was in."""
        if self._entries.pop(uid, None) is None:
            return False
        self._tidy()
        return True

    def first(self) -> tuple[tuple[float, ...], QueuedPod] | None:
        """Return the smallest key and its pod, or None when there is no pod."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[2].info.uid) is entry:
                return entry[0], entry[2]
            heapq.heappop(heap)
        return None

    def coming(self, count: int) -> list[QueuedPod]:
        """Return the first pods in their order: so many, or fewer.

        *Cost*: some 2 us for three; nothing is taken out, and entries of pods that left are passed
        over, a few of them.
        """
        heap, entries = self._heap, self._entries
        found: list[QueuedPod] = []
        edge = [(heap[0], 0)] if heap else []
        for _ in range(_TRIES * count):
            if not edge or len(found) == count:
                break
            entry, at = heapq.heappop(edge)
            if entries.get(entry[2].info.uid) is entry:
                found.append(entry[2])
            for child in (2 * at + 1, 2 * at + 2):
                if child < len(heap):
                    heapq.heappush(edge, (heap[child], child))
        return found

    def pop(self) -> QueuedPod | None:
        """Take out and return the pod with the smallest key, or None when there is none."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heapq.heappop(heap)
            uid = entry[2].info.uid
            if entries.get(uid) is entry:
                del entries[uid]
                return entry[2]
        return None

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _MAX_STALE:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
