"""Runs the plugins of one profile at each extension point, and contains their failures.

An exception out of a plugin becomes an ``Error`` status that carries the plugin's name; it ends
this pod's cycle and nothing else.

Source: pkg/scheduler/framework/runtime/framework.go (1.36); RunFilterPluginsWithNominatedPods for
what is said of nominated pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from plugins.framework.interfaces import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from plugins.framework.status import SUCCESS, Code, Status, failure, unresolvable
from scheduler.crowded_filter import CrowdedFilter
from scheduler.decision import Diagnosis, Scores
from scheduler.filter_outcome import FilterOutcome, PluginError, run_vector_filter
from scheduler.policy.policy_origin import DEFAULT_ORIGIN
from scheduler.pre_bind_runner import run_pre_binds, run_pre_flights
from scheduler.score_check import check_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import WhatIf
    from plugins.framework.node_statuses import NodeStatuses
    from scheduler.extenders import ExtenderChain
    from scheduler.nominated_nodes import NominatedNodes
    from scheduler.policy.policy_origin import PolicyOrigin

P = TypeVar("P", bound=Plugin)
A = ParamSpec("A")

MAX_PERMIT_WAIT_S = 15 * 60.0
"""How long a Permit plugin may hold a pod at most, whatever it asks for. Source: maxTimeout,
pkg/scheduler/framework/runtime/framework.go (1.36)."""


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What all PreFilters together said."""

    status: Status
    node_names: frozenset[str] | None
    """The only nodes that can do; None for no limit."""
    narrowing_plugins: frozenset[str]


