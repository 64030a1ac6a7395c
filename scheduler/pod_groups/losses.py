"""The pods that may be evicted for a group, and the harm that evicting some of them does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cache.value import MutableValue, Value
from plugins.default_preemption import (
    Harm,
    importance_in,
    split_by_budgets,
    start_time_s,
    victims_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from cache.disruption_budgets import DisruptionBudgets
    from cache.node_info import NodeInfo
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from plugins.default_preemption import Gang, Gangs
    from plugins.framework.victims import Victims


class Unit(Value, frozen=True):
    """What stays or is evicted as one: a pod, or a gang of which members may be spared.

    Parameters
    ----------
    pods
        The pod, or the members of the gang that may be evicted; the most important first.
    gang
        None for a pod.
    is_whole
        Whether more members may be evicted than the gang can spare, and all then.
    """

    pods: tuple[PodInfo, ...]
    gang: Gang | None = None
    is_whole: bool = True

    @property
    def spare(self) -> int:
        """How many of the pods may be evicted while the others stay."""
        return 0 if self.gang is None else self.gang.spare

    @property
    def removable(self) -> tuple[PodInfo, ...]:
        """The pods that may be evicted together: of a gang that has to stay the least important."""
        return self.pods if self.is_whole else self.pods[len(self.pods) - self.spare :]


class Losses(MutableValue):
    """The pods that a group may evict.

    Parameters
    ----------
    gangs
        The gangs as this search sees them.
    budgets
        The PodDisruptionBudgets.
    priority
        Of the group.
    own
        The group: it evicts no members of its own.
    leaving
        The UIDs of pods that leave anyway.
    """

    gangs: Gangs
    budgets: DisruptionBudgets
    priority: int
    own: GroupKey
    leaving: Collection[str]
    _spared_of: dict[GroupKey, frozenset[str]] = msgspec.field(default_factory=dict)
    _gang_units: dict[GroupKey, Unit | None] = msgspec.field(default_factory=dict)

    def units(self, nodes: Iterable[NodeInfo]) -> list[Unit]:
        """Return what may be evicted from some nodes, the most important first.

        A gang with a member there comes with all of its members, wherever they are.

        *Cost*: some 2 us for each pod below the priority.
        """
        found: list[Unit] = []
        seen: set[GroupKey] = set()
        priority, leaving, gangs = self.priority, self.leaving, self.gangs
        for node_info in nodes:
            for info in node_info.pods.values():
                if info.priority >= priority or info.uid in leaving or info.is_terminating:
                    continue
                gang = gangs.of(info)
                if gang is None:
                    found.append(Unit((info,)))
                elif gang.key not in seen:
                    seen.add(gang.key)
                    unit = self._of_gang(gang)
                    if unit is not None:
                        found.append(unit)
        return self.in_order(found)

    def are_few(self, nodes: Iterable[NodeInfo], most: int) -> bool:
        """Return whether no more pods may be evicted from some nodes."""
        found = 0
        for node_info in nodes:
            found += sum(1 for _ in self.costs(node_info))
            if found > most:
                return False
        return True

    def costs(self, node_info: NodeInfo) -> Iterator[tuple[PodInfo, float, int]]:
        """Yield what may be evicted from a node: how many pods go with it, and its priority.

        A member that its gang cannot spare costs the whole gang.
        """
        for info in node_info.pods.values():
            if info.priority >= self.priority or info.uid in self.leaving or info.is_terminating:
                continue
            gang = self.gangs.of(info)
            unit = None if gang is None else self._of_gang(gang)
            if gang is None:
                yield info, 1.0, info.priority
            elif unit is None:
                continue
            elif not unit.is_whole or info.uid in self._spared(unit):
                yield info, 1.0, gang.priority_of(info)
            else:
                yield info, float(gang.size), gang.priority_of(unit.pods[0])

    def _spared(self, unit: Unit) -> frozenset[str]:
        """Return the least important members that a gang can spare."""
        if unit.gang is None or not unit.spare:
            return frozenset()
        known = self._spared_of.get(unit.gang.key)
        if known is None:
            known = frozenset(info.uid for info in unit.pods[-unit.spare :])
            self._spared_of[unit.gang.key] = known
        return known

    def _of_gang(self, gang: Gang) -> Unit | None:
        if gang.key not in self._gang_units:
            self._gang_units[gang.key] = self._made(gang)
        return self._gang_units[gang.key]

    def _made(self, gang: Gang) -> Unit | None:
        if gang.key == self.own:
            return None
        pods = [each for each in gang.members.values() if gang.priority_of(each) < self.priority]
        is_whole = len(pods) == gang.size
        if not pods or not (is_whole or gang.spare):
            return None
        pods.sort(key=lambda info: (-gang.priority_of(info), start_time_s(info.pod)))
        return Unit(tuple(pods), gang, is_whole)

    def in_order(self, units: Sequence[Unit]) -> list[Unit]:
        """Return units, those first that are to stay first: as in a dry run for a single pod."""
        pods = sorted(
            (info for unit in units for info in unit.pods),
            key=lambda info: importance_in(self.gangs, info),
        )
        violating = {info.uid for info in split_by_budgets(pods, self.budgets)[0]}

        def key(unit: Unit) -> tuple[bool, int, int, float]:
            violates = any(info.uid in violating for info in unit.pods)
            first, start = importance_in(self.gangs, unit.pods[0])
            size = 0 if unit.gang is None else unit.gang.size
            return not violates, first, -size, start

        return sorted(units, key=key)

    def harm(self, pods: Collection[PodInfo]) -> Harm:
        """Return the harm of evicting pods, of which there may be none."""
        return Harm.of(self.victims(pods), 0, self.gangs.priority_of) if pods else NO_HARM

    def victims(self, pods: Iterable[PodInfo]) -> Victims:
        """Return pods as victims."""
        return victims_of(pods, self.gangs, self.budgets)


WORST_HARM: Final = Harm(2**31, 2**31, 2**62, 2**31, float("inf"), 0)
"""More than any victims do."""

NO_HARM: Final = Harm(0, -(2**31), 0, 0, float("-inf"), 0)
