"""Charge what attempts cost: to the account of a namespace, or to the one that shares attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler.queueing.budget_accounts import BudgetAccounts
    from scheduler.queueing.fair_pods import FairPods
    from scheduler.queueing.queued_pod import QueuedPod
    from scheduler.queueing.reporting_lock import ReportingLock


class AttemptCosts:
    """The methods of the queue that charge attempts.

    Notes
    -----
    *Concurrency*: thread-safe, by the queue's lock.
    """

    _lock: ReportingLock
    _accounts: BudgetAccounts
    _shared: FairPods | None

    @property
    def shares_attempts(self) -> bool:
        """Whether :meth:`charge` has to be called with the cost of attempts."""
        return self._shared is not None

    def charge(self, queued: QueuedPod, used_s: float) -> None:
        """Charge the cost of a pod's attempt, in seconds of the scheduling thread."""
        if self._shared is not None:
            with self._lock:
                self._shared.charge(queued, used_s)

    def settle_budget(self, queued: QueuedPod, used_s: float, *, over: bool) -> None:
        """Charge the cost of an attempt that was stopped, costly, or paid for in advance.

        Before the attempt ends, since where the pod goes then depends on it.

        Parameters
        ----------
        used_s
            CPU seconds.
        over
            Whether the attempt was stopped because its budget was exceeded.
        """
        with self._lock:
            self._accounts.settle(queued, used_s, over=over)
