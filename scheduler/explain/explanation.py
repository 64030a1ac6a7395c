"""An explanation: the result of every plugin for one pod on every node.

An explanation is computed only by the parts of the live cycle, so it cannot contradict a Decision.
It differs in two points: it does not choose among nodes with equal scores, and it never takes a
shortcut of the live cycle, such as a sample of the nodes or a single feasible node without scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plugins.default_preemption import DefaultPreemption, DryRunError, decisive_rung, pick_node
from plugins.dynamic_resources import DynamicResources
from plugins.framework.cycle_state import CycleState
from scheduler.explain.ranking import NOBODY, Ranking
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.judgement import judge
from scheduler.runtime.node_statuses import SearchStatuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.default_preemption import Candidate
    from plugins.dynamic_resources.device_report import DeviceReport
    from plugins.framework.status import Code, Status
    from scheduler.decision.decision import Diagnosis
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.judgement import Judgement, Search


@dataclass(frozen=True, slots=True)
class Rejection:
    """The reason why a node, or every node, is not feasible for the pod.

    Parameters
    ----------
    plugin
        The first plugin that rejected; empty if several PreFilters together leave no node.
    code
        ``UNSCHEDULABLE``, ``UNSCHEDULABLE_AND_UNRESOLVABLE`` or ``PENDING``.
    reasons
        The reasons as in the pod's condition.
    """

    plugin: str
    code: Code
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, status: Status) -> Rejection:
        """Return the rejection in a status, without the fields that only the runner needs."""
        return cls(status.plugin, status.code, status.reasons)


@dataclass(frozen=True, slots=True)
class RoomToMake:
    """The result of a dry run of preemption for a pod without a feasible node.

    Parameters
    ----------
    priority
        The pod's priority.
    candidates
        The victims by node, in the order of :class:`plugins.default_preemption.Harm`, the least
        harm first.
    decisive
        The field of Harm that distinguishes the first candidate; None if there is only one
        candidate, or another one is equal.
    refusal
        Why the pod may not preempt; empty if it may.
    message
        Why preemption helps on no node, or its error; empty if it helps, or with a refusal.
    """

    priority: int
    candidates: Mapping[str, Candidate]
    decisive: str | None = None
    refusal: str = ""
    message: str = ""

    @property
    def chosen(self) -> str | None:
        """The node on which preemption would evict pods."""
        return next(iter(self.candidates), None)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one pod. Each node is in exactly one of ``rejected`` and ``ranked``.

    Both are empty if ``pre_filter`` rejects all nodes, and if there are no nodes.
    """

    pod_key: str
    num_nodes: int
    pre_filter: Rejection | None
    rejected: Mapping[str, Rejection]
    """The rejections by node name, in no order."""
    ranked: Ranking
    """The scores by node name, in descending order; nodes with equal scores by name."""
    room_to_make: RoomToMake | None = None
    """None if a node is feasible, and in a profile without DefaultPreemption."""
    devices: tuple[DeviceReport, ...] = ()
    """The devices for each request of the claims that have to be allocated, on the nodes that no
    other filter rejects."""
    deallocation: str = ""
    """What DynamicResources would do for a pod with claims if no node is feasible, else empty."""


def explain(framework: FrameworkRunner, snapshot: Snapshot, info: PodInfo) -> Explanation:
    """Return the results of every plugin of a profile for a pod.

    Raises
    ------
    PluginError
        When a plugin fails; a live cycle would end with that error.

    *Cost*: a cycle, and a few microseconds of Python for each node; if no node is feasible, a dry
    run of preemption for each node on which it could help.
    """
    if not len(snapshot):
        return Explanation(info.key, 0, None, {}, NOBODY)  # a cycle ends here, before any plugin
    state = CycleState()
    judged = judge(framework, snapshot, info, state)
    search, diagnosis = judged.search, judged.search.diagnosis(len(snapshot))
    if search.outcome is None:
        pre_filter = None if diagnosis.pre_filter is None else Rejection.of(diagnosis.pre_filter)
        deallocation = _deallocation(framework, snapshot, state, info, search)
        room = _room_to_make(framework, snapshot, state, info, search)
        return Explanation(
            info.key, len(snapshot), pre_filter, {}, NOBODY, room, deallocation=deallocation
        )
    failure = None if judged.count else diagnosis.failure()
    if failure is not None:
        raise PluginError(failure)
    ranked = _ranked(framework, judged, state, info)
    rejected = _rejected(snapshot, diagnosis, ranked)
    room, deallocation = None, ""
    if not ranked:
        deallocation = _deallocation(framework, snapshot, state, info, search)
        room = _room_to_make(framework, snapshot, state, info, search)
    devices = _devices(framework, snapshot, state, info, rejected)
    return Explanation(info.key, len(snapshot), None, rejected, ranked, room, devices, deallocation)


