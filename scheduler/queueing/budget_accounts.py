"""The CPU time that attempts over budget may use, shared between namespaces.

An attempt may use ``limit_s`` of CPU. An attempt that uses more is stopped, and the next attempt of
this pod may use twice as much, and ``limit_s`` at least. An attempt that completes but needs more
than a quarter of ``limit_s`` is *costly*. A pod whose last attempt was either is *expensive*, and
its next attempt is paid for in advance. Stopped attempts, the time of a costly first attempt beyond
the quarter, and all attempts of expensive pods are paid from one income: a tenth of the time that
passes, split evenly between the namespaces that have an account.

    debt      the cost of first attempts that were stopped or costly. While a debt exists, the
              further pods of the namespace begin with a small budget, smaller the deeper the debt;
              beyond the last step they wait, and are released one after another as the debt is
              paid.
    savings   the time that expensive pods will use. They wait in line, and the first one is
              released when its whole next budget has been saved.

If an account has both, each gets half of the income. Nothing is stored by a pod's name, owner or
template, because users can create new ones: a pod that is deleted and created again starts without
a history, in a namespace that is in debt.

# Differs: kube-scheduler has no such budget. ``docs/adr/0015-attempt-budget.md`` explains the
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scheduler.queueing.queued_pod import QueuedPod

DEFAULT_LIMIT_S: Final = 0.25
"""CPU seconds of an ordinary attempt: several times what any workload of scheduler_perf needs at
5 000 nodes, and short enough for other pods to wait for one."""

SHARE: Final = 0.1
"""Of the scheduling thread's time, for everything over budget together."""

COSTLY: Final = 4
"""An attempt that needs more than this part of the budget is costly: 62.5 ms of 250. The dearest of
scheduler_perf's workloads needs 10.4 ms at 5 000 nodes, and three times that at 15 000."""

SMALL: Final = 16
"""The first budget in a namespace with debt is this part of the ordinary one: 15.6 ms of 250."""

STEP: Final = 1
"""Each further ``STEP * limit_s`` of debt halves that budget ..."""

STEPS: Final = 2
"""... and after so many steps of debt the namespace's new pods wait."""

CROWD: Final = 4
"""So many other namespaces with accounts halve the first budget of each, down to ``1/SMALL``."""

CREDIT: Final = 8
"""Each further ``CREDIT * limit_s`` that all namespaces owe together, 2 s, halves also that ..."""

CREDIT_STEPS: Final = 4
"""... at most so many times: 1 ms of 250 is more than twice what an ordinary pod needs, and what a
hundred namespaces each second that nobody has seen before take of the thread is its share."""

MAX_DOUBLINGS: Final = 8
"""64 s of CPU with the default limit. A cycle that takes minutes would end the process."""

TICK_S: Final = 0.05
"""Incomes are booked no more often."""

_LOOK_S: Final = 1.0
"""The longest time between two checks for pods to release: incomes change when accounts close."""


class _Account:
    """The account of one namespace."""

    __slots__ = ("debt_s", "expensive", "savings_s", "strangers")

    def __init__(self) -> None:
        self.debt_s = 0.0
        self.savings_s = 0.0
        self.expensive: dict[str, QueuedPod] = {}
        """Pods that save for their next budget, in order."""
        self.strangers: dict[str, QueuedPod] = {}
        """Pods that wait until the debt is smaller, in order."""

    @property
    def is_settled(self) -> bool:
        return self.debt_s <= 0 and not self.expensive and not self.strangers

    def earn(self, income_s: float) -> None:
        """Book an income."""
        paid_s = min(self.debt_s, income_s / 2 if self.expensive else income_s)
        self.debt_s -= paid_s
        wanted_s = self._wanted_s()
        self.savings_s = min(self.savings_s + income_s - paid_s, wanted_s)

    def _wanted_s(self) -> float:
        first = next(iter(self.expensive.values()), None)
        return 0.0 if first is None else first.budget_s

    def ready_in_s(self, rate: float, most_debt_s: float, rest_s: float) -> float:
        """Return after how many seconds a pod may go, at an income of ``rate`` each second.

        Expensive pods have to wait for ``rest_s`` at least.
        """
        soonest_s = float("inf")
        if self.expensive:
            part = rate / 2 if self.debt_s > 0 else rate
            soonest_s = max(rest_s, (self._wanted_s() - self.savings_s) / part)
        if self.strangers:
            part = rate / 2 if self.expensive else rate
            soonest_s = min(soonest_s, max(0.0, self.debt_s - most_debt_s) / part)
        return soonest_s


