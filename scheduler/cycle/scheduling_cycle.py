"""The scheduling cycle: one pod, one snapshot, one decision.

    pre-filter -> filter -> [post-filter] -> pre-score -> score -> normalise -> select host
                        extenders                      extenders

Only the cycle state is changed here; :mod:`scheduler.cycle.schedule_one` executes the decision.

*Source*: pkg/scheduler/schedule_one.go, schedulePod and findNodesThatFitPod (1.36).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import structlog
from msgspec.structs import replace

from cache.value import Value
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from plugins.framework.status import Code, Status, unschedulable
from scheduler.cycle.host_selection import second_best
from scheduler.cycle.signature_reuse import Placement, SignatureReuse, no_pods
from scheduler.decision.decision import NO_NODES_AVAILABLE, Decision, Diagnosis
from scheduler.extenders import Exclusions, ExtenderError
from scheduler.metrics.cycle_metrics import EXTENDER_FILTER, EXTENDER_PRIORITIZE
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.instrumented_plugins import mark
from scheduler.runtime.judgement import judge, pre_filter, search
from scheduler.runtime.node_statuses import SearchStatuses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from cache.columns import NodesView
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.results import RowArray
    from scheduler.cycle.best_rows import BestRows
    from scheduler.cycle.host_selection import HostSelector
    from scheduler.extenders import Consultation
    from scheduler.runtime.filter_outcome import FilterOutcome
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.judgement import Candidates, LikePods, Search

_NAMED: Final = 3
"""Nodes that a message names."""

_NOWHERE: Final[Mapping[str, float]] = {}

log = structlog.get_logger(__name__)


class Rejections(Protocol):
    """Returns the nodes that pods should avoid: those whose kubelets rejected their like."""

    def avoided(self, pod: Pod) -> Mapping[str, float]:
        """Return the nodes that a pod should avoid, each with the seconds of its pause."""
        ...


BROKEN_OFF = "attempt stopped: budget exceeded"
"""How the reason of an attempt begins whose budget ran out."""

MIN_FEASIBLE_NODES_TO_FIND = 100
"""A partial search never stops before this many feasible nodes. Source: schedule_one.go."""


class Feasible(Value, frozen=True):
    """The feasible nodes of one search, and the number of nodes that it processed."""

    view: NodesView
    evaluated: int


class SchedulingCycle:
    """Decide on which nodes pods are placed.

    Parameters
    ----------
    snapshot
        The nodes; brought up to date by the caller before each :meth:`decide`.
    selector
        Chooses among nodes with equal scores.
    rejections
        Returns the nodes that a pod should avoid; None to avoid no nodes.
    coming
        Returns so many pods, or fewer, that will probably be decided about next.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        selector: HostSelector,
        rejections: Rejections | None = None,
        coming: Callable[[int], Sequence[PodInfo]] = no_pods,
    ) -> None:
        self._rejections = rejections
        self.snapshot = snapshot
        self._selector = selector
        self._reuse = SignatureReuse(snapshot, selector, coming)
        self.next_start = 0
        """Where in the visiting order the next partial search starts."""
        self._cycle = 0
        self._began = 0.0

    def retain_profiles(self, frameworks: Iterable[FrameworkRunner]) -> None:
        """Forget all that is kept for profiles other than these."""
        self._reuse.retain_profiles(frameworks)

    def decide(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        info: PodInfo,
        *,
        among: Candidates | None = None,
        like: LikePods | None = None,
        post_filters: bool = True,
    ) -> Decision:
        """Decide where a pod goes. Never raises: a failure is a decision with an Error status.

        So is an attempt whose budget, that of ``state``, runs out. Nothing is known of the pod
        then, and nothing of what was found out on the way is kept.

        Parameters
        ----------
        among
            The only nodes that the pod may be placed on, and that a refusal counts; None for all
            nodes. Plugins see the others, too.
        like
            The pods that this one is like, which saves half of the time.
        post_filters
            Whether PostFilters are asked when no node is feasible. Without them nothing is
            preempted, and the nomination of the pod stays as it is.

        *Cost*: proportional to the nodes, in vector operations; no Python loop over nodes unless
        no node is feasible and the reasons have to be told, or an extender is interested in the
        pod: then this waits for its answers.
        """
        self._began = perf_counter()
        self._cycle += 1
        try:
            return self._decide(framework, state, info, among, like, post_filters=post_filters)
        except PluginError as error:
            return self._undecided(framework, info, error.status)
        except ExtenderError as error:
            status = Status(Code.ERROR, (str(error),), error=error)
            return self._undecided(framework, info, status)
        except AttemptBudgetExceededError:
            return self._broken_off(framework, state, info)

    def _broken_off(self, framework: FrameworkRunner, state: CycleState, info: PodInfo) -> Decision:
        budget = state.budget
        why = f"{BROKEN_OFF}, {budget.limit_s:g} s of CPU time; the next attempt may use more"
        decision = self._undecided(framework, info, Status(Code.ERROR, (why,)))
        return replace(
            decision, budget_s=budget.limit_s, ran_out_at=budget.checks, used_s=budget.used_s()
        )

    def _undecided(
        self,
        framework: FrameworkRunner,
        info: PodInfo,
        status: Status,
        diagnosis: Diagnosis | None = None,
        nominated: str | None = None,
        *,
        post_filtered: bool = False,
    ) -> Decision:
        """Return a decision without a node; a failure before a diagnosis nominates no node."""
        return Decision(
            cycle=self._cycle,
            profile=framework.profile_name,
            info=info,
            status=status,
            evaluated_nodes=0 if diagnosis is None else diagnosis.num_nodes,
            diagnosis=diagnosis or Diagnosis(len(self.snapshot)),
            nominated_node_name="" if diagnosis is None else nominated,
            post_filtered=post_filtered,
            duration_s=perf_counter() - self._began,
            policy=framework.policy,
        )

    def _decide(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        info: PodInfo,
        among: Candidates | None,
        like: LikePods | None,
        *,
        post_filters: bool,
    ) -> Decision:
        nodes = self.snapshot.all_nodes()
        total = len(nodes) if among is None else len(among)
        if not total:
            return self._undecided(framework, info, unschedulable(NO_NODES_AVAILABLE))
        extenders = framework.extenders
        consultation = None if extenders is None else extenders.consult(info)
        own_node = _own_node(framework, info)
        avoided = _NOWHERE if self._rejections is None else self._rejections.avoided(info.pod)
        all_count = self._nodes_to_find(framework, total) == total
        if consultation is None and not own_node and all_count and not avoided:
            placement = self._reuse.place(framework, state, info, among, like)
            if placement is not None:
                return self._placed(framework, info, placement, total)
        pre = pre_filter(framework, state, info, nodes)
        may_own = among is None or self._is_among(among, own_node)
        if own_node and own_node not in avoided and pre.status.is_success and may_own:
            own = self._try_own_node(framework, state, info, own_node, consultation)
            if own is not None:
                return self._choose(framework, state, info, own, consultation)
        found = search(framework, state, info, nodes, pre, among)
        excluded: Exclusions | None = None
        if found.outcome is not None:
            feasible = self._limit(framework, found.nodes, found.outcome, len(avoided))
            if consultation is not None:
                feasible, excluded = _ask(consultation, feasible, state)
            if len(feasible.view):
                if avoided:
                    feasible = self._spare(feasible, avoided)
                return self._choose(framework, state, info, feasible, consultation)
        diagnosis = _diagnosis(found, excluded, total)
        if not post_filters:
            return self._undecided(framework, info, _refusal(diagnosis), diagnosis)
        verdicts = SearchStatuses(nodes, found.pre, found.outcome, excluded)
        nominated, post = framework.run_post_filter(state, info, nodes, verdicts)
        if post.code is Code.ERROR:
            log.error("post-filter failed", pod=info.key, error=post.message)
        if post.reasons:
            diagnosis = replace(diagnosis, post_filter_message=post.message)
        if nominated is None and own_node and not self._may_hold(own_node, verdicts, post):
            nominated = ""
        refusal, asked = _refusal(diagnosis), framework.has_post_filters
        return self._undecided(framework, info, refusal, diagnosis, nominated, post_filtered=asked)

    def _may_hold(self, node_name: str, verdicts: SearchStatuses, post: Status) -> bool:
        """Return whether a nomination may stay that no PostFilter decided about.

        # Differs: kube-scheduler keeps it where a PostFilter fails. DynamicResources fails for any
        pod that another PreFilter refused for good, such as one whose claim was deleted, so that
        DefaultPreemption is not asked, and the room is kept for a pod that cannot have it.
        """
        if node_name not in self.snapshot:
            return False
        is_hopeless = verdicts.status_of(node_name).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return not (is_hopeless and post.code is Code.ERROR)

    def _is_among(self, among: Candidates, node_name: str) -> bool:
        row = self.snapshot.columns.row_of.get(node_name)
        return row is not None and bool(among.mask[row])

    def _placed(
        self, framework: FrameworkRunner, info: PodInfo, placement: Placement, evaluated: int
    ) -> Decision:
        infos, second = self.snapshot.columns.node_infos, placement.second
        node = infos[placement.row]
        return Decision(
            cycle=self._cycle,
            profile=framework.profile_name,
            info=info,
            node_name=node.name,
            node_uid=node.uid,
            evaluated_nodes=evaluated,
            feasible_nodes=placement.feasible_nodes,
            score=placement.score,
            runner_up=None if second is None else (infos[second[0]].name, second[1]),
            duration_s=perf_counter() - self._began,
            policy=framework.policy,
        )

    def best_rows(
        self, framework: FrameworkRunner, info: PodInfo, like: LikePods, budget: AttemptBudget
    ) -> BestRows | None:
        """Return the best rows for one more of some pods that are alike, by the columns alone.

        None where a decision needs more than that: see
        :meth:`scheduler.cycle.signature_reuse.SignatureReuse.best_rows`.
        """
        return self._reuse.best_rows(framework, info, like, budget)

    def place_on(
        self, framework: FrameworkRunner, info: PodInfo, row: int, feasible_nodes: int
    ) -> Decision:
        """Return the decision that puts a pod on a node that its filters are known to pass."""
        self._began = perf_counter()
        self._cycle += 1
        placement = Placement(row, None, feasible_nodes)
        return self._placed(framework, info, placement, len(self.snapshot))

    def ties_by(self, name: str) -> AbstractContextManager[Callable[[int], int]]:
        """Let choices among equals depend on the seed and a name alone within a context.

        The context is a function that returns a number below its argument.
        """
        self._reuse.forget_best()
        return self._selector.seeded(name)

    def rehearse(self, framework: FrameworkRunner, info: PodInfo) -> None:
        """Run all parts of a decision without a result: see :mod:`scheduler.cycle.rehearsal`.

        Raises
        ------
        PluginError
            When a plugin fails.
        """
        judge(framework, self.snapshot, info)
        self._reuse.warm(framework, info)

    def read_ahead(self, framework: FrameworkRunner, budget: AttemptBudget) -> bool:
        """Let plugins prepare data for coming pods; return whether anything is left to be done.

        Raises
        ------
        Exception
            When a plugin fails.
        """
        try:
            framework.read_ahead(self.snapshot.all_nodes(), budget)
        except AttemptBudgetExceededError:
            return True
        return False

    def _try_own_node(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        info: PodInfo,
        name: str,
        consultation: Consultation | None,
    ) -> Feasible | None:
        """Return the node that a pod is nominated for if it is feasible now: no other will do.

        A failure on the way only means that all nodes are looked at.

        *Source*: evaluateNominatedNode, in the same file.
        """
        row = self.snapshot.columns.row_of.get(name)
        if row is None:
            return None
        view = self.snapshot.all_nodes().subset(np.array([row], dtype=np.intp))
        try:
            outcome = framework.run_filter(state, info, view)
            if outcome.feasible is not None and not outcome.feasible[0]:
                return None
            feasible = Feasible(view, 1)
            if consultation is not None:
                feasible, _ = _ask(consultation, feasible, state)
        except (PluginError, ExtenderError) as error:
            log.error("nominated node was not judged", pod=info.key, node=name, error=str(error))
            return None
        return feasible if len(feasible.view) else None

    def _spare(self, feasible: Feasible, avoided: Mapping[str, float]) -> Feasible:
        """Exclude the nodes that have rejected pods of the same owner, if another is feasible.

        # Differs: kube-scheduler knows nothing of it, and sends one successor after the other to a
        kubelet that refuses them all.

        Raises
        ------
        PluginError
            There is no other, and the pause before another attempt there is not over.
        """
        view = feasible.view
        row_of = self.snapshot.columns.row_of
        rows = [row_of[name] for name in avoided if name in row_of]
        ready = [
            row_of[name] for name, pause_s in avoided.items() if not pause_s and name in row_of
        ]
        own = np.arange(len(view)) if view.rows is None else view.rows
        for kept in (np.flatnonzero(~np.isin(own, rows)), np.flatnonzero(np.isin(own, ready))):
            if len(kept):
                return Feasible(view.subset(kept), feasible.evaluated)
        names = ", ".join(sorted(avoided)[:_NAMED])
        why = f"no other node is feasible than {names}, which just rejected such a pod"
        raise PluginError(Status(Code.ERROR, (why,)))

    def _limit(
        self,
        framework: FrameworkRunner,
        nodes: NodesView,
        outcome: FilterOutcome,
        more: int = 0,
    ) -> Feasible:
        """Return the feasible nodes, or the first of them when the profile wants only a share.

        The search starts where the last one ended and goes round robin over the zones, so that
        every node has its turn.

        Parameters
        ----------
        more
            How many nodes more than the profile wants.
        """
        total = len(nodes)
        wanted = self._nodes_to_find(framework, total) + more
        mask = outcome.feasible
        count = total if mask is None else int(mask.sum())
        if count <= wanted:
            if mask is None or count == total:
                return Feasible(nodes, total)
            return Feasible(nodes.subset(np.flatnonzero(mask)), total)
        order = self._visiting_order(nodes)
        turned = np.roll(order, -(self.next_start % total))
        good = np.arange(total) if mask is None else np.flatnonzero(mask[turned])
        evaluated = int(good[wanted - 1]) + 1
        self.next_start = (self.next_start + evaluated) % len(self.snapshot)
        return Feasible(nodes.subset(turned[good[:wanted]]), evaluated)

    def _visiting_order(self, nodes: NodesView) -> RowArray:
        """Return the indices of a view in visiting order."""
        if nodes.rows is None:
            return self.snapshot.order()
        return np.arange(len(nodes), dtype=np.intp)

    def searches_all(self, framework: FrameworkRunner) -> bool:
        """Return whether a decision scores all feasible nodes, however many there are."""
        total = len(self.snapshot)
        return self._nodes_to_find(framework, total) == total

    def _nodes_to_find(self, framework: FrameworkRunner, total: int) -> int:
        """Return after how many feasible nodes to stop.

        # Differs: 0 means all nodes, where kube-scheduler takes 50 % falling to 5 %; scoring
        every node is what berth is for.
        """
        extenders = framework.extenders
        extended = extenders is not None and extenders.wants_all_feasible
        if not framework.scores_nodes and not extended:
            return 1
        percentage = framework.percentage_of_nodes_to_score
        if percentage in (0, 100) or total < MIN_FEASIBLE_NODES_TO_FIND:
            return total
        return max(total * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)

    def _choose(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        info: PodInfo,
        feasible: Feasible,
        consultation: Consultation | None,
    ) -> Decision:
        view = feasible.view
        score: int | None = None
        second: tuple[int, int] | None = None
        if len(view) == 1:
            chosen = 0
        else:
            total = framework.run_score(state, info, view).total
            if consultation is not None:
                total = total + consultation.prioritize(view)
                mark(state, EXTENDER_PRIORITIZE, "", Code.SUCCESS)
            leaving = None if framework.prefers_full_nodes else info
            chosen = self._selector.select(total, view, leaving)
            score = int(total[chosen])
            other, other_score = second_best(total, chosen)
            second = other if view.rows is None else int(view.rows[other]), other_score
        row = chosen if view.rows is None else int(view.rows[chosen])
        placement = Placement(row, score, len(view), second)
        return self._placed(framework, info, placement, feasible.evaluated)