def _dynamic_resources(framework: FrameworkRunner) -> DynamicResources | None:
    return next((each for each in framework.plugins if isinstance(each, DynamicResources)), None)


def _ranked(
    framework: FrameworkRunner, judged: Judgement, state: CycleState, info: PodInfo
) -> Ranking:
    names, scores = [node.name for node in judged.view.node_infos()], judged.scores
    plugin = _dynamic_resources(framework)
    allocations = {}
    if plugin is not None and plugin.has_claims(state):
        allocations = {name: plugin.allocations(state, info, name) for name in names}
    if scores is None:
        return Ranking(names, {}, np.zeros(len(names), dtype=np.int64), allocations)
    return Ranking(names, scores.weighted, scores.total, allocations)


def _room_to_make(
    framework: FrameworkRunner,
    snapshot: Snapshot,
    state: CycleState,
    info: PodInfo,
    search: Search,
) -> RoomToMake | None:
    found = [each for each in framework.plugins if isinstance(each, DefaultPreemption)]
    if not found or found[0] not in framework.points.get("postFilter", ()):
        return None
    nodes = snapshot.all_nodes()
    verdicts = SearchStatuses(nodes, search.pre, search.outcome)
    try:
        survey = found[0].survey(state, info, nodes, verdicts)
    except DryRunError as error:
        # A live cycle goes on as well: what failed ends up in the pod's condition.
        return RoomToMake(info.priority, {}, message=str(error))
    if not survey.candidates:
        return RoomToMake(info.priority, {}, None, survey.refusal, survey.message)
    by_name = {name: survey.candidates[name] for name in sorted(survey.candidates)}
    chosen = pick_node(by_name)
    ordered = dict(sorted(by_name.items(), key=lambda item: item[1].harm))
    return RoomToMake(info.priority, ordered, decisive_rung(by_name, chosen))


def _deallocation(
    framework: FrameworkRunner,
    snapshot: Snapshot,
    state: CycleState,
    info: PodInfo,
    search: Search,
) -> str:
    """Return what PostFilter says of the pod's claims; nothing is written offline."""
    plugin = _dynamic_resources(framework)
    if plugin is None or plugin not in framework.points.get("postFilter", ()):
        return ""
    if not plugin.has_claims(state):
        return ""
    nodes = snapshot.all_nodes()
    verdicts = SearchStatuses(nodes, search.pre, search.outcome)
    _, status = plugin.post_filter(state, info, nodes, verdicts)
    return status.message


def _devices(
    framework: FrameworkRunner,
    snapshot: Snapshot,
    state: CycleState,
    info: PodInfo,
    rejected: Mapping[str, Rejection],
) -> tuple[DeviceReport, ...]:
    """Return the devices on the nodes that no other filter rejects."""
    plugin = _dynamic_resources(framework)
    if plugin is None:
        return ()
    by_others = {name for name, each in rejected.items() if each.plugin != plugin.name}
    nodes = [
        each.node
        for each in snapshot.all_nodes().node_infos()
        if each.node is not None and each.name not in by_others
    ]
    return plugin.explain_devices(state, info, nodes)


def _rejected(snapshot: Snapshot, diagnosis: Diagnosis, ranked: Ranking) -> dict[str, Rejection]:
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
