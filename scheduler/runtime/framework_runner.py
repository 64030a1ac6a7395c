"""Run the plugins of one profile at each extension point, and contain their failures.

An exception in a plugin becomes an ``Error`` status that carries the plugin's name; it ends
this pod's cycle and nothing else.

*Source*: pkg/scheduler/framework/runtime/framework.go (1.36); RunFilterPluginsWithNominatedPods for
nominated pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from plugins.framework.interfaces import (
    BindPlugin,
    GuardPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from plugins.framework.read_ahead import ReadAheadPlugin
from plugins.framework.status import SUCCESS, Code, Status, failure
from scheduler.decision.decision import Scores
from scheduler.decision.profile_origin import DEFAULT_ORIGIN
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.instrumented_plugins import measured, measured_point
from scheduler.runtime.nominated_pods_filter import CrowdedFilter
from scheduler.runtime.plugin_set import PluginSet, PreFilterOutcome
from scheduler.runtime.pre_bind_runner import run_pre_binds, run_pre_flights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.node_usage import NodeUsage
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import WhatIf
    from plugins.framework.node_statuses import NodeStatuses
    from plugins.framework.results import IntArray
    from scheduler.config import EffectiveProfile
    from scheduler.decision.profile_origin import PolicyOrigin
    from scheduler.extenders import ExtenderChain
    from scheduler.runtime.nominated_nodes import NominatedNodes

P = TypeVar("P", bound=Plugin)

MAX_PERMIT_WAIT_S = 15 * 60.0
"""How long a Permit plugin may hold a pod at most, whatever it asks for. Source: maxTimeout,
pkg/scheduler/framework/runtime/framework.go (1.36)."""


class FrameworkRunner:
    """Run one profile: its plugins at each extension point, in order.

    Parameters
    ----------
    profile_name
        The ``schedulerName`` that it serves.
    points
        Plugins by extension point, in the order in which they run.
    score_weights
        The weight of each scoring plugin.
    percentage_of_nodes_to_score
        1-99 to stop the search once that share of the nodes (at least 100) is feasible; 0 and 100
        search all nodes.
    policy
        The profile origin.
    extenders
        Called in addition to its plugins; None if the profile has none.

    Notes ----- *Concurrency*: methods that are not ``async`` belong to the scheduling thread,
    except ``pre_enqueue``, ``sort_key`` and ``event_registrations``, which only read.
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
        self.effective: EffectiveProfile | None = None
        """What the profile was built from; None where it was put together otherwise."""

        def at(point: str, kind: type[P]) -> tuple[P, ...]:
            return tuple(p for p in points.get(point, ()) if isinstance(p, kind))

        self._pre_enqueue = at("preEnqueue", PreEnqueuePlugin)
        self._queue_sort = at("queueSort", QueueSortPlugin)
        binders = at("bind", BindPlugin)
        self._check_plugins(binders, at("score", ScorePlugin))
        self.judges = PluginSet(points, score_weights)
        """The plugins that judge nodes, for whoever has no cycle to be measured."""
        self._judges = PluginSet(points, score_weights, measured)
        self.prefers_full_nodes = any(p.prefers_full_nodes for p in at("score", ScorePlugin))
        """Whether the profile fills nodes, rather than spread pods over them."""
        self._post_filters = tuple(
            (p, measured("PostFilter", p, p.post_filter))
            for p in at("postFilter", PostFilterPlugin)
        )
        reserve = at("reserve", ReservePlugin)
        self._reserves = tuple((p, measured("Reserve", p, p.reserve)) for p in reserve)
        self._unreserves = tuple((p.name, p.unreserve) for p in reversed(reserve))
        self._permits = tuple(
            (p, measured("Permit", p, p.permit)) for p in at("permit", PermitPlugin)
        )
        self._pre_binds = tuple(
            (p, measured("PreBind", p, p.pre_bind)) for p in at("preBind", PreBindPlugin)
        )
        self._guards = tuple((p.name, p.still_fits) for p in at("filter", GuardPlugin))
        self._binds = tuple((p, measured("Bind", p, p.bind)) for p in binders)
        self._read_ahead = tuple(p for p in self.plugins if isinstance(p, ReadAheadPlugin))
        self._post_binds = tuple((p.name, p.post_bind) for p in at("postBind", PostBindPlugin))

    def _check_plugins(self, binders: Sequence[Plugin], scorers: Sequence[Plugin]) -> None:
        """Raise ValueError where a point has not the plugins that it needs."""
        if len(self._queue_sort) != 1:
            raise ValueError(
                f"profile {self.profile_name} needs exactly one queueSort plugin, "
                f"it has {len(self._queue_sort)}"
            )
        if not binders:
            raise ValueError(f"profile {self.profile_name} needs a bind plugin")
        weighted = {name for name, weight in self.score_weights.items() if weight > 0}
        unweighted = {plugin.name for plugin in scorers} - weighted
        if unweighted:
            raise ValueError(f"profile {self.profile_name}: no weight for {sorted(unweighted)}")

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
        return bool(self.judges.scorers)

    @property
    def has_post_filters(self) -> bool:
        """Whether any plugin looks for a way out when no node is feasible."""
        return bool(self._post_filters)

    @property
    def has_permits(self) -> bool:
        """Whether any plugin may hold a pod back before it is bound."""
        return bool(self._permits)

    def event_registrations(self) -> dict[str, tuple[EventRegistration, ...]]:
        """Return what each plugin wants to hear of."""
        return {plugin.name: tuple(plugin.events_to_register()) for plugin in self.plugins}

    def read_ahead(self, nodes: NodesView, budget: AttemptBudget) -> None:
        """Let plugins prepare data that do not depend on a pod.

        Raises
        ------
        AttemptBudgetExceededError
            When the budget is used up before all is prepared.
        """
        for plugin in self._read_ahead:
            plugin.read_ahead(nodes, budget)

    # --- before the cycle ---------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status:
        """Return the first plugin's refusal to let the pod become active, or Success."""
        for plugin in self._pre_enqueue:
            try:
                status = plugin.pre_enqueue(pod)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                status = failure(error, f'running PreEnqueue plugin "{plugin.name}"')
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def sort_key(self, pod: Pod, since_s: float) -> tuple[float, ...]:
        """Return the pod's place in the active queue: the smallest key goes first."""
        return self._queue_sort[0].sort_key(pod, since_s)

    def account(self, pod: Pod) -> tuple[str, float] | None:
        """Return who is charged with the pod's attempts, and by which weight, if anybody is."""
        return self._queue_sort[0].account(pod)

    # --- filtering ----------------------------------------------------------------------------

    @measured_point("PreFilter")
    def run_pre_filter(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> PreFilterOutcome:
        """Run all PreFilters: see :class:`~scheduler.runtime.plugin_set.PluginSet`."""
        return self._judges.run_pre_filters(state, info, nodes)

    @measured_point("Filter")
    def run_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> FilterOutcome:
        """Run the filters over all nodes of a view, with nominated pods and without.

        A node that pods of the same or a higher priority are nominated for is feasible if it is
        with these pods on it and as it is now.

        Raises
        ------
        PluginError
            When a filter fails.
        """
        if self.nominated is not None:
            crowds = self.nominated.crowded(info, nodes)
            if crowds:
                # Each filter runs twice there: what it takes is not comparable.
                return CrowdedFilter(state, info, nodes, crowds).run(self.judges)
        outcome = FilterOutcome(nodes)
        self._judges.run_filters(state, info, nodes, outcome)
        return outcome

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
                status = self.judges.add_pod(beside, info, each, crowded)
                if not status.is_success:
                    return Status(Code.ERROR, status.reasons, status.plugin, status.error)
            status = self.judges.filter_one(beside, info, crowded)
            if not status.is_success:
                return status
        return self.judges.filter_one(state, info, node_info)

    @measured_point("PostFilter")
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
        found: str | None = None if self._post_filters else ""
        reasons: list[str] = []
        for plugin, post_filter in self._post_filters:
            state.budget.check()
            try:
                nominated, status = post_filter(state, info, nodes, verdicts)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                return None, failure(error, f'running "{plugin.name}" post filter').by(plugin.name)
            if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return nominated, status.by(plugin.name)
            if not status.is_rejection:
                return None, Status(Code.ERROR, status.reasons, plugin.name, status.error)
            found = found if nominated is None else nominated
            reasons += status.reasons
        first = self._post_filters[0][0].name if self._post_filters else ""
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
        self._run_pre_score(state, info, nodes)
        return self._run_score(state, info, nodes, keep=keep)

    @measured_point("PreScore")
    def _run_pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> None:
        self._judges.run_pre_scores(state, info, nodes)

    @measured_point("Score")
    def _run_score(
        self, state: CycleState, info: PodInfo, nodes: NodesView, *, keep: bool
    ) -> Scores:
        total = np.zeros(len(nodes), dtype=np.int64)
        kept: dict[str, IntArray] = {}
        self._judges.add_scores(total, state, info, nodes, kept if keep else None)
        rows = np.arange(len(nodes)) if nodes.rows is None else nodes.rows
        return Scores(rows, kept, total)

    # --- after the choice ---------------------------------------------------------------------

    @measured_point("Reserve")
    def run_reserve(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Let every plugin note where the pod goes; the first "no" ends it."""
        for plugin, reserve in self._reserves:
            try:
                status = reserve(state, info, node_name)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                status = failure(error, f'running Reserve plugin "{plugin.name}"')
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    @measured_point("Unreserve")
    def run_unreserve(self, state: CycleState, info: PodInfo, node_name: str) -> list[Status]:
        """Undo every reservation in reverse order, and return what failed while doing so."""
        return _failed(self._unreserves, "unreserving", state, info, node_name)

    @measured_point("Permit")
    def run_permit(
        self, state: CycleState, info: PodInfo, node_name: str
    ) -> tuple[Status, dict[str, float]]:
        """Ask whether the pod may bind now.

        Returns
        -------
        Success, Wait or a rejection, and the time-out in seconds of each plugin that waits: at
        most :data:`MAX_PERMIT_WAIT_S`.
        """
        waits: dict[str, float] = {}
        for plugin, permit in self._permits:
            try:
                status, timeout_s = permit(state, info, node_name)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                return failure(error, f'running Permit plugin "{plugin.name}"').by(plugin.name), {}
            if status.code is Code.WAIT:
                waits[plugin.name] = min(timeout_s, MAX_PERMIT_WAIT_S)
            elif not status.is_success:
                return status.by(plugin.name), {}
        return (Status(Code.WAIT) if waits else SUCCESS), waits

    @measured_point("PreBindPreFlight")
    def run_pre_bind_pre_flights(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Ask every PreBind whether it has something to do, before the pod waits on Permit.

        See :func:`~scheduler.runtime.pre_bind_runner.run_pre_flights`.
        """
        return run_pre_flights(self._pre_binds, state, info, node_name)

    @measured_point("PreBind", after_wait=True)
    async def run_pre_bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Let the plugins prepare the binding; :meth:`run_pre_bind_pre_flights` comes before."""
        return await run_pre_binds(self._pre_binds, state, info, node_name)

    def still_fits(self, info: PodInfo, usage: NodeUsage) -> Status:
        """Return the first filter's refusal to have a pod bound after all, or Success."""
        for name, still_fits in self._guards:
            status = still_fits(info, usage)
            if status is not SUCCESS and not status.is_success:
                return status.by(name)
        return SUCCESS

    @measured_point("Bind", after_wait=True)
    async def run_bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Let the first plugin that does not skip bind the pod."""
        for plugin, bind in self._binds:
            try:
                status = await bind(state, info, node_name)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                status = failure(error, f'running Bind plugin "{plugin.name}"')
            if status.code is not Code.SKIP:
                return status.by(plugin.name)
        return Status(Code.ERROR, ("every bind plugin skipped the pod",))

    @measured_point("PostBind", after_wait=True)
    def run_post_bind(self, state: CycleState, info: PodInfo, node_name: str) -> list[Status]:
        """Tell the plugins that the pod is bound, and return what failed while doing so."""
        return _failed(self._post_binds, "PostBind of", state, info, node_name)


def _failed(
    calls: Iterable[tuple[str, Callable[[CycleState, PodInfo, str], None]]],
    doing: str,
    state: CycleState,
    info: PodInfo,
    node_name: str,
) -> list[Status]:
    """Call every plugin, whatever another one does, and return what failed."""
    failed = []
    for name, call in calls:
        try:
            call(state, info, node_name)
        except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
            failed.append(failure(error, f'{doing} "{name}"').by(name))
    return failed
