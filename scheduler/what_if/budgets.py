"""The PodDisruptionBudgets during a question: what they allow, and whom they keep from leaving.

A budget allows as many disruptions as more of its pods are healthy than it demands. An eviction
takes one healthy pod away; a successor that runs is one more.

*Source*: pkg/registry/core/pod/storage/eviction.go and pkg/controller/disruption (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cache.label_selectors import compile_label_selector
from cache.pod_info import is_terminal
from cache.resources import MalformedObjectError
from scheduler.what_if.kinds_of_pods import controller_of
from scheduler.what_if.result import BudgetUse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.label_selectors import Selector
    from cache.objects import Pod
    from cache.workload_objects import PodDisruptionBudget
    from scheduler.offline.cluster import Cluster

SEVERAL: Final = (
    "the pod has more than one PodDisruptionBudget, which the eviction subresource does not support"
)

NOT_ALLOWED: Final = "the eviction would violate the pod's disruption budget"

PENDING: Final = "Pending"

ALWAYS_ALLOW: Final = "AlwaysAllow"


def is_healthy(pod: Pod) -> bool:
    """Return whether a budget counts a pod as healthy.

    One whose readiness is not known counts as ready: the live scheduler keeps the condition only
    where it is not true.
    """
    if pod.metadata.deletion_timestamp is not None or pod.status.phase == PENDING:
        return False
    return not is_terminal(pod) and _is_ready(pod)


def _is_ready(pod: Pod) -> bool:
    return all(each.status == "True" for each in pod.status.conditions if each.type == "Ready")


@dataclass(slots=True)
class _Account:
    """One budget.

    Attributes
    ----------
    healthy, desired
        How many pods are healthy, and how many have to be.
    is_in_force
        Whether its controller expects any pods; otherwise it allows nothing.
    """

    name: str
    budget: PodDisruptionBudget
    selector: Selector
    always_allows_unhealthy: bool
    healthy: int
    desired: int
    is_in_force: bool
    disrupted: frozenset[str]
    first: int = 0
    evicted: int = 0
    waited: int = 0
    blocked: int = 0

    @property
    def allowed(self) -> int:
        """How many disruptions it allows."""
        return max(self.healthy - self.desired, 0) if self.is_in_force else 0


class BudgetLedger:
    """What each budget allows after all that has happened so far.

    Parameters
    ----------
    cluster
        Its budgets and pods as they are at first.

    Notes
    -----
    *Cost*: an eviction is compared with the budgets of its namespace. Those without a status are
    compared with all pods once.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._accounts: dict[str, list[_Account]] = {}

    def names(self, pod: Pod) -> tuple[str, ...]:
        """Return the budgets that protect a pod, as ``namespace/name``."""
        return tuple(account.name for account in self._of(pod))

    def evict(self, pod: Pod) -> str:
        """Use what the eviction of a pod needs; return why it is not allowed, or nothing.

        A pod that has not begun to run is evicted whatever its budgets say.
        """
        if pod.status.phase == PENDING or pod.metadata.deletion_timestamp is not None:
            return ""
        accounts = self._of(pod)
        if not accounts:
            return ""
        if len(accounts) > 1:
            return SEVERAL
        (account,) = accounts
        if not is_healthy(pod):
            is_met = account.healthy >= account.desired > 0
            if not (account.always_allows_unhealthy or is_met or account.allowed):
                return NOT_ALLOWED
            account.evicted += 1
            return ""
        if not account.allowed:
            return NOT_ALLOWED
        account.evicted += 1
        self._change(account, -1)
        return ""

    def lose(self, pod: Pod) -> None:
        """Count a pod that is gone without having been evicted."""
        if is_healthy(pod):
            for account in self._of(pod):
                if pod.metadata.name not in account.disrupted:
                    self._change(account, -1)

    def runs(self, pod: Pod) -> None:
        """Count a pod that runs now."""
        if is_healthy(pod):
            for account in self._of(pod):
                self._change(account, 1)

    def _change(self, account: _Account, by: int) -> None:
        """Count healthy pods, and let preemption see what the budget allows now."""
        before = account.allowed
        account.healthy += by
        if account.allowed == before:
            return
        status = replace(account.budget.status, disruptions_allowed=account.allowed)
        account.budget = replace(account.budget, status=status)
        self._cluster.known.disruption_budgets.budget_changed(None, account.budget)

    def waited(self, pod: Pod) -> None:
        """Count that a pod is evicted that could not be at first."""
        for account in self._of(pod):
            account.waited += 1

    def blocked(self, pod: Pod) -> None:
        """Count that a pod could not be evicted in the end."""
        for account in self._of(pod):
            account.blocked += 1

    def uses(self) -> tuple[BudgetUse, ...]:
        """Return the budgets that were used or stood in the way, those that block pods first."""
        used = [
            BudgetUse(each.name, each.first, each.evicted, each.waited, each.blocked)
            for accounts in self._accounts.values()
            for each in accounts
            if each.evicted or each.blocked or each.waited
        ]
        return tuple(sorted(used, key=lambda each: (-each.blocked, -each.waited, each.budget)))

    def _of(self, pod: Pod) -> list[_Account]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        accounts = self._accounts.get(namespace)
        if accounts is None:
            accounts = self._accounts[namespace] = self._open(namespace)
        return [account for account in accounts if account.selector.matches(labels)]

    def _open(self, namespace: str) -> list[_Account]:
        """Return an account for each budget of a namespace."""
        budgets = self._cluster.known.disruption_budgets.objects(namespace)
        pods: list[Pod] = []
        if not all(map(_has_status, budgets)):
            pods += (p for p in self._cluster.pods.values() if p.metadata.namespace == namespace)
        found = []
        for budget in sorted(budgets, key=lambda each: each.metadata.name):
            try:
                selector = compile_label_selector(budget.spec.selector, "spec.selector")
            except MalformedObjectError:
                continue  # it matches no pod
            if not selector.nothing:
                found.append(_account(budget, selector, pods))
        return found


