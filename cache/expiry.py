"""Deadlines of assumed pods whose binding has finished.

This is pure book-keeping: the caller passes the time. kube-scheduler removed this time limit in
1.36 (its own was 0, without limit, by default).

# Differs: berth keeps it, because a binding that the watch never confirms would otherwise hold
its node until a restart; the reaper reads the pod from the API before any resources are freed.
"""

from __future__ import annotations

import heapq


class Expiry:
    """Deadlines by pod UID.

    Parameters
    ----------
    ttl_s
        Seconds from the end of a binding to its deadline; 0 or less means that nothing is ever
        overdue.

    Notes
    -----
    *Concurrency*: guarded by the lock of the cache. *Cost*: O(log n) each.
    """

    def __init__(self, ttl_s: float) -> None:
        self.ttl_s = ttl_s
        self._deadline_of: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def start(self, uid: str, now_s: float) -> None:
        """Set the deadline of a pod to ``now_s`` plus the time limit."""
        if self.ttl_s <= 0:
            return
        deadline = now_s + self.ttl_s
        self._deadline_of[uid] = deadline
        heapq.heappush(self._heap, (deadline, uid))

    def stop(self, uid: str) -> None:
        """Remove a pod's deadline, if it has one."""
        self._deadline_of.pop(uid, None)
        if len(self._heap) > 2 * len(self._deadline_of) + 64:
            self._heap = [(at, known) for known, at in self._deadline_of.items()]
            heapq.heapify(self._heap)

    def overdue(self, now_s: float) -> list[str]:
        """Return the UIDs whose deadline lies before ``now_s``, the oldest first.

        They stay overdue until :meth:`stop` or a new :meth:`start`.
        """
        found: list[tuple[float, str]] = []
        while self._heap and self._heap[0][0] < now_s:
            deadline, uid = heapq.heappop(self._heap)
            if self._deadline_of.get(uid) == deadline:
                found.append((deadline, uid))
        for entry in found:
            heapq.heappush(self._heap, entry)
        return list(dict.fromkeys(uid for _, uid in found))
