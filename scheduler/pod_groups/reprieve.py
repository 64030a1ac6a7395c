"""Choose victims: evict everything that may be, then let as much as possible stay.

everything is removed -> units stay, the most important first, as long as the group fits
-> other choices are tried, as long as they may do less harm and steps are left
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from cache.value import MutableValue
from scheduler.pod_groups.losses import WORST_HARM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from plugins.default_preemption import Harm
    from scheduler.pod_groups.losses import Losses, Unit


class Room(Protocol):
    """The cluster without some pods."""

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods."""
        ...

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Add pods again that were removed."""
        ...

    def fits(self) -> bool:
        """Return whether enough members of the group fit now."""
        ...


class Reprieve(MutableValue):
    """A choice of victims among some units, whose removable pods are removed in the beginning.

    Parameters
    ----------
    room
        The cluster; at the end without the victims.
    losses
        Of the victims.
    units
        The most important first.
    """

    room: Room
    losses: Losses
    units: Sequence[Unit]
    victims: dict[str, PodInfo] = msgspec.field(default_factory=dict)

    def run(self) -> dict[str, PodInfo]:
        """Return the victims by UID; the group fits without them, and with no fewer of them.

        *Cost*: for each victim a number of questions that is the logarithm of the units.
        """
        self._reprieve(0, len(self.units))
        return self.victims

    def _reprieve(self, first: int, last: int) -> None:
        pods = [info for unit in self.units[first:last] for info in unit.removable]
        if not pods:
            return
        self.room.put_back(pods)
        if self.room.fits():
            return
        self.room.remove(pods)
        if last - first > 1:
            middle = (first + last) // 2
            self._reprieve(first, middle)
            self._reprieve(middle, last)
            return
        unit = self.units[first]
        left = self._reprieve_members(unit) if unit.spare else None
        if left is None:
            left = unit.removable
        self.victims.update((info.uid, info) for info in left)

    def _reprieve_members(self, unit: Unit) -> Sequence[PodInfo] | None:
        """Let members of a gang stay; return the others, or None if it cannot spare these."""
        left: list[PodInfo] = []
        self._reprieve_pods(unit.removable, left)
        if len(left) <= unit.spare:
            return left
        gone = {info.uid for info in left}
        self.room.remove(info for info in unit.removable if info.uid not in gone)
        return None

    def _reprieve_pods(self, pods: Sequence[PodInfo], left: list[PodInfo]) -> None:
        if not pods:
            return
        self.room.put_back(pods)
        if self.room.fits():
            return
        self.room.remove(pods)
        if len(pods) == 1:
            left.extend(pods)
            return
        middle = len(pods) // 2
        self._reprieve_pods(pods[:middle], left)
        self._reprieve_pods(pods[middle:], left)


class _Standing(MutableValue):
    """What is decided about the members of a gang."""

    kept: int = 0
    evicted: int = 0
    is_whole: bool = False


class BetterVictims(MutableValue):
    """A search for victims that do less harm, within a number of questions to the room.

    Parameters
    ----------
    room
        The cluster without all pods of the units.
    steps
        How many questions may be asked.
    best, best_harm
        Victims that are known, and their harm; None and the worst harm without any.
    """

    room: Room
    losses: Losses
    units: Sequence[Unit]
    steps: int
    best: Mapping[str, PodInfo] | None
    best_harm: Harm
    _pods: list[tuple[PodInfo, Unit]] = msgspec.field(default_factory=list)
    _standings: dict[GroupKey, _Standing] = msgspec.field(default_factory=dict)
    _evicted: dict[str, PodInfo] = msgspec.field(default_factory=dict)

    def run(self) -> Mapping[str, PodInfo] | None:
        """Return the best victims that are known, by UID. The room is left as it was."""
        for unit in self.units:
            self._pods.extend((info, unit) for info in unit.pods)
            if unit.gang is not None:
                self._standings[unit.gang.key] = _Standing()
        self._decide(0)
        return self.best

    def _decide(self, at: int) -> None:
        if self.steps <= 0:
            return
        if at == len(self._pods):
            self.best = dict(self._evicted)
            self.best_harm = self.losses.harm(self.best.values())
            return
        info, unit = self._pods[at]
        gang = None if unit.gang is None else self._standings[unit.gang.key]
        if gang is None or not gang.is_whole:
            self._keep(at, info, gang)
        self._evict(at, info, unit, gang)

    def _keep(self, at: int, info: PodInfo, gang: _Standing | None) -> None:
        self.room.put_back((info,))
        if gang is not None:
            gang.kept += 1
        self.steps -= 1
        if self.room.fits():
            self._decide(at + 1)
        if gang is not None:
            gang.kept -= 1
        self.room.remove((info,))

    def _evict(self, at: int, info: PodInfo, unit: Unit, gang: _Standing | None) -> None:
        was_whole = False
        if gang is not None:
            was_whole = gang.is_whole
            if not was_whole and gang.evicted + 1 > unit.spare:
                if gang.kept or not unit.is_whole:
                    return
                gang.is_whole = True
            gang.evicted += 1
        self._evicted[info.uid] = info
        if self._harm_so_far() < self.best_harm:
            self._decide(at + 1)
        del self._evicted[info.uid]
        if gang is not None:
            gang.evicted -= 1
            gang.is_whole = was_whole

    def _harm_so_far(self) -> Harm:
        whole = [
            info
            for unit in self.units
            if unit.gang is not None and self._standings[unit.gang.key].is_whole
            for info in unit.pods
        ]
        evicted = dict(self._evicted)
        evicted.update((info.uid, info) for info in whole)
        return self.losses.harm(evicted.values())


def choose(
    room: Room, losses: Losses, units: Sequence[Unit], few: int, steps: int
) -> tuple[Harm, Mapping[str, PodInfo]] | None:
    """Return victims among some units, and their harm; None if none are found.

    Parameters
    ----------
    room
        The cluster with all of the units, before and after.
    few
        Among so many pods other choices are tried.
    steps
        How many questions these may take.
    """
    removable = [info for unit in units for info in unit.removable]
    room.remove(removable)
    best: Mapping[str, PodInfo] | None = None
    harm = WORST_HARM
    if room.fits():
        best = Reprieve(room, losses, units).run()
        harm = losses.harm(best.values())
        room.put_back(best.values())
    else:
        room.put_back(removable)
    pods = [info for unit in units for info in unit.pods]
    if len(pods) <= few:
        room.remove(pods)
        if best is not None or room.fits():
            better = BetterVictims(room, losses, units, steps, best, harm)
            best, harm = better.run(), better.best_harm
        room.put_back(pods)
    return None if best is None else (harm, best)
