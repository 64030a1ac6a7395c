"""What attempts over their budget may take of the scheduling thread, shared between namespaces.

An attempt may use ``limit_s`` of CPU. One that uses more is broken off, and the next attempt of
this pod may use twice as much; such a pod is *expensive* until a verdict has cost no more than
``limit_s``. All that is broken off, and all attempts of expensive pods, are paid from one income: a
tenth of the time that passes, split evenly between the namespaces that have an account.

    debt      what first attempts have cost that were broken off. While there is any, the further
              pods of the namespace begin with a small budget, smaller the deeper the debt; beyond
              the last step they wait, and go one after another as the debt is paid.
    savings   what expensive pods will use. They wait in a line, and the first one goes when its
              whole next budget is there.

Where there is both, each gets half of the income. Nothing is kept by a pod's name, owner or
template, which anybody can make anew: a pod that is deleted and made again begins as a stranger, in
a namespace that is in debt.

# Differs: kube-scheduler has nothing like it. ``docs/adr/0015-attempt-budget.md`` explains the
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scheduler.queueing.queued_pod import QueuedPod

DEFAULT_LIMIT_S: Final = 0.25
"""CPU seconds of an ordinary attempt: several times what any workload of scheduler_perf needs at
5 000 nodes, and short enough that nobody minds to wait for one."""

SHARE: Final = 0.1
"""Of the scheduling thread's time, for everything over budget together."""

SMALL: Final = 16
"""The first budget in a namespace with debt is this part of the ordinary one: 15.6 ms of 250."""

STEP: Final = 1
"""Each further ``STEP * limit_s`` of debt halves that budget ..."""

STEPS: Final = 2
"""... and after so many steps of debt the namespace's new pods wait."""

CROWD: Final = 4
"""So many namespaces in debt count as one step for everybody else, and the more there are the less
each may owe: all credit together grows by the logarithm of their number."""

MAX_DOUBLINGS: Final = 8
"""64 s of CPU with the default limit. A cycle that takes minutes would end the process."""

TICK_S: Final = 0.05
"""Incomes are booked no more often."""

_LOOK_S: Final = 1.0
"""The longest time between two looks at who may go: incomes change as accounts are closed."""


class _Account:
    """Of one namespace."""

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

    def ready_in_s(self, rate: float, most_debt_s: float) -> float:
        """Return after how many seconds a pod may go, at an income of ``rate`` each second."""
        soonest_s = float("inf")
        if self.expensive:
            part = rate / 2 if self.debt_s > 0 else rate
            soonest_s = max(0.0, self._wanted_s() - self.savings_s) / part
        if self.strangers:
            part = rate / 2 if self.expensive else rate
            soonest_s = min(soonest_s, max(0.0, self.debt_s - most_debt_s) / part)
        return soonest_s


