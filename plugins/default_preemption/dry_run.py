"""The dry run of preemption on one node, which selects the victims there.

*Source*: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (1.36)
(SelectVictimsOnNode, filterPodsWithPDBViolation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.value import MutableValue
from plugins.default_preemption.importance import importance
from plugins.framework.status import Code, Status, failure, unresolvable
from plugins.framework.victims import Victims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.disruption_budgets import DisruptionBudget, DisruptionBudgets
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import WhatIf

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")


class DryRunError(Exception):
    """A plugin failed to add or remove a pod in a dry run."""


def select_victims(
    what_if: WhatIf,
    budgets: DisruptionBudgets,
    state: CycleState,
    info: PodInfo,
    node_info: NodeInfo,
    emptied: NodeInfo,
    *,
    fits_emptied: bool = False,
) -> Victims | Status:
    """Return the victims on a node for a pod to fit there, or why preemption does not help.

    All pods of lower priority are removed; then as many as possible are added again: first those
    whose eviction would violate a budget, and in both groups the most important first.

    Parameters
    ----------
    state
        The state of the pod's cycle; it is not changed.
    node_info
        A node; it is not changed.
    emptied
        The same node without its pods of lower priority; it is not changed.
    fits_emptied
        Whether the pod is already known to fit on ``emptied``.

    *Cost*: a copy of the node and one run of the filters for each pod of lower priority, some
    20 us each.
    """
    lower = [other for other in node_info.pods.values() if other.priority < info.priority]
    if not lower:
        return NO_VICTIMS
    try:
        trial = _Trial(what_if, state.copy(), info, emptied.clone())
        return trial.run(lower, budgets, fits_emptied=fits_emptied)
    except DryRunError as error:
        return Status(Code.ERROR, (str(error),), error=error)
    except Exception as error:  # noqa: BLE001 - what a plugin raises spoils this node alone
        return failure(error, f'dry run of preemption on node "{node_info.name}"')


class _Trial(MutableValue, eq=False):
    """The dry run on one node."""

    what_if: WhatIf
    state: CycleState
    info: PodInfo
    node_info: NodeInfo

    def run(
        self, lower: list[PodInfo], budgets: DisruptionBudgets, *, fits_emptied: bool
    ) -> Victims | Status:
        for other in lower:
            self.state.budget.check()
            self._expect(self.what_if.remove_pod(self.state, self.info, other, self.node_info))
        if not fits_emptied:
            fits = self._ask()
            if not fits.is_success:
                return fits
        lower.sort(key=importance)
        violating, others = split_by_budgets(lower, budgets)
        violations = [other for other in violating if not self._reprieve(other)]
        rest = [other for other in others if not self._reprieve(other)]
        victims = [*violations, *rest]
        if violations and rest:
            victims.sort(key=importance)
        if not victims:
            name = self.node_info.name
            return Status(Code.ERROR, (f'expected at least one victim pod on node "{name}"',))
        return Victims(tuple(victims), len(violations))

    def _reprieve(self, other: PodInfo) -> bool:
        """Add a pod again and return whether both pods fit."""
        self.node_info.add_pod(other)
        self._expect(self.what_if.add_pod(self.state, self.info, other, self.node_info))
        if self._ask().is_success:
            return True
        self._take_off(other)
        return False

    def _take_off(self, other: PodInfo) -> None:
        self.node_info.remove_pod(other.uid)
        self._expect(self.what_if.remove_pod(self.state, self.info, other, self.node_info))

    def _ask(self) -> Status:
        return self.what_if.filter_one(self.state, self.info, self.node_info)

    @staticmethod
    def _expect(status: Status) -> None:
        if not status.is_success:
            raise DryRunError(status.message)


def split_by_budgets(
    pods: Sequence[PodInfo], budgets: DisruptionBudgets
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Return the pods whose eviction would violate a budget, and the others, both in order.

    Each pod that a budget selects uses one of its allowed disruptions, whether it is evicted in
    the end or not; once there are none left, the following pods violate the budget.
    """
    used: dict[tuple[str, str], int] = {}
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for info in pods:
        namespace = info.namespace
        held: Sequence[DisruptionBudget] = budgets.in_namespace(namespace)
        violates = False
        for budget in held:
            if budget.counts(info.pod):
                key = (namespace, budget.name)
                used[key] = used.get(key, 0) + 1
                violates = violates or used[key] > budget.disruptions_allowed
        (violating if violates else others).append(info)
    return violating, others
