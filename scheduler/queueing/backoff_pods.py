"""The backoff queue: pods whose attempt failed and that pause before their next one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from scheduler.queueing.budget_accounts import BudgetAccounts
from scheduler.queueing.pod_heap import PodHeap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.queueing.queued_pod import QueuedPod

WINDOW_S: Final = 1.0
"""Pauses end in windows of a whole second, and the pods of one window are ordered as active ones
are: otherwise a pod of low priority could go first because it failed a millisecond earlier.
kube-scheduler's backoffQOrderingWindowDuration."""

_MAX_DOUBLINGS: Final = 62
"""More than any pause needs to reach its maximum, and no float overflows yet."""


class BackoffPods:
    """Store pods in backoff and compute the duration of each pause.

    There are three kinds. Pods that plugins rejected may be popped before their pause is over when
    no pod is active: their pause only keeps them from wasting cycles. Pods whose attempt failed
    with an error (the API server did not respond) are never popped early: their pause protects
    the API server. Nor are groups, whose attempts cost more. Held pods wait for the account of
    their namespace instead, and only that account ends their pause: see
    :mod:`scheduler.queueing.budget_accounts`.

    Parameters
    ----------
    initial_s
        The pause after the first failure; each further one doubles it.
    max_s
        The longest pause; 0 disables pauses.
    accounts
        Stores the held pods; None to create new accounts.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock. *Cost*: as of :class:`PodHeap`.

    *Source*: pkg/scheduler/backend/queue/backoff_queue.go (1.36), with SchedulerPopFromBackoffQ
    on, which is its default.
    """

    def __init__(
        self, initial_s: float, max_s: float, accounts: BudgetAccounts | None = None
    ) -> None:
        self._initial_s = initial_s
        self._max_s = max_s
        self._refused = PodHeap()
        self._errors = PodHeap()
        self.accounts = BudgetAccounts() if accounts is None else accounts

    def __len__(self) -> int:
        return len(self._refused) + len(self._errors) + len(self.accounts)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods in no order."""
        yield from self._refused
        yield from self._errors
        yield from self.accounts

    def duration_s(self, failures: int, max_s: float | None = None) -> float:
        """Return the pause after so many failures, before it is rounded to windows.

        Parameters
        ----------
        max_s
            The longest pause; None for that of ordinary pods.
        """
        if failures <= 0:
            return 0.0
        doublings = min(failures - 1, _MAX_DOUBLINGS)
        longest_s = self._max_s if max_s is None else max_s
        return min(math.ldexp(self._initial_s, doublings), longest_s)

    def end_s(self, queued: QueuedPod) -> float:
        """Return when the pause of a pod is over that failed at its ``timestamp_s``.

        Errors in a row count for themselves; after a "no" all attempts count that ended so. The
        end is rounded down to a window, and the pause is over when that window is: so it takes
        between none and a whole second longer than :meth:`duration_s`.
        """
        failures = queued.consecutive_errors or queued.unschedulable_count
        if self._max_s <= 0 or failures == 0:
            return 0.0
        longest_s = queued.longest_pause_s(self._max_s)
        end_s = queued.timestamp_s + self.duration_s(failures, longest_s)
        return math.floor(end_s / WINDOW_S) * WINDOW_S + WINDOW_S

    def add(self, queued: QueuedPod) -> None:
        """Add a pod until its ``backoff_until_s``, or until its account can pay."""
        if queued.is_held:
            self.accounts.hold(queued)
        elif queued.may_go_early:
            self._refused.push(queued, (queued.backoff_until_s, *queued.sort_key))
        else:
            self._errors.push(queued, (queued.backoff_until_s,))

    def reorder(self, queued: QueuedPod) -> None:
        """Bring a pod that is in to its place after its sort key has changed."""
        if queued.info.uid in self._refused:
            self._refused.push(queued, (queued.backoff_until_s, *queued.sort_key))

    def remove(self, uid: str) -> bool:
        """Take a pod out; return whether it was in."""
        return self._refused.remove(uid) or self._errors.remove(uid) or self.accounts.remove(uid)

    def next_end_s(self) -> float | None:
        """Return when the next pause is over, or None when no pod pauses."""
        ends = [first[0][0] for first in (self._refused.first(), self._errors.first()) if first]
        look_s = self.accounts.next_look_s()
        if look_s is not None:
            ends.append(look_s)
        return min(ends, default=None)

    def pop_over(self, now_s: float) -> QueuedPod | None:
        """Take out and return a pod whose pause is over, or None."""
        for heap in (self._refused, self._errors):
            first = heap.first()
            if first is not None and first[0][0] <= now_s:
                return heap.pop()
        return self.accounts.release(now_s)

    def pop_early(self) -> QueuedPod | None:
        """Remove and return the rejected pod whose pause ends first, or None."""
        return self._refused.pop()
