"""Whether a gang fits, found by trying everything: the truth that the planner is held against.

Every placement that can be reached by putting one member after another on a node that all filters
of the profile accept at that moment is looked at once. Nothing is taken from the planner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from scheduler.runtime.filter_outcome import FilterOutcome

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from scheduler.runtime.framework_runner import FrameworkRunner
    from tests.gangs.random_gangs import Case


class Exhaustive:
    """Search one cluster, and each domain of a required topology by itself.

    ``looks`` counts how often the filters were asked.
    """

    def __init__(self, framework: FrameworkRunner, case: Case) -> None:
        self._framework = framework
        self._case = case
        self.looks = 0

    def fits(self) -> bool:
        """Return whether the members that are needed can be placed."""
        return any(self._fits_among(names) for names in self._domains())

    def _domains(self) -> list[set[str]]:
        infos = self._case.infos()
        key = self._case.rules.topology_key
        if not key:
            return [{info.name for info in infos}]
        values = sorted({info.labels[key] for info in infos if key in info.labels})
        return [{i.name for i in infos if i.labels.get(key) == value} for value in values]

    def _fits_among(self, names: set[str]) -> bool:
        snapshot = Snapshot.of(self._case.infos())
        waiting: dict[Hashable, list[PodInfo]] = {}
        for member in self._case.members:
            built = member.build()
            kind = repr(replace(built, metadata=replace(built.metadata, name="", uid="")))
            waiting.setdefault(kind, []).append(member.info())
        kinds = list(waiting.values())
        return self._walk(snapshot, kinds, names, self._case.rules.minimum, (), set())

    def _walk(
        self,
        snapshot: Snapshot,
        kinds: Sequence[list[PodInfo]],
        names: set[str],
        needed: int,
        path: tuple[tuple[int, str], ...],
        seen: set[tuple[tuple[int, str], ...]],
    ) -> bool:
        if needed == 0:
            return True
        key = tuple(sorted(path))
        if key in seen:
            return False
        seen.add(key)
        for index, waiting in enumerate(kinds):
            if not waiting:
                continue
            info = waiting.pop()
            for before in self._feasible(snapshot, info, names):
                after = before.clone()
                after.add_pod(info)
                snapshot.put(after)
                step = (*path, (index, before.name))
                found = self._walk(snapshot, kinds, names, needed - 1, step, seen)
                snapshot.put(before)
                if found:
                    return True
            waiting.append(info)
        return False

    def _feasible(self, snapshot: Snapshot, info: PodInfo, names: set[str]) -> list[NodeInfo]:
        self.looks += 1
        state, nodes = CycleState(), snapshot.all_nodes()
        judges = self._framework.judges
        pre = judges.run_pre_filters(state, info, nodes)
        if not pre.status.is_success:
            assert pre.status.is_rejection, pre.status
            return []
        outcome = FilterOutcome(nodes)
        judges.run_filters(state, info, nodes, outcome)
        mask = np.ones(len(nodes), dtype=np.bool_)
        if outcome.feasible is not None:
            mask = outcome.feasible
        allowed = names if pre.node_names is None else names & pre.node_names
        infos = (nodes.node_info(int(index)) for index in np.flatnonzero(mask))
        return [each for each in infos if each.name in allowed]
