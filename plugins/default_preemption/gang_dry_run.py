"""The dry run of preemption on a node with members of gangs.

# Differs: kube-scheduler evicts members of a group as it evicts any other pods.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from cache.value import MutableValue, Value
from plugins.default_preemption.dry_run import NO_VICTIMS, DryRunError, split_by_budgets
from plugins.default_preemption.importance import start_time_s
from plugins.framework.status import Code, Status, failure
from plugins.framework.victims import Victims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cache.disruption_budgets import DisruptionBudgets
    from cache.node_info import NodeInfo
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from plugins.default_preemption.gangs import Gang, Gangs
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import WhatIf


class GangDryRun(Value, frozen=True):
    """A dry run that knows the gangs.

    As many victims as possible are added again, as in a dry run without gangs. A gang is one victim
    with all that it loses, and is looked at before the pods of its priority; if it may stay, those
    of its members that it can spare are looked at like other pods.

    Parameters
    ----------
    what_if
        The filters.
    budgets
        The PodDisruptionBudgets.
    gangs
        The gangs as this search sees them.
    node_of
        Returns the node that a pod is on; None when pods on other nodes change no verdict.
    """

    what_if: WhatIf
    budgets: DisruptionBudgets
    gangs: Gangs
    node_of: Callable[[PodInfo], NodeInfo | None] | None

    def select_victims(
        self, state: CycleState, info: PodInfo, node_info: NodeInfo
    ) -> Victims | Status:
        """Return the victims for a pod to fit on a node, or why preemption does not help.

        Those on other nodes are among the victims. Neither the state nor the node is changed.

        *Cost*: as :func:`plugins.default_preemption.dry_run.select_victims`, and a copy of each
        node with members of the gangs where the pods of other nodes count.
        """
        trial = _Trial(self, state.copy(), info, node_info.clone())
        try:
            return trial.run()
        except DryRunError as error:
            return Status(Code.ERROR, (str(error),), error=error)
        except Exception as error:  # noqa: BLE001 - what a plugin raises spoils this node alone
            return failure(error, f'dry run of preemption on node "{node_info.name}"')


def importance_in(gangs: Gangs, info: PodInfo) -> tuple[int, float]:
    """Return a key: sorted by it, the most important pod comes first."""
    return -gangs.priority_of(info), start_time_s(info.pod)


def victims_of(
    pods: Iterable[PodInfo], gangs: Gangs, budgets: DisruptionBudgets, violations: int | None = None
) -> Victims:
    """Return pods as victims, with what the gangs among them lose.

    Parameters
    ----------
    pods
        At least one; all members of gangs that are evicted whole are among them.
    violations
        How many of them violate a budget, if that is known.
    """
    ordered = sorted(pods, key=lambda info: importance_in(gangs, info))
    if violations is None:
        violations = len(split_by_budgets(ordered, budgets)[0])
    lost: Counter[GroupKey] = Counter()
    for info in ordered:
        gang = gangs.of(info)
        if gang is not None:
            lost[gang.key] += 1
    whole = frozenset(
        key for key, count in lost.items() if (gang := gangs.get(key)) and count == gang.size
    )
    return Victims(tuple(ordered), violations, whole, lost.total())


class _Unit(MutableValue):
    """What is evicted, or stays, as one: a pod, or a gang.

    Parameters
    ----------
    lost
        All pods that are evicted with it.
    here
        Those of the node that stay if the unit does. Of a gang not those that it can spare.
    gang
        The gang that the unit is, or that the pod is a spare member of.
    """

    lost: Sequence[PodInfo]
    here: Sequence[PodInfo]
    gang: Gang | None = None
    is_gang: bool = False


class _Trial(MutableValue):
    dry_run: GangDryRun
    state: CycleState
    info: PodInfo
    node_info: NodeInfo
    others: dict[str, NodeInfo] = msgspec.field(default_factory=dict)
    """Copies of other nodes, without the pods that are removed."""

    def run(self) -> Victims | Status:
        units = self._units()
        if not units:
            return NO_VICTIMS
        for unit in units:
            self._remove(unit.lost if unit.is_gang else unit.here)
        fits = self._ask()
        if not fits.is_success:
            return fits
        lost = {info.uid: info for unit in units for info in unit.lost}
        violating = {info.uid for info in self._violating(lost.values())}
        units.sort(key=lambda unit: self._order(unit, violating))
        victims: dict[str, PodInfo] = {}
        gone: set[GroupKey] = set()
        for unit in units:
            if unit.gang is not None and unit.gang.key in gone:
                continue
            if not self._reprieve(unit):
                victims.update((info.uid, info) for info in unit.lost)
                if unit.is_gang and unit.gang is not None:
                    gone.add(unit.gang.key)
        if not victims:
            name = self.node_info.name
            return Status(Code.ERROR, (f'expected at least one victim pod on node "{name}"',))
        return victims_of(victims.values(), self.dry_run.gangs, self.dry_run.budgets)

    def _violating(self, pods: Iterable[PodInfo]) -> list[PodInfo]:
        return split_by_budgets(sorted(pods, key=self._importance), self.dry_run.budgets)[0]

    # --- units --------------------------------------------------------------------------------

    def _units(self) -> list[_Unit]:
        gangs, priority = self.dry_run.gangs, self.info.priority
        units: list[_Unit] = []
        members: dict[GroupKey, list[PodInfo]] = {}
        for other in self.node_info.pods.values():
            gang = gangs.of(other)
            if gang is None:
                if other.priority < priority:
                    units.append(_Unit((other,), (other,)))
            elif gang.priority_of(other) < priority:
                members.setdefault(gang.key, []).append(other)
        own = gangs.key_of(self.info)
        for key, here in members.items():
            gang = gangs.get(key)
            if gang is not None and key != own:
                units.extend(self._units_of(gang, here))
        return units

    def _units_of(self, gang: Gang, here: list[PodInfo]) -> Iterable[_Unit]:
        here.sort(key=self._spared_first)
        spare, kept = here[: gang.spare], here[gang.spare :]
        if kept and gang.is_evictable_below(self.info.priority):
            yield _Unit(tuple(gang.members.values()), kept, gang, is_gang=True)
        for info in spare:
            yield _Unit((info,), (info,), gang)

    def _spared_first(self, info: PodInfo) -> tuple[int, float, float]:
        """Return a key: the member that a gang spares first comes first."""
        amounts = self.node_info.allocatable
        size = sum(
            amount / amounts[name] for name, amount in info.requests.items() if amounts.get(name)
        )
        return self.dry_run.gangs.priority_of(info), -size, -start_time_s(info.pod)

    def _importance(self, info: PodInfo) -> tuple[int, float]:
        return importance_in(self.dry_run.gangs, info)

    def _order(self, unit: _Unit, violating: set[str]) -> tuple[bool, int, int, float]:
        """Return a key: the unit that is added again first comes first."""
        violates = any(info.uid in violating for info in unit.lost)
        first, start = min(map(self._importance, unit.lost))
        return not violates, first, -len(unit.lost) if unit.is_gang else 0, start

    # --- the nodes without victims ------------------------------------------------------------

    def _reprieve(self, unit: _Unit) -> bool:
        back = unit.here
        if unit.is_gang:
            spared = {info.uid for info in self._spared(unit)}
            back = [info for info in unit.lost if info.uid not in spared]
        for info in back:
            self._put_back(info)
        if self._ask().is_success:
            return True
        self._remove(back)
        return False

    def _spared(self, unit: _Unit) -> Iterable[PodInfo]:
        """Yield the members of a gang on the node that have units of their own."""
        kept = {info.uid for info in unit.here}
        for info in unit.lost:
            if info.node_name == self.node_info.name and info.uid not in kept:
                yield info

    def _remove(self, infos: Iterable[PodInfo]) -> None:
        for info in infos:
            node_info = self._node_of(info)
            if node_info is not None and info.uid in node_info.pods:
                self.state.budget.check()
                node_info.remove_pod(info.uid)
                self._expect(
                    self.dry_run.what_if.remove_pod(self.state, self.info, info, node_info)
                )

    def _put_back(self, info: PodInfo) -> None:
        node_info = self._node_of(info)
        if node_info is not None:
            self.state.budget.check()
            node_info.add_pod(info)
            self._expect(self.dry_run.what_if.add_pod(self.state, self.info, info, node_info))

    def _node_of(self, info: PodInfo) -> NodeInfo | None:
        if info.node_name == self.node_info.name:
            return self.node_info
        if self.dry_run.node_of is None:
            return None
        known = self.others.get(info.node_name)
        if known is None:
            known = self.dry_run.node_of(info)
            if known is not None:
                known = self.others[info.node_name] = known.clone()
        return known

    def _ask(self) -> Status:
        return self.dry_run.what_if.filter_one(self.state, self.info, self.node_info)

    @staticmethod
    def _expect(status: Status) -> None:
        if not status.is_success:
            raise DryRunError(status.message)