def _has_status(budget: PodDisruptionBudget) -> bool:
    """Return whether the budget's controller has seen it: one of a question has no status."""
    status = budget.status
    return bool(status.observed_generation or status.expected_pods or status.disruptions_allowed)


def _account(budget: PodDisruptionBudget, selector: Selector, pods: Iterable[Pod]) -> _Account:
    """Return the account of a budget; ``pods`` are those of its namespace, if it has no status."""
    status = budget.status
    if status.expected_pods or status.desired_healthy or status.current_healthy:
        healthy, desired = status.current_healthy, status.desired_healthy
        is_in_force = status.expected_pods > 0
    elif _has_status(budget):
        healthy, desired, is_in_force = status.disruptions_allowed, 0, True
    else:
        own = [pod for pod in pods if selector.matches(pod.metadata.labels)]
        healthy = sum(map(is_healthy, own))
        expected, desired = _expected(budget, own, pods)
        is_in_force = expected > 0
    account = _Account(
        f"{budget.metadata.namespace}/{budget.metadata.name}",
        budget,
        selector,
        budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW,
        healthy,
        desired,
        is_in_force,
        frozenset(status.disrupted_pods),
    )
    account.first = account.allowed
    return account


def _expected(
    budget: PodDisruptionBudget, pods: list[Pod], everybody: Iterable[Pod]
) -> tuple[int, int]:
    """Return how many pods a budget without a status expects, and how many have to be healthy.

    A controller is taken to want as many pods as it has.
    """
    most_gone, least = budget.spec.max_unavailable, budget.spec.min_available
    if most_gone is None and isinstance(least, int):
        return len(pods), least
    if most_gone is None and least is None:
        return 0, 0
    controllers = {owner.uid for pod in pods if (owner := controller_of(pod)) is not None}
    scale = sum(
        (owner := controller_of(pod)) is not None and owner.uid in controllers
        for pod in everybody
        if not is_terminal(pod) and pod.metadata.deletion_timestamp is None
    )
    if most_gone is not None:
        return scale, max(scale - _scaled(most_gone, scale), 0)
    return scale, _scaled(least or 0, scale)


def _scaled(amount: int | str, total: int) -> int:
    """Return a number, or a share of a total in percent, rounded up."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    return -(-int(digits) * total // 100) if digits.isdecimal() else 0