class BudgetAccounts:
    """The accounts of all namespaces, and the pods that wait for theirs.

    Parameters
    ----------
    limit_s
        CPU seconds of an ordinary attempt; infinity switches all of it off.
    cpu_clock
        CPU seconds of the scheduling thread. Time is then what it has worked or had nothing to do;
        what it waited for a processor is in neither: on a busy machine nobody earns by that. None
        for the time that is passed in.

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
        self._idle_s = self._thread_s = 0.0
        self._step_s = STEP * limit_s
        self._accounts: dict[str, _Account] = {}
        self._waiting: dict[str, QueuedPod] = {}
        self._booked_s: float | None = None
        self._look_s = float("-inf")

    def __len__(self) -> int:
        """Return how many pods wait."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate over the pods that wait."""
        return iter(self._waiting.values())

    @property
    def num_accounts(self) -> int:
        """How many namespaces have debts or pods that wait."""
        return len(self._accounts)

    def debt_s(self, namespace: str) -> float:
        """Return the debt of a namespace, as it was booked last."""
        account = self._accounts.get(namespace)
        return 0.0 if account is None else account.debt_s

    # --- the time of the thread ---------------------------------------------------------------

    def look(self) -> None:
        """Take note of what the calling thread, the scheduling thread, has worked so far."""
        if self._cpu_clock is not None and self._accounts:
            self._thread_s = self._idle_s + self._cpu_clock()

    def idle(self, seconds: float) -> None:
        """Take note that the scheduling thread had nothing to do."""
        self._idle_s += seconds

    # --- before an attempt --------------------------------------------------------------------

    def must_save(self, queued: QueuedPod) -> bool:
        """Tell whether a pod is expensive, and its next attempt has not been paid for."""
        return queued.budget_s > 0 and not queued.prepaid_s

    def admit(self, queued: QueuedPod, now_s: float) -> bool:
        """Decide whether the attempt of a pod may begin, and what it may use.

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
        """Return what a stranger may use; 0 when it has to wait."""
        account = self._accounts.get(namespace)
        own_steps, others = 0, len(self._accounts)
        if account is not None:
            if account.debt_s >= self._most_debt_s() or account.strangers:
                return 0.0
            own_steps, others = int(STEPS * account.debt_s / self._most_debt_s()), others - 1
        steps = max(own_steps, others // CROWD)
        if not steps and (account is None or account.debt_s <= 0):
            return self._limit_s
        return self._small_s(steps)

    def _most_debt_s(self) -> float:
        """Return the debt of a namespace from which on its strangers wait."""
        return STEPS * self._step_s / (1 + (len(self._accounts) - 1) // CROWD)

    def _small_s(self, steps: int) -> float:
        return float(self._limit_s / SMALL / 2 ** min(steps, STEPS))

    # --- while a pod waits --------------------------------------------------------------------

    def hold(self, queued: QueuedPod) -> None:
        """Let a pod wait for its namespace's account."""
        account = self._open(queued.info.namespace)
        uid = queued.info.uid
        self._waiting[uid] = queued
        (account.expensive if queued.budget_s else account.strangers)[uid] = queued
        self._look_s = float("-inf")

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
            if queued is not None and account.savings_s >= queued.budget_s:
                queued.prepaid_s = queued.budget_s
                account.savings_s -= queued.prepaid_s
            elif account.strangers and account.debt_s < most_debt_s:
                queued = next(iter(account.strangers.values()))
                queued.prepaid_s = self._small_s(STEPS)
                account.debt_s += queued.prepaid_s
            else:
                continue
            self.remove(queued.info.uid)
            return queued
        rate = self._rate()
        soonest_s = min(each.ready_in_s(rate, most_debt_s) for each in self._accounts.values())
        self._look_s = now_s + min(max(soonest_s, TICK_S), _LOOK_S)
        return None

    def next_look_s(self) -> float | None:
        """Return when to ask again who may go, or None when no pod waits."""
        return self._look_s if self._waiting else None

    # --- after an attempt ---------------------------------------------------------------------

    def settle(self, queued: QueuedPod, used_s: float, *, over: bool) -> None:
        """Book what an attempt has cost, and decide what the next one may cost.

        Only needed for attempts that were broken off, or paid for in advance.

        Parameters
        ----------
        used_s
            CPU seconds.
        over
            Whether it was broken off.
        """
        account = self._open(queued.info.namespace)
        prepaid_s, queued.prepaid_s = queued.prepaid_s, 0.0
        if queued.budget_s:
            account.savings_s += max(0.0, prepaid_s - used_s)
            account.debt_s += max(0.0, used_s - prepaid_s)
        else:
            # Some of what was paid in advance may have been earned meanwhile.
            account.debt_s = max(0.0, account.debt_s - prepaid_s) + (used_s if over else 0.0)
        if over:
            most_s = self._limit_s * 2**MAX_DOUBLINGS
            queued.budget_s = min(2 * queued.allowance_s, most_s)
        elif used_s <= self._limit_s:
            queued.budget_s = 0.0
        self._look_s = float("-inf")
        self.look()

    # --- incomes ------------------------------------------------------------------------------

    def _open(self, namespace: str) -> _Account:
        account = self._accounts.get(namespace)
        if account is None:
            account = self._accounts[namespace] = _Account()
        return account

    def _rate(self) -> float:
        return SHARE / len(self._accounts)

    def _book(self, now_s: float) -> None:
        """Give every account what it has earned since the last time."""
        if self._cpu_clock is not None:
            now_s = self._thread_s
        passed_s = 0.0 if self._booked_s is None else now_s - self._booked_s
        if passed_s < TICK_S and self._booked_s is not None:
            return
        self._booked_s = now_s
        income_s = passed_s * self._rate()
        for namespace, account in list(self._accounts.items()):
            account.earn(income_s)
            if account.is_settled:
                del self._accounts[namespace]
        if not self._accounts:
            self._booked_s = None
