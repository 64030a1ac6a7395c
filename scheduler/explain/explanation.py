"""What every plugin says of one pod on every node: the value behind ``berth explain``.

It is made by the parts of the live cycle and by nothing else, so it cannot tell another story
than a Decision does. Only the choice among equals is left out, and no node is passed over: a
share of the nodes, or a single feasible one that needs no scores, is for those in a hurry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plugins.framework.cycle_state import CycleState
from scheduler.framework_runner import diagnose
from scheduler.host_selection import HostSelector
from scheduler.scheduling_cycle import SchedulingCycle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.status import Code, Status
    from scheduler.decision import Diagnosis
    from scheduler.framework_runner import FrameworkRunner

_ANY_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node, or every node, cannot have the pod.

    Parameters
    ----------
    plugin
        Who said so first; empty when PreFilters leave no node together.
    code
        ``UNSCHEDULABLE``, ``UNSCHEDULABLE_AND_UNRESOLVABLE`` or ``PENDING``.
    reasons
        As they appear in the pod's condition.
    """

    plugin: str
    code: Code
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, status: Status) -> Rejection:
        """Return a status that is a rejection, without what only the runner needs."""
        return cls(status.plugin, status.code, status.reasons)


@dataclass(frozen=True, slots=True)
class NodeScores:
    """The weighted score of each scoring plugin that did not skip the pod, and their sum."""

    scores: Mapping[str, int]
    total: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdicts on one pod. Each node is in exactly one of ``rejected`` and ``ranked``.

    Both are empty when ``pre_filter`` speaks for all nodes, and where there are no nodes.
    """

    pod_key: str
    num_nodes: int
    pre_filter: Rejection | None
    rejected: Mapping[str, Rejection]
    """By node name, in no order."""
    ranked: Mapping[str, NodeScores]
    """By node name, the best first; equals by name."""

    @property
    def is_feasible(self) -> bool:
        """Whether any node can have the pod."""
        return bool(self.ranked)


def explain(framework: FrameworkRunner, snapshot: Snapshot, info: PodInfo) -> Explanation:
    """Ask every plugin of a profile about a pod.

    Raises
    ------
    PluginError
        When a plugin fails; a live cycle would end with that error.

    *Cost*: a cycle, and a few microseconds of Python for each node.
    """
    if not len(snapshot):
        return Explanation(info.key, 0, None, {}, {})  # a cycle ends here, before any plugin
    state = CycleState()
    search = SchedulingCycle(snapshot, HostSelector(_ANY_SEED)).search(framework, state, info)
    diagnosis = diagnose(len(snapshot), search.pre, search.outcome)
    if search.outcome is None:
        pre_filter = None if diagnosis.pre_filter is None else Rejection.of(diagnosis.pre_filter)
        return Explanation(info.key, len(snapshot), pre_filter, {}, {})
    mask = search.outcome.feasible
    feasible = search.nodes if mask is None else search.nodes.subset(np.flatnonzero(mask))
    ranked: dict[str, NodeScores] = {}
    if len(feasible):
        scores = framework.run_score(state, info, feasible, keep=True)
        found = list(feasible.node_infos())
        # A stable sort over names first: equals stand in the order of their names.
        order = sorted(range(len(found)), key=lambda row: found[row].name)
        order.sort(key=lambda row: -int(scores.total[row]))
        columns = {plugin: column.tolist() for plugin, column in scores.weighted.items()}
        for row in order:
            by_plugin = {plugin: column[row] for plugin, column in columns.items()}
            ranked[found[row].name] = NodeScores(by_plugin, int(scores.total[row]))
    rejected = _rejected(snapshot, diagnosis, ranked)
    return Explanation(info.key, len(snapshot), None, rejected, ranked)


def _rejected(
    snapshot: Snapshot, diagnosis: Diagnosis, ranked: Mapping[str, NodeScores]
) -> dict[str, Rejection]:
    rejected: dict[str, Rejection] = {}
    for group in diagnosis.rejected:
        rejection = Rejection.of(group.status)
        for name in group.node_names:
            rejected[name] = rejection
    if diagnosis.absent is not None:
        # All narrowing plugins are in the reason; the first by name answers for them.
        absent = Rejection.of(diagnosis.absent.by(min(diagnosis.narrowing_plugins)))
        for name in snapshot.names():
            if name not in rejected and name not in ranked:
                rejected[name] = absent
    return rejected
