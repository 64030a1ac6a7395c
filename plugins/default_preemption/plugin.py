"""DefaultPreemption: when a pod fits on no node, less important pods may be evicted.

*Source*: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (1.36)
and pkg/scheduler/framework/preemption/preemption.go (Evaluator.Preempt); for the arguments
k8s.io/kube-scheduler config/v1/types_pluginargs.go, DefaultPreemptionArgs (0.36) and
pkg/scheduler/apis/config/{v1/defaults.go, validation/validation_pluginargs.go}.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import msgspec

from cache.pod_info import PodInfo
from cache.value import Value
from plugins import names
from plugins.default_preemption.candidates import CandidateSearch
from plugins.default_preemption.choice import Candidate, pick_node
from plugins.default_preemption.dry_run import DryRunError
from plugins.default_preemption.eligibility import VICTIMS_ARE_LEAVING, eligibility
from plugins.default_preemption.gang_dry_run import victims_of
from plugins.framework.args import ArgsError, PluginArgs
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.interfaces import PostFilterPlugin, PreEnqueuePlugin
from plugins.framework.queueing_hints import for_everybody
from plugins.framework.status import SUCCESS, Code, Status, failure, unresolvable, unschedulable
from plugins.framework.victims import Victims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cache.columns import NodesView
    from cache.objects import Pod
    from plugins.default_preemption.candidates import Findings
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.node_statuses import NodeStatuses

IS_RUNNING = unresolvable("waiting for the preemption for this pod to be finished")
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """The minimum number of nodes on which victims are searched for: the larger of the two.

    Parameters
    ----------
    min_candidate_nodes_percentage
        A share of the nodes that preemption may help on, 0..100.
    min_candidate_nodes_absolute
        A number of nodes, 0 or more.
    """

    min_candidate_nodes_percentage: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 10
    min_candidate_nodes_absolute: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 100

    def problems(self) -> Iterator[ArgsError]:
        """Yield the errors in the arguments."""
        share, count = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= share <= 100:
            why = f"must be from 0 to 100, not {share}"
            yield ArgsError("minCandidateNodesPercentage", why)
        if count < 0:
            yield ArgsError("minCandidateNodesAbsolute", f"must be at least 0, not {count}")
        if share == 0 and count == 0:
            why = "must not be 0 together with minCandidateNodesAbsolute"
            yield ArgsError("minCandidateNodesPercentage", why)

    def candidates_wanted(self, num_nodes: int) -> int:
        """Return the sufficient number of candidates for this number of potential nodes."""
        share = num_nodes * self.min_candidate_nodes_percentage // 100
        return min(max(share, self.min_candidate_nodes_absolute), num_nodes)


class Survey(Value, frozen=True):
    """The result of a search for candidates that evicts no pod.

    Parameters
    ----------
    candidates
        All nodes on which preemption would help.
    refusal
        Why the pod may not preempt; empty when it may.
    message
        Why there is no candidate, over all nodes; empty when there is one.
    """

    candidates: Mapping[str, Candidate] = msgspec.field(default_factory=dict)
    refusal: str = ""
    message: str = ""


class DefaultPreemption(PreEnqueuePlugin, PostFilterPlugin):
    """Finds the node on which preemption does the least harm, and has its victims evicted.

    A pod stays out of the queue while its victims are being evicted.

    Notes
    -----
    *Cost*: see :meth:`CandidateSearch.find`.
    """

    name = names.DEFAULT_PREEMPTION
    args_type = DefaultPreemptionArgs

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args = DefaultPreemptionArgs.checked(args)
        self.candidate_search = CandidateSearch(handle)
        self.wall_clock: Callable[[], float] = _now_s
        """Seconds since the epoch; a journal and its replay put theirs here."""

    def pre_enqueue(self, pod: Pod) -> Status:
        """Reject a pod while its preemption is running."""
        return IS_RUNNING if self.handle.preemption.is_running(pod.metadata.uid) else SUCCESS

    def post_filter(
        self, state: CycleState, info: PodInfo, nodes: NodesView, verdicts: NodeStatuses
    ) -> tuple[str | None, Status]:
        """Choose a candidate and start to evict its victims.

        Returns
        -------
        nominated
            The node that the pod is nominated for; the empty string when preemption helps on no
            node; None when the pod may not preempt, or after an error.
        status
            Success, Unschedulable or Error.
        """
        nominated, status = self._preempt(state, info, nodes, verdicts)
        if status.message:
            reasons = (f"preemption: {status.message}",)
            status = Status(status.code, reasons, status.plugin, status.error)
        return nominated, status

    def _preempt(
        self, state: CycleState, info: PodInfo, nodes: NodesView, verdicts: NodeStatuses
    ) -> tuple[str | None, Status]:
        live = self.handle.live_pod(info.namespace, info.name)
        if live is None or live.metadata.uid != info.uid:
            return None, Status(Code.ERROR, (f'pod "{info.name}" not found',))
        if live is not info.pod:
            info = PodInfo(live)
        allowed = eligibility(info, nodes, verdicts, self.wall_clock())
        if allowed.refusal:
            return None, unschedulable(allowed.refusal)
        rows = verdicts.helpable_rows()
        wanted = self.args.candidates_wanted(len(rows))
        found = self.candidate_search.find(state, info, nodes, rows, wanted)
        if allowed.avoided_node:
            candidates = found.candidates()
            candidates.pop(allowed.avoided_node, None)
            if not candidates:
                return None, unschedulable(VICTIMS_ARE_LEAVING)
            return self._ask_extenders(info, nodes, candidates, pick_node(candidates))
        if not len(found):
            errors = _errors_of(found)
            if errors:
                return None, Status(Code.ERROR, (errors,))
            return "", unschedulable(no_candidates(found, len(nodes)))
        chosen, candidate = found.best()
        if self.handle.preemption.asks_extenders:
            return self._ask_extenders(info, nodes, found.candidates(), chosen)
        return self._start(info, chosen, candidate)

    def _ask_extenders(
        self, info: PodInfo, nodes: NodesView, candidates: Mapping[str, Candidate], chosen: str
    ) -> tuple[str | None, Status]:
        victims = {name: _on_node(name, each.victims) for name, each in candidates.items()}
        infos, row_of = nodes.columns.node_infos, nodes.columns.row_of
        node_infos = {name: infos[row_of[name]] for name in victims}
        try:
            left = self.handle.preemption.ask_extenders(info, victims, node_infos)
        except Exception as error:  # noqa: BLE001 - whatever an extender's failure raises
            return None, failure(error, "asking extenders")
        if not left:
            return None, unschedulable("no candidate node for preemption")
        if left is not victims:
            completed = (
                (name, self._completed(info, each, candidates[name].harm.displaced_nominees))
                for name, each in left.items()
            )
            candidates = {name: each for name, each in completed if each is not None}
            if not candidates:
                return None, unschedulable("no candidate node for preemption")
            chosen = pick_node(candidates)
        return self._start(info, chosen, candidates[chosen])

    def _completed(self, info: PodInfo, victims: Victims, displaced: int) -> Candidate | None:
        """Return a candidate of an extender with all that gangs lose by it.

        None when a gang would lose a pod that is not less important than the preemptor.
        """
        gangs, budgets = self.candidate_search.gangs, self.handle.disruption_budgets
        if gangs.may_exist:
            lost = gangs.with_all_lost(victims.pods)
            if any(gangs.priority_of(each) >= info.priority for each in lost[len(victims.pods) :]):
                return None
            known = victims.pdb_violations if len(lost) == len(victims.pods) else None
            victims = victims_of(lost, gangs, budgets, known)
        return Candidate.of(victims, displaced, gangs.priority_of)

    def _start(self, info: PodInfo, chosen: str, candidate: Candidate) -> tuple[str | None, Status]:
        status = self.handle.preemption.start(info, chosen, candidate.victims, self.name)
        return (chosen if status.is_success else None), status

    def survey(
        self, state: CycleState, info: PodInfo, nodes: NodesView, verdicts: NodeStatuses
    ) -> Survey:
        """Return all nodes on which preemption would help, without any eviction.

        Raises
        ------
        DryRunError
            When there is no candidate because dry runs failed; a cycle would end with that error.
        """
        allowed = eligibility(info, nodes, verdicts, self.wall_clock())
        if allowed.refusal:
            return Survey(refusal=allowed.refusal)
        found = self.candidate_search.find(state, info, nodes, verdicts.helpable_rows(), None)
        if len(found):
            return Survey(found.candidates())
        errors = _errors_of(found)
        if errors:
            raise DryRunError(errors)
        return Survey(message=no_candidates(found, len(nodes)))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the deletion of pods, with a hint that does not retry the pod for it.

        A preempting pod waits because it does not fit: the hints of the plugins that rejected it
        decide when it may.
        """
        return (
            EventRegistration.on(
                Resource.POD, Action.DELETE, for_everybody(lambda old, new: False)
            ),
        )


def _now_s() -> float:
    return time.time()


def no_candidates(found: Findings, num_nodes: int) -> str:
    """Return the message, over all nodes, that preemption helps on no node.

    *Source*: kube-scheduler 1.36, pkg/scheduler/framework/types.go (FitError.Error).
    """
    reasons: Counter[str] = Counter()
    refusals = found.refusals()
    for status, count in refusals.items():
        for reason in status.reasons:
            reasons[reason] += count
    if refusals.total() < num_nodes:
        reasons[NOT_HELPFUL] += num_nodes - refusals.total()
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{num_nodes} nodes are available: {listed}."


def _errors_of(found: Findings) -> str:
    """Return the errors of dry runs, each error once, sorted; empty without errors."""
    errors = (status.reasons for status in found.refusals() if status.code is Code.ERROR)
    distinct = sorted(set(chain.from_iterable(errors)))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""


def _on_node(name: str, victims: Victims) -> Victims:
    """Return the victims on the node itself: an extender is asked about these only."""
    if not victims.gangs:
        return victims
    pods = tuple(info for info in victims.pods if info.node_name == name)
    return Victims(pods, victims.pdb_violations)