class FrameworkRunner:
    """One profile: its plugins at each extension point, in order.

    Parameters
    ----------
    profile_name
        The ``schedulerName`` that it serves.
    points
        Plugins by extension point, in the order in which they run.
    score_weights
        The weight of each scoring plugin.
    percentage_of_nodes_to_score
        1-99 to stop looking once that share of the nodes (at least 100) is feasible; 0 and 100
        look at all.
    policy
        Where it comes from.
    extenders
        Asked beside its plugins; None where there are none.

    Notes
    -----
    *Concurrency*: what is not ``async`` belongs to the scheduling thread, but for ``pre_enqueue``,
    ``sort_key`` and ``event_registrations``, which only read.
    """

    def __init__(
        self,
        profile_name: str,
        points: Mapping[str, Sequence[Plugin]],
        score_weights: Mapping[str, int],
        percentage_of_nodes_to_score: int = 0,
        policy: PolicyOrigin = DEFAULT_ORIGIN,
        extenders: ExtenderChain | None = None,
    ) -> None:
        self.profile_name = profile_name
        self.policy = policy
        self.extenders = extenders
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.points = points
        self.score_weights = score_weights
        self.nominated: NominatedNodes | None = None
        """The pods that are nominated for nodes; None where nobody nominates."""
        self.what_if: WhatIf | None = None
        """Its filters as its own plugins see them; whoever builds the profile puts it here."""

        def at(point: str, kind: type[P]) -> tuple[P, ...]:
            return tuple(p for p in points.get(point, ()) if isinstance(p, kind))

        self._pre_enqueue = at("preEnqueue", PreEnqueuePlugin)
        self._queue_sort = at("queueSort", QueueSortPlugin)
        self._pre_filter = at("preFilter", PreFilterPlugin)
        self._filter = at("filter", FilterPlugin)
        self._post_filter = at("postFilter", PostFilterPlugin)
        self._pre_score = at("preScore", PreScorePlugin)
        self._score = at("score", ScorePlugin)
        self._reserve = at("reserve", ReservePlugin)
        self._permit = at("permit", PermitPlugin)
        self._pre_bind = at("preBind", PreBindPlugin)
        self._bind = at("bind", BindPlugin)
        self._post_bind = at("postBind", PostBindPlugin)
        if len(self._queue_sort) != 1:
            raise ValueError(
                f"profile {profile_name} needs exactly one queueSort plugin, "
                f"it has {len(self._queue_sort)}"
            )
        if not self._bind:
            raise ValueError(f"profile {profile_name} needs a bind plugin")
        self._normalizers = frozenset(
            p.name for p in self._score if type(p).normalize is not ScorePlugin.normalize
        )
        scorers = {plugin.name for plugin in self._score}
        unweighted = scorers - {name for name, weight in score_weights.items() if weight > 0}
        if unweighted:
            raise ValueError(f"profile {profile_name}: no weight for {sorted(unweighted)}")

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Every plugin of the profile once, in order of first use."""
        unique: dict[str, Plugin] = {}
        for listed in self.points.values():
            for plugin in listed:
                unique.setdefault(plugin.name, plugin)
        return tuple(unique.values())

    @property
    def scores_nodes(self) -> bool:
        """Whether any plugin scores."""
        return bool(self._score)

    @property
    def has_post_filters(self) -> bool:
        """Whether any plugin looks for a way out when no node is feasible."""
        return bool(self._post_filter)

    def event_registrations(self) -> dict[str, tuple[EventRegistration, ...]]:
        """Return what each plugin wants to hear of."""
        return {plugin.name: tuple(plugin.events_to_register()) for plugin in self.plugins}

    # --- before the cycle ---------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status:
        """Return the first plugin's refusal to let the pod become active, or Success."""
        for plugin in self._pre_enqueue:
            status = _guard(plugin, "PreEnqueue", plugin.pre_enqueue, pod)
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def sort_key(self, pod: Pod, since_s: float) -> tuple[float, ...]:
        """Return the pod's place in the active queue: the smallest key goes first."""
        return self._queue_sort[0].sort_key(pod, since_s)

    def account(self, pod: Pod) -> tuple[str, float] | None:
        """Return who is charged with the pod's attempts, and by which weight, if anybody is."""
        return self._queue_sort[0].account(pod)

    @property
    def shares_attempts(self) -> bool:
        """Whether attempts are shared between accounts."""
        return type(self._queue_sort[0]).account is not QueueSortPlugin.account

    # --- filtering ----------------------------------------------------------------------------

    def run_pre_filter(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> PreFilterOutcome:
        """Run all PreFilters.

        A rejection that preemption cannot help ends the round at once; one that it may help
        lets the others run, because preemption needs their state.
        """
        outcome = self._run_pre_filter(state, info, nodes)
        _end(state, "PreFilter", outcome.status.code)
        return outcome

    def _run_pre_filter(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> PreFilterOutcome:
        marks = state.marks
        names: frozenset[str] | None = None
        narrowing: set[str] = set()
        rejected: Status | None = None
        state.skip_filter = skipped = set[str]()
        check = state.budget.check
        for plugin in self._pre_filter:
            check()
            try:
                result = plugin.pre_filter(state, info, nodes)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                status = failure(error, f'running PreFilter plugin "{plugin.name}"')
                return PreFilterOutcome(status.by(plugin.name), None, frozenset())
            status = result.status
            if marks is not None:
                marks.append(("PreFilter", plugin.name, status.code, perf_counter()))
            if status.code is Code.SUCCESS:
                if result.node_names is not None:
                    narrowing.add(plugin.name)
                    names = result.node_names if names is None else names & result.node_names
                    if not names:
                        return PreFilterOutcome(
                            _nothing_left(narrowing), frozenset(), frozenset(narrowing)
                        )
            elif status.code is Code.SKIP:
                skipped.add(plugin.name)
            elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return PreFilterOutcome(status.by(plugin.name), None, frozenset())
            elif status.code is Code.UNSCHEDULABLE:
                rejected = status.by(plugin.name)
            else:
                wrapped = Status(
                    Code.ERROR, (f'running PreFilter plugin "{plugin.name}": {status.message}',)
                )
                return PreFilterOutcome(wrapped.by(plugin.name), None, frozenset())
        status = SUCCESS if rejected is None else rejected
        return PreFilterOutcome(status, names, frozenset(narrowing))

    def run_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> FilterOutcome:
        """Run the filters over all nodes of a view, with nominated pods and without.

        A node that pods of the same or a higher priority are nominated for is feasible if it is
        with these pods on it and as it is now.

        Raises
        ------
        PluginError
            When a filter fails.
        """
        code = Code.ERROR
        try:
            outcome = self._run_filter(state, info, nodes)
            code = Code.SUCCESS
        finally:
            _end(state, "Filter", code)
        return outcome

    def _run_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> FilterOutcome:
        if self.nominated is not None:
            crowds = self.nominated.crowded(info, nodes)
            if crowds:
                return CrowdedFilter(state, info, nodes, crowds).run(self._filter)
        outcome, marks = FilterOutcome(nodes), state.marks
        check = state.budget.check
        for plugin in self._filter:
            if plugin.name in state.skip_filter:
                continue
            check()
            verdicts = run_vector_filter(plugin, state, info, nodes, outcome.feasible)
            if marks is not None:
                marks.append(("Filter", plugin.name, Code.SUCCESS, perf_counter()))
            if not outcome.add(plugin.name, verdicts):
                break
        return outcome

    def run_filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Run the scalar filters over one node, which may be a what-if."""
        state.budget.check()
        for plugin in self._filter:
            if plugin.name in state.skip_filter:
                continue
            status = _guard(plugin, "Filter", plugin.filter_one, state, info, node_info)
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def run_filter_one_with_nominated(
        self, state: CycleState, info: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Run the scalar filters with the pods nominated for the node, and then without them.

        ``state`` and ``node_info`` stay as they are.
        """
        yielded_to = () if self.nominated is None else self.nominated.ahead_of(info, node_info.name)
        if yielded_to:
            crowded, beside = node_info.clone(), state.copy()
            for each in yielded_to:
                if each.uid in crowded.pods:
                    continue
                state.budget.check()
                crowded.add_pod(each)
                status = self.run_pre_filter_add_pod(beside, info, each, crowded)
                if not status.is_success:
                    return Status(Code.ERROR, status.reasons, status.plugin, status.error)
            status = self.run_filter_one(beside, info, crowded)
            if not status.is_success:
                return status
        return self.run_filter_one(state, info, node_info)

    def run_pre_filter_add_pod(
        self, state: CycleState, info: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Tell the PreFilters of a pod that a what-if puts on a node."""
        for plugin in self._pre_filter:
            if plugin.name not in state.skip_filter:
                status = plugin.add_pod(state, info, added, node_info)
                if not status.is_success:
                    return status.by(plugin.name)
        return SUCCESS

    def run_pre_filter_remove_pod(
        self, state: CycleState, info: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Tell the PreFilters of a pod that a what-if takes off a node."""
        for plugin in self._pre_filter:
            if plugin.name not in state.skip_filter:
                status = plugin.remove_pod(state, info, removed, node_info)
                if not status.is_success:
                    return status.by(plugin.name)
        return SUCCESS

    def run_post_filter(
        self, state: CycleState, info: PodInfo, nodes: NodesView, verdicts: NodeStatuses
    ) -> tuple[str | None, Status]:
        """Ask the PostFilters for a way out.

        Returns
        -------
        nominated
            The node to nominate; the empty string takes a nomination away, None leaves it. In a
            profile without PostFilters it is taken away.
        status
            Of the first plugin that answered Success, UnschedulableAndUnresolvable or an error;
            otherwise Unschedulable with the reasons of all.
        """
        nominated, status = self._run_post_filter(state, info, nodes, verdicts)
        _end(state, "PostFilter", status.code)
        return nominated, status

    def _run_post_filter(
        self, state: CycleState, info: PodInfo, nodes: NodesView, verdicts: NodeStatuses
    ) -> tuple[str | None, Status]:
        marks = state.marks
        found: str | None = None if self._post_filter else ""
        reasons: list[str] = []
        for plugin in self._post_filter:
            state.budget.check()
            try:
                nominated, status = plugin.post_filter(state, info, nodes, verdicts)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                return None, failure(error, f'running "{plugin.name}" post filter').by(plugin.name)
            if marks is not None:
                marks.append(("PostFilter", plugin.name, status.code, perf_counter()))
            if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return nominated, status.by(plugin.name)
            if not status.is_rejection:
                why = f'running "{plugin.name}" post filter: {status.message}'
                return None, Status(Code.ERROR, (why,), plugin.name, status.error)
            found = found if nominated is None else nominated
            reasons += status.reasons
        first = self._post_filter[0].name if self._post_filter else ""
        return found, Status(Code.UNSCHEDULABLE, tuple(reasons), first)

    # --- scoring ------------------------------------------------------------------------------

    def run_score(
        self, state: CycleState, info: PodInfo, nodes: NodesView, *, keep: bool = False
    ) -> Scores:
        """Run PreScore, Score and normalisation over feasible nodes.

        Parameters
        ----------
        keep
            Whether each plugin's weighted scores are kept beside their sum.

        Raises
        ------
        PluginError
            When a plugin fails or a normalised score is not within 0..100.
        """
        point, code = "PreScore", Code.ERROR
        try:
            self._run_pre_score(state, info, nodes)
            _end(state, point, Code.SUCCESS)
            point = "Score"
            scores = self._run_score(state, info, nodes, keep=keep)
            code = Code.SUCCESS
        finally:
            _end(state, point, code)
        return scores

    def _run_pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> None:
        marks = state.marks
        state.skip_score = skipped = set[str]()
        for pre in self._pre_score:
            state.budget.check()
            status = _guard(pre, "PreScore", pre.pre_score, state, info, nodes)
            if marks is not None:
                marks.append(("PreScore", pre.name, status.code, perf_counter()))
            if status.code is Code.SKIP:
                skipped.add(pre.name)
            elif not status.is_success:
                raise PluginError(status.by(pre.name))

    def _run_score(
        self, state: CycleState, info: PodInfo, nodes: NodesView, *, keep: bool
    ) -> Scores:
        marks = state.marks
        total = np.zeros(len(nodes), dtype=np.int64)
        kept: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = {}
        for plugin in self._score:
            if plugin.name in state.skip_score:
                continue
            state.budget.check()
            try:
                scores = plugin.score(state, info, nodes)
                if marks is not None:
                    marks.append(("Score", plugin.name, Code.SUCCESS, perf_counter()))
                scores = plugin.normalize(state, info, scores)
            except Exception as error:
                status = failure(error, f'plugin "{plugin.name}" failed to score')
                raise PluginError(status.by(plugin.name)) from error
            check_scores(plugin, scores, len(nodes))
            if marks is not None and plugin.name in self._normalizers:
                marks.append(("ScoreExtensionNormalize", plugin.name, Code.SUCCESS, perf_counter()))
            weighted = scores * self.score_weights[plugin.name]
            total += weighted
            if keep:
                kept[plugin.name] = weighted
        rows = np.arange(len(nodes)) if nodes.rows is None else nodes.rows
        return Scores(rows, kept, total)

    # --- after the choice ---------------------------------------------------------------------

    def run_reserve(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Let every plugin note where the pod goes; the first "no" ends it."""
        answer = SUCCESS
        for plugin in self._reserve:
            status = _guard(plugin, "Reserve", plugin.reserve, state, info, node_name)
            if state.marks is not None:
                state.marks.append(("Reserve", plugin.name, status.code, perf_counter()))
            if not status.is_success:
                answer = status.by(plugin.name)
                break
        _end(state, "Reserve", answer.code)
        return answer

    def run_unreserve(self, state: CycleState, info: PodInfo, node_name: str) -> list[Status]:
        """Undo every reservation in reverse order, and return what failed while doing so."""
        failed = []
        for plugin in reversed(self._reserve):
            try:
                plugin.unreserve(state, info, node_name)
            except Exception as error:  # noqa: BLE001 - the others must be undone all the same
                failed.append(failure(error, f'unreserving "{plugin.name}"').by(plugin.name))
        _end(state, "Unreserve", Code.SUCCESS)
        return failed

    def run_permit(
        self, state: CycleState, info: PodInfo, node_name: str
    ) -> tuple[Status, dict[str, float]]:
        """Ask whether the pod may bind now.

        Returns
        -------
        Success, Wait or a rejection, and the time-out in seconds of each plugin that waits: at
        most :data:`MAX_PERMIT_WAIT_S`.
        """
        if not self._permit:
            return SUCCESS, {}
        answer, waits = self._run_permit(state, info, node_name)
        _end(state, "Permit", answer.code)
        return answer, waits

    def _run_permit(
        self, state: CycleState, info: PodInfo, node_name: str
    ) -> tuple[Status, dict[str, float]]:
        waits: dict[str, float] = {}
        for plugin in self._permit:
            try:
                status, timeout_s = plugin.permit(state, info, node_name)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                return failure(error, f'running Permit plugin "{plugin.name}"').by(plugin.name), {}
            if state.marks is not None:
                state.marks.append(("Permit", plugin.name, status.code, perf_counter()))
            if status.code is Code.WAIT:
                waits[plugin.name] = min(timeout_s, MAX_PERMIT_WAIT_S)
            elif not status.is_success:
                return status.by(plugin.name), {}
        return (Status(Code.WAIT) if waits else SUCCESS), waits

    def run_pre_bind_pre_flights(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Ask every PreBind whether it has something to do, before the pod waits on Permit.

        See :func:`~scheduler.pre_bind_runner.run_pre_flights`.
        """
        status = run_pre_flights(self._pre_bind, state, info, node_name)
        _end(state, "PreBindPreFlight", status.code)
        return status

    async def run_pre_bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Let the plugins prepare the binding; :meth:`run_pre_bind_pre_flights` comes before."""
        status = await run_pre_binds(self._pre_bind, state, info, node_name)
        _end(state, "PreBind", status.code)
        return status

    async def run_bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Let the first plugin that does not skip bind the pod."""
        answer = Status(Code.ERROR, ("every bind plugin skipped the pod",))
        for plugin in self._bind:
            try:
                status = await plugin.bind(state, info, node_name)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                status = failure(error, f'running Bind plugin "{plugin.name}"')
            if state.marks is not None:
                state.marks.append(("Bind", plugin.name, status.code, perf_counter()))
            if status.code is not Code.SKIP:
                answer = status.by(plugin.name)
                break
        _end(state, "Bind", answer.code)
        return answer

    def run_post_bind(self, state: CycleState, info: PodInfo, node_name: str) -> list[Status]:
        """Tell the plugins that the pod is bound, and return what failed while doing so."""
        failed = []
        for plugin in self._post_bind:
            try:
                plugin.post_bind(state, info, node_name)
            except Exception as error:  # noqa: BLE001 - the pod is bound, whatever a plugin says
                failed.append(failure(error, f'PostBind of "{plugin.name}"').by(plugin.name))
        _end(state, "PostBind", Code.SUCCESS)
        return failed


def diagnose(num_nodes: int, pre: PreFilterOutcome, outcome: FilterOutcome | None) -> Diagnosis:
    """Put together why no node was feasible."""
    if not pre.status.is_success:
        return Diagnosis(num_nodes, pre_filter=pre.status, narrowing_plugins=pre.narrowing_plugins)
    absent = None
    if pre.node_names is not None:
        narrowing = " ".join(sorted(pre.narrowing_plugins))
        absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{narrowing}]")
    rejected = () if outcome is None else outcome.rejected()
    return Diagnosis(
        num_nodes, absent=absent, rejected=rejected, narrowing_plugins=pre.narrowing_plugins
    )


def _nothing_left(narrowing: set[str]) -> Status:
    if len(narrowing) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {next(iter(narrowing))}")
    names = " ".join(sorted(narrowing))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{names}] simultaneously")


def _end(state: CycleState, point: str, code: Code) -> None:
    """Note that an extension point is over."""
    if state.marks is not None:
        state.marks.append((point, "", code, perf_counter()))


def _guard(
    plugin: Plugin,
    point: str,
    method: Callable[A, Status],
    *args: A.args,
    **kwargs: A.kwargs,
) -> Status:
    try:
        return method(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
        return failure(error, f'running {point} plugin "{plugin.name}"').by(plugin.name)
