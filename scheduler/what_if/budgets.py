"""The PodDisruptionBudgets during a drain: what they allow, and whom they keep from leaving.

An eviction uses one disruption; a successor that runs gives it back, because the budget's
controller counts it as healthy then.

*Source*: pkg/registry/core/pod/rest/eviction.go (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scheduler.what_if.result import BudgetUse

if TYPE_CHECKING:
    from cache.disruption_budgets import DisruptionBudget, DisruptionBudgets
    from cache.objects import Pod

SEVERAL: Final = (
    "the pod has more than one PodDisruptionBudget, which the eviction subresource does not support"
)

NOT_ALLOWED: Final = "the eviction would violate the pod's disruption budget"

PENDING: Final = "Pending"


@dataclass(slots=True)
class _Account:
    first: int
    allowed: int
    evicted: int = 0
    waited: int = 0
    blocked: int = 0


class BudgetLedger:
    """What each budget allows after the evictions so far.

    Notes
    -----
    *Cost*: an eviction is compared with the budgets of its namespace.
    """

    def __init__(self, budgets: DisruptionBudgets) -> None:
        self._budgets = budgets
        self._accounts: dict[str, _Account] = {}

    def names(self, pod: Pod) -> tuple[str, ...]:
        """Return the budgets that protect a pod, as ``namespace/name``."""
        namespace = pod.metadata.namespace
        return tuple(
            f"{namespace}/{each.name}"
            for each in self._budgets.in_namespace(namespace)
            if each.counts(pod)
        )

    def evict(self, pod: Pod) -> str:
        """Use what the eviction of a pod needs; return why it is not allowed, or nothing.

        A pod that has not begun to run is evicted whatever its budgets say.
        """
        if pod.status.phase == PENDING:
            return ""
        names = self.names(pod)
        if not names:
            return ""
        if len(names) > 1:
            return SEVERAL
        account = self._account(pod, names[0])
        if account.allowed <= 0:
            return NOT_ALLOWED
        account.allowed -= 1
        account.evicted += 1
        return ""

    def lose(self, pod: Pod) -> None:
        """Count a pod that is gone without having been evicted."""
        for name in self.names(pod):
            self._account(pod, name).allowed -= 1

    def replaced(self, pod: Pod) -> None:
        """Count that the successor of a pod runs."""
        if pod.status.phase == PENDING:
            return
        for name in self.names(pod):
            self._account(pod, name).allowed += 1

    def waited(self, pod: Pod) -> None:
        """Count that a pod is evicted that could not be at first."""
        for name in self.names(pod):
            self._account(pod, name).waited += 1

    def blocked(self, pod: Pod) -> None:
        """Count that a pod could not be evicted in the end."""
        for name in self.names(pod):
            self._account(pod, name).blocked += 1

    def uses(self) -> tuple[BudgetUse, ...]:
        """Return the budgets that were used or stood in the way, those that block pods first."""
        used = [
            BudgetUse(name, each.first, each.evicted, each.waited, each.blocked)
            for name, each in self._accounts.items()
            if each.evicted or each.blocked or each.waited
        ]
        return tuple(sorted(used, key=lambda each: (-each.blocked, -each.waited, each.budget)))

    def _account(self, pod: Pod, name: str) -> _Account:
        account = self._accounts.get(name)
        if account is None:
            budget = self._budget(pod, name)
            account = _Account(budget.disruptions_allowed, budget.disruptions_allowed)
            self._accounts[name] = account
        return account

    def _budget(self, pod: Pod, name: str) -> DisruptionBudget:
        namespace = pod.metadata.namespace
        held = self._budgets.in_namespace(namespace)
        return next(each for each in held if f"{namespace}/{each.name}" == name)