def _ask(
    consultation: Consultation, feasible: Feasible, state: CycleState
) -> tuple[Feasible, Exclusions | None]:
    """Return the feasible nodes that extenders accept, and the statuses of the others."""
    view = feasible.view
    asked = consultation.filter(view)
    mark(state, EXTENDER_FILTER, "", Code.SUCCESS)
    if len(asked.kept) == len(view):
        return feasible, None
    return Feasible(view.subset(asked.kept), feasible.evaluated), asked


def _diagnosis(found: Search, excluded: Exclusions | None, num_nodes: int) -> Diagnosis:
    """Return why no node is feasible.

    Raises
    ------
    PluginError
        When a node could not be judged.
    """
    diagnosis = found.diagnosis(num_nodes)
    failure = diagnosis.failure()
    if failure is not None:
        # Differs: in kube-scheduler it ends the cycle also where other nodes are feasible; here
        # they are taken, and what could not be judged is left.
        raise PluginError(failure)
    if excluded is None:
        return diagnosis
    rejected = (*diagnosis.rejected, *excluded.rejected)
    return replace(diagnosis, rejected=rejected, by_extenders=True)


def _own_node(framework: FrameworkRunner, info: PodInfo) -> str:
    """Return the node that a pod is nominated for, or the empty string.

    # Differs: kube-scheduler believes the pod's status, which lags behind: a nomination that was
    given up here a moment ago would be tried, one that was just made would not.
    """
    if framework.nominated is None:
        return info.pod.status.nominated_node_name
    return framework.nominated.node_of(info) or ""


def _refusal(diagnosis: Diagnosis) -> Status:
    """Return one status for the whole pod, which summarizes its rejections."""
    if diagnosis.pre_filter is not None:
        return diagnosis.pre_filter
    return unschedulable(*sorted(diagnosis.histogram()))