class BudgetAccounts:
    """Store the accounts of all namespaces, and the pods that wait for their accounts.

    Parameters
    ----------
    limit_s
        CPU seconds of an ordinary attempt; infinity disables all budgets.
    cpu_clock
        CPU seconds of the scheduling thread. Time is then the time in which it worked or was
        idle, without the time in which it waited for a processor: on a busy machine no account
        earns by that. None to use the time that is passed in.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: nothing while no account is open; else O(accounts) twenty times a second at most, and
    O(1) for each pod.
    """

    def __init__(
        self, limit_s: float = DEFAULT_LIMIT_S, cpu_clock: Callable[[], float] | None = None
    ) -> None:
        self._limit_s = limit_s
        self._cpu_clock = cpu_clock
        self._idle_s = 0.0
        # None when nobody has looked since the last account was closed.
        self._thread_s: float | None = None
        self._step_s = STEP * limit_s
        # An attempt of an expensive pod leaves so much time to all others before the next one.
        self._rest_s = 0.0
        self._credit_s = CREDIT * limit_s
        self._accounts: dict[str, _Account] = {}
        # The debts of all together.
        self._owed_s = 0.0
        self._waiting: dict[str, QueuedPod] = {}
        self._booked_s: float | None = None
        self._looked_s = self._look_s = float("-inf")

    def __len__(self) -> int:
        """Return how many pods wait."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods that wait."""
        return iter(self._waiting.values())

    @property
    def costly_s(self) -> float:
        """From how many CPU seconds on an attempt is costly."""
        return self._limit_s / COSTLY

    # --- the time of the thread ---------------------------------------------------------------

    def look(self) -> None:
        """Record the CPU time that the calling thread, the scheduling thread, has used so far."""
        if self._cpu_clock is not None and self._accounts:
            self._thread_s = self._idle_s + self._cpu_clock()

    def idle(self, seconds: float) -> None:
        """Take note that the scheduling thread had nothing to do."""
        self._idle_s += seconds

    # --- before an attempt --------------------------------------------------------------------

    def must_save(self, queued: QueuedPod) -> bool:
        """Return whether a pod is expensive, and its next attempt has not been paid for."""
        return queued.budget_s > 0 and not queued.prepaid_s

    def admit(self, queued: QueuedPod, now_s: float) -> bool:
        """Decide whether the attempt of a pod may begin, and how much time it may use.

        ``allowance_s`` is set then. The caller puts the pod among those that wait otherwise.
        """
        if not self._accounts and not queued.budget_s:
            queued.allowance_s = self._limit_s
            return True
        if queued.prepaid_s:
            queued.allowance_s = queued.prepaid_s
            return True
        if queued.budget_s:
            return False
        self._book(now_s)
        queued.allowance_s = self._first_budget_s(queued.info.namespace)
        return queued.allowance_s > 0

    def _first_budget_s(self, namespace: str) -> float:
        """Return the budget of a pod without a history; 0 when it has to wait."""
        account = self._accounts.get(namespace)
        others = len(self._accounts)
        if account is not None:
            others -= 1
            most_debt_s = self._most_debt_s()
            if account.debt_s >= most_debt_s or account.strangers:
                return 0.0
            if account.debt_s > 0:
                own_steps = int(STEPS * account.debt_s / most_debt_s)
                return self._small_s(min(max(own_steps, others // CROWD), STEPS))
        if not others:
            return self._limit_s
        crowd_s = self.costly_s / 2.0 ** min(others // CROWD, MAX_DOUBLINGS)
        return max(crowd_s, self._small_s(min(int(self._owed_s / self._credit_s), CREDIT_STEPS)))

    def _most_debt_s(self) -> float:
        """Return the debt of a namespace from which on its strangers wait.

        By the square of the number of accounts: then all credit together has a bound, however many
        namespaces there are.
        """
        return float(STEPS * self._step_s / len(self._accounts) ** 2)

    def _small_s(self, steps: int) -> float:
        return float(self._limit_s / SMALL / 2**steps)

    # --- while a pod waits --------------------------------------------------------------------

    def hold(self, queued: QueuedPod) -> None:
        """Let a pod wait for its namespace's account."""
        account = self._open(queued.info.namespace)
        uid = queued.info.uid
        self._waiting[uid] = queued
        (account.expensive if queued.budget_s else account.strangers)[uid] = queued
        self._look_soon()

    def remove(self, uid: str) -> bool:
        """Take a pod out; return whether it waited."""
        queued = self._waiting.pop(uid, None)
        if queued is None:
            return False
        queued.is_held = False
        account = self._accounts[queued.info.namespace]
        account.expensive.pop(uid, None)
        account.strangers.pop(uid, None)
        return True

    def release(self, now_s: float) -> QueuedPod | None:
        """Take out and return a pod whose attempt can be paid for, or None.

        What the attempt may use is paid with it, and what it leaves is paid back.
        """
        if not self._waiting or now_s < self._look_s:
            return None
        self._book(now_s)
        most_debt_s = self._most_debt_s()
        for account in self._accounts.values():
            queued = next(iter(account.expensive.values()), None)
            saved = queued is not None and account.savings_s >= queued.budget_s
            if queued is not None and saved and self._rest_s <= 0:
                queued.prepaid_s = queued.budget_s
                account.savings_s -= queued.prepaid_s
                self._rest_s = self._rest_after_s(queued.prepaid_s)
            elif account.strangers and account.debt_s < most_debt_s:
                queued = next(iter(account.strangers.values()))
                queued.prepaid_s = self._small_s(STEPS)
                self._owe(account, queued.prepaid_s)
            else:
                continue
            self.remove(queued.info.uid)
            return queued
        rate = self._rate()
        soonest_s = min(
            each.ready_in_s(rate, most_debt_s, self._rest_s) for each in self._accounts.values()
        )
        self._looked_s = now_s
        self._look_s = now_s + min(max(soonest_s, TICK_S), _LOOK_S)
        return None

    def next_look_s(self) -> float | None:
        """Return when to check again for pods to release, or None when no pod waits."""
        return self._look_s if self._waiting else None

    def _look_soon(self) -> None:
        # Not at once: a look costs O(accounts), and attempts that end may be many.
        self._look_s = min(self._look_s, self._looked_s + TICK_S)

    # --- after an attempt ---------------------------------------------------------------------

    def settle(self, queued: QueuedPod, used_s: float, *, over: bool) -> None:
        """Charge the cost of an attempt, and set the budget of the next one.

        Only needed for attempts that were stopped, costly, or paid for in advance.

        Parameters
        ----------
        used_s
            CPU seconds.
        over
            Whether the attempt was stopped because its budget was exceeded.
        """
        account = self._open(queued.info.namespace)
        prepaid_s, queued.prepaid_s = queued.prepaid_s, 0.0
        if queued.budget_s:
            account.savings_s += max(0.0, prepaid_s - used_s)
            self._owe(account, max(0.0, used_s - prepaid_s))
            unused_s = self._rest_after_s(prepaid_s) - self._rest_after_s(used_s)
            self._rest_s = max(0.0, self._rest_s - unused_s)
        else:
            # Some of what was paid in advance may have been earned meanwhile.
            owed_s = used_s if over else max(0.0, used_s - self.costly_s)
            self._owe(account, owed_s - min(account.debt_s, prepaid_s))
        if over:
            most_s = self._limit_s * 2**MAX_DOUBLINGS
            queued.budget_s = min(max(2 * queued.allowance_s, self._limit_s), most_s)
        elif used_s <= self.costly_s:
            queued.budget_s = 0.0
        elif used_s <= self._limit_s:
            queued.budget_s = self._limit_s
        else:
            queued.budget_s = max(queued.budget_s, self._limit_s)
        self._look_soon()
        self.look()

    # --- incomes ------------------------------------------------------------------------------

    def _open(self, namespace: str) -> _Account:
        account = self._accounts.get(namespace)
        if account is None:
            account = self._accounts[namespace] = _Account()
        return account

    def _owe(self, account: _Account, seconds: float) -> None:
        account.debt_s += seconds
        self._owed_s += seconds

    def _rest_after_s(self, used_s: float) -> float:
        """Return the pause after an expensive pod's attempt: half of what the share requires.

        So attempts that several namespaces have saved for do not stand one behind the other.
        """
        return min(used_s, self._limit_s) / (2 * SHARE)

    def _rate(self) -> float:
        return SHARE / len(self._accounts)

    def _book(self, now_s: float) -> None:
        """Credit every account with its income since the last call."""
        if self._cpu_clock is not None:
            if self._thread_s is None:
                return
            now_s = self._thread_s
        passed_s = 0.0 if self._booked_s is None else now_s - self._booked_s
        if passed_s < TICK_S and self._booked_s is not None:
            return
        self._booked_s = now_s
        self._rest_s = max(0.0, self._rest_s - passed_s)
        income_s = passed_s * self._rate()
        self._owed_s = 0.0
        for namespace, account in list(self._accounts.items()):
            account.earn(income_s)
            self._owed_s += account.debt_s
            if account.is_settled:
                del self._accounts[namespace]
        if not self._accounts:
            self._booked_s = self._thread_s = None
            self._rest_s = 0.0
