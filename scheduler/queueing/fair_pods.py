"""Active pods of several accounts: the account that used the least time is served first.

Each account has its own heap, in the order of the sort key, and a *virtual time*: the seconds that
its attempts have cost, divided by its weight. The first pod of the account with the smallest
virtual time is popped, if no account has a pod of higher priority. An account without active
pods keeps its virtual time as long as it is ahead of the others, and starts at
their virtual time when it has active pods again: idle time is not saved.

Source of the idea: Goyal, Vin and Cheng, Start-Time Fair Queuing (1996). Tags belong to accounts
and not to pods: deleted pods leave nothing behind, and a cost that becomes known later counts.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from scheduler.queueing.pod_heap import PodHeap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cache.objects import Pod
    from scheduler.queueing.queued_pod import QueuedPod

_MAX_IDLE: Final = 64
"""The number of accounts without active pods above which unneeded ones are dropped."""


class FairPods:
    """Store a :class:`PodHeap` for each account.

    Parameters
    ----------
    account
        Returns the name of a pod's account and its weight; None if attempts are not shared.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: O(log pods + log accounts) for each method, amortised.
    """

    def __init__(self, account: Callable[[Pod], tuple[str, float] | None]) -> None:
        self._account = account
        self._heaps: dict[str, PodHeap] = {}
        self._account_of: dict[str, str] = {}
        self._served_s: dict[str, float] = {}
        self._now_s = 0.0
        self._order: list[tuple[tuple[float, ...], str]] = []
        """Accounts by the priority of their first pod, virtual time and the pod's key."""
        self._ranks: dict[str, tuple[float, ...]] = {}

    def __len__(self) -> int:
        return len(self._account_of)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods in no order."""
        return (queued for heap in self._heaps.values() for queued in heap)

    def push(self, queued: QueuedPod, key: tuple[float, ...]) -> None:
        """Put a pod in, or to another place if it is in."""
        account = self._charged(queued)[0]
        heap = self._heaps.get(account)
        if heap is None:
            heap = self._heaps[account] = PodHeap()
            self._served_s[account] = max(self._served_s.get(account, 0.0), self._now_s)
        heap.push(queued, key)
        self._account_of[queued.info.uid] = account
        self._rank(account)

    def remove(self, uid: str) -> bool:
        """Take a pod out; return whether it was in."""
        account = self._account_of.pop(uid, None)
        if account is None:
            return False
        self._heaps[account].remove(uid)
        self._rank(account)
        return True

    def pop(self) -> QueuedPod | None:
        """Take out and return the pod that is next, or None when there is none."""
        while self._order:
            rank, account = heapq.heappop(self._order)
            queued = self._heaps[account].pop() if self._ranks.get(account) == rank else None
            if queued is None:
                continue
            del self._account_of[queued.info.uid]
            del self._ranks[account]
            self._now_s = max(self._now_s, self._served_s[account])
            self._rank(account)
            return queued
        return None

    def coming(self, count: int) -> list[QueuedPod]:
        """Return the pods that are probably next: so many, or fewer. Nothing is taken out."""
        if len(self._heaps) == 1:
            (heap,) = self._heaps.values()
            return heap.coming(count)
        found: dict[str, QueuedPod] = {}
        for rank, account in heapq.nsmallest(count, self._order):
            # An account that had another rank meanwhile may be there twice with this one.
            first = self._heaps[account].first() if self._ranks.get(account) == rank else None
            if first is not None:
                found[account] = first[1]
        return list(found.values())

    def charge(self, queued: QueuedPod, used_s: float) -> None:
        """Charge the cost of a pod's attempt to its account."""
        account, weight = self._charged(queued)
        before_s = max(self._served_s.get(account, 0.0), 0.0)
        self._served_s[account] = before_s + used_s / weight
        self._rank(account)
        if len(self._served_s) > 2 * len(self._heaps) + _MAX_IDLE:
            self._served_s = {
                name: served_s
                for name, served_s in self._served_s.items()
                if name in self._heaps or served_s > self._now_s
            }

    def _charged(self, queued: QueuedPod) -> tuple[str, float]:
        return self._account(queued.info.pod) or ("", 1.0)

    def _rank(self, account: str) -> None:
        """Bring an account to its place, or drop it when it has no pod."""
        heap = self._heaps.get(account)
        first = None if heap is None else heap.first()
        if first is None:
            self._heaps.pop(account, None)
            self._ranks.pop(account, None)
            return
        key, queued = first
        rank = (key[0], self._served_s[account], *key, queued.sequence)
        if self._ranks.get(account) != rank:
            self._ranks[account] = rank
            heapq.heappush(self._order, (rank, account))
            if len(self._order) > 2 * len(self._ranks) + _MAX_IDLE:
                self._order = [(rank, name) for name, rank in self._ranks.items()]
                heapq.heapify(self._order)
