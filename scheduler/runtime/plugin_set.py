"""The PreFilter, Filter, PreScore and Score plugins of a profile: order, weights, skips.

    pre-filter -> filter -> pre-score -> score, normalise, weigh

All plugins run, or a subset of them. A plugin whose PreFilter or PreScore skips the pod is not
called further; a failure becomes a :class:`PluginError` that names the plugin. The caller of the
filters defines how their verdicts are used (:class:`Verdicts`).

*Source*: pkg/scheduler/framework/runtime/framework.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from cache.value import Value
from plugins.framework.interfaces import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.framework.normalize import MAX_NODE_SCORE, MIN_NODE_SCORE
from plugins.framework.status import SUCCESS, Code, Status, failure, unresolvable
from scheduler.runtime.filter_outcome import PluginError, run_vector_filter
from scheduler.runtime.instrumented_plugins import normalizes, unmeasured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.interfaces import Judged
    from plugins.framework.results import BoolArray, IntArray, NodeVerdicts
    from scheduler.runtime.instrumented_plugins import Wrap

P = TypeVar("P", bound=Plugin)


class PreFilterOutcome(Value, frozen=True):
    """The combined result of all PreFilters."""

    status: Status
    node_names: frozenset[str] | None
    """The only nodes that can do; None for no limit."""
    narrowing_plugins: frozenset[str]

    def narrowed_away(self) -> Status:
        """Return what is said of a node that PreFilters left out."""
        names = " ".join(sorted(self.narrowing_plugins))
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")


_PASSED: Final = PreFilterOutcome(SUCCESS, None, frozenset())


class Verdicts(Protocol):
    """Receive the verdicts of one filter after another on the nodes of a view."""

    def add(self, plugin: str, verdicts: NodeVerdicts) -> bool:
        """Take in the verdicts of the next plugin; return whether another is to be asked."""
        ...

    def counting(self) -> BoolArray | None:
        """Return the nodes whose verdicts count: a filter that fails is asked about these alone.

        None for all of them: the failure is an error then.
        """
        ...

    def surviving(self) -> BoolArray | None:
        """Return the nodes that no filter has rejected, or None for all of them."""
        ...


class Mask:
    """The nodes that filters accept, without the reasons for the rejection of the others.

    Parameters
    ----------
    feasible
        bool (n_nodes,): the nodes that were accepted before; not changed.
    """

    __slots__ = ("feasible",)

    def __init__(self, feasible: BoolArray) -> None:
        self.feasible = feasible

    def add(self, plugin: str, verdicts: NodeVerdicts) -> bool:
        """Leave the nodes that pass; every filter is asked."""
        if verdicts.passed is not None:
            self.feasible = self.feasible & verdicts.passed
        return True

    def counting(self) -> BoolArray | None:
        """Return None: a filter may not fail on any node."""
        return None

    def surviving(self) -> BoolArray | None:
        """Return the nodes that are accepted so far."""
        return self.feasible


class Scorer:
    """A Score plugin with its weight.

    Parameters
    ----------
    wrap
        Measures it.
    """

    __slots__ = (
        "_normalize",
        "name",
        "normalizes",
        "plugin",
        "reads_pods",
        "score",
        "score_one",
        "weight",
    )

    def __init__(self, plugin: ScorePlugin, weight: int, wrap: Wrap) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.weight = weight
        self.normalizes = normalizes(plugin)
        """Whether its raw scores have a meaning only beside those of the other feasible nodes."""
        self.reads_pods = plugin.reads_pods
        self.score_one = plugin.score_one
        self.score = wrap("Score", plugin, plugin.score)
        self._normalize = wrap("ScoreExtensionNormalize", plugin, plugin.normalize)

    def weighted(self, state: CycleState, info: PodInfo, raw: IntArray, count: int) -> IntArray:
        """Return the weighted scores of `count` nodes, which the caller must not change.

        With a weight of 1 they are the array that the plugin returned.

        Raises
        ------
        PluginError
            The plugin fails, or a normalised score is not within 0..100.
        """
        try:
            scores = self._normalize(state, info, raw)
        except Exception as error:
            raise self.failed(error) from error
        _check_scores(self.name, scores, count)
        return scores * self.weight if self.weight != 1 else scores

    def failed(self, error: Exception) -> PluginError:
        """Return what an exception out of the plugin becomes."""
        return PluginError(failure(error, f'plugin "{self.name}" failed to score').by(self.name))


class PluginSet:
    """Plugins in the order in which they run.

    Parameters
    ----------
    points
        The plugins by extension point; other points than these four are ignored.
    weights
        The weight of each scoring plugin.
    wrap
        Measures them.

    Notes
    -----
    *Concurrency*: scheduling thread only.
    """

    __slots__ = (
        "_add_pod",
        "_filters",
        "_points",
        "_pre_filters",
        "_pre_scorers",
        "_remove_pod",
        "_scalar_filters",
        "_score_filtered",
        "_weights",
        "filter_names",
        "filters",
        "scorer_names",
        "scorers",
    )

    def __init__(
        self,
        points: Mapping[str, Sequence[Plugin]],
        weights: Mapping[str, int],
        wrap: Wrap = unmeasured,
    ) -> None:
        self._points = points
        self._weights = weights

        def at(point: str, kind: type[P]) -> Iterator[P]:
            return (p for p in points.get(point, ()) if isinstance(p, kind))

        self._pre_filters = tuple(
            (p, wrap("PreFilter", p, p.pre_filter)) for p in at("preFilter", PreFilterPlugin)
        )
        self._add_pod = tuple((p.name, p.add_pod) for p, _ in self._pre_filters)
        self._remove_pod = tuple((p.name, p.remove_pod) for p, _ in self._pre_filters)
        # With what is looked up each time: these are in every cycle.
        self.filters = tuple(at("filter", FilterPlugin))
        """The filters."""
        self.filter_names = frozenset(plugin.name for plugin in self.filters)
        self._filters = tuple((p.name, p, wrap("Filter", p, p.filter)) for p in self.filters)
        self._scalar_filters = tuple((p.name, p.filter_one) for p in self.filters)
        self._pre_scorers = tuple(
            (p, wrap("PreScore", p, p.pre_score)) for p in at("preScore", PreScorePlugin)
        )
        self.scorers = tuple(Scorer(p, weights[p.name], wrap) for p in at("score", ScorePlugin))
        self._score_filtered = frozenset(
            scorer.name for scorer in self.scorers if scorer.plugin.scores_only_what_it_filters
        )
        self.scorer_names = frozenset(scorer.name for scorer in self.scorers)

    def where(self, belongs: Callable[[Plugin], bool], wrap: Wrap = unmeasured) -> PluginSet:
        """Return the plugins for which a condition holds."""
        points = {
            point: tuple(plugin for plugin in plugins if belongs(plugin))
            for point, plugins in self._points.items()
        }
        return PluginSet(points, self._weights, wrap)

    # --- filtering ----------------------------------------------------------------------------

    def run_pre_filters(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> PreFilterOutcome:
        """Run all PreFilters.

        A rejection that preemption cannot help ends the round at once; one that it may help
        lets the others run, because preemption needs their state.
        """
        names: frozenset[str] | None = None
        narrowing: set[str] = set()
        rejected: Status | None = None
        skipped: set[str] = set()
        state.skip_filter = skipped
        check = state.budget.check
        for plugin, pre_filter in self._pre_filters:
            check()
            try:
                result = pre_filter(state, info, nodes)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                return _ended(failure(error, f'running PreFilter plugin "{plugin.name}"'), plugin)
            status = result.status
            if status.code is Code.SUCCESS:
                if result.node_names is not None:
                    narrowing.add(plugin.name)
                    names = result.node_names if names is None else names & result.node_names
                    if not names:
                        left = _nothing_left(narrowing)
                        return PreFilterOutcome(left, frozenset(), frozenset(narrowing))
            elif status.code is Code.SKIP:
                skipped.add(plugin.name)
            elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return _ended(status, plugin)
            elif status.code is Code.UNSCHEDULABLE:
                rejected = status.by(plugin.name)
            else:
                why = f'running PreFilter plugin "{plugin.name}": {status.message}'
                return _ended(Status(Code.ERROR, (why,)), plugin)
        if rejected is None and names is None:
            return _PASSED
        status = SUCCESS if rejected is None else rejected
        return PreFilterOutcome(status, names, frozenset(narrowing))

    def run_filters(
        self, state: CycleState, info: PodInfo, nodes: NodesView, verdicts: Verdicts
    ) -> None:
        """Let one filter after another judge all nodes of a view.

        Raises
        ------
        PluginError
            When one fails for nodes that count.
        """
        skipped, check = state.skip_filter, state.budget.check
        counting, surviving = verdicts.counting, verdicts.surviving
        for name, plugin, ask in self._filters:
            if name in skipped:
                continue
            check()
            found = run_vector_filter(plugin, ask, state, info, nodes, counting, surviving)
            if not verdicts.add(name, found):
                break

    def filter_jointly(
        self, state: CycleState, pods: Sequence[Judged], nodes: NodesView
    ) -> BoolArray | None:
        """Return the nodes that each of some pods may go to, bool (n_pods, n_nodes).

        All of them skip what ``state`` skips. None if a filter judges them one after another only.
        """
        feasible = np.ones((len(pods), len(nodes)), dtype=np.bool_)
        for plugin in self.filters:
            if plugin.name not in state.skip_filter:
                passed = plugin.filter_jointly(pods, nodes)
                if passed is None:
                    return None
                feasible &= passed
        return feasible

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Return what the first scalar filter that rejects a node says, or Success.

        The node may be a what-if.
        """
        state.budget.check()
        skipped = state.skip_filter
        for name, filter_one in self._scalar_filters:
            if name in skipped:
                continue
            try:
                status = filter_one(state, info, node_info)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                status = failure(error, f'running Filter plugin "{name}"')
            if not status.is_success:
                return status.by(name)
        return SUCCESS

    def add_pod(
        self, state: CycleState, info: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Tell the PreFilters of a pod that a what-if puts on a node."""
        return _told(self._add_pod, state, info, added, node_info)

    def remove_pod(
        self, state: CycleState, info: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Tell the PreFilters of a pod that a what-if takes off a node."""
        return _told(self._remove_pod, state, info, removed, node_info)

    # --- scoring ------------------------------------------------------------------------------

    def run_pre_scores(self, state: CycleState, info: PodInfo, nodes: NodesView) -> None:
        """Run all PreScores; raises PluginError when one fails."""
        skipped = set(self._score_filtered & state.skip_filter)
        state.skip_score = skipped
        check = state.budget.check
        for plugin, pre_score in self._pre_scorers:
            check()
            try:
                status = pre_score(state, info, nodes)
            except Exception as error:  # noqa: BLE001 - any plugin failure is that plugin's alone
                status = failure(error, f'running PreScore plugin "{plugin.name}"')
            if status.code is Code.SKIP:
                skipped.add(plugin.name)
            elif not status.is_success:
                raise PluginError(status.by(plugin.name))

    def raw_scores(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> Iterator[tuple[Scorer, IntArray]]:
        """Yield each scorer that did not skip the pod, with its raw scores of all nodes of a view.

        Raises
        ------
        PluginError
            When one fails.
        """
        for scorer in self.scorers:
            if scorer.name not in state.skip_score:
                state.budget.check()
                try:
                    raw = scorer.score(state, info, nodes)
                except Exception as error:
                    raise scorer.failed(error) from error
                yield scorer, raw

    def score_jointly(
        self, state: CycleState, pods: Sequence[Judged], nodes: NodesView
    ) -> IntArray | None:
        """Return the sums of the weighted scores for each of some pods, int64 (n_pods, n_nodes).

        All of them skip what ``state`` skips, and no scorer that is left normalizes. None if one
        scores them one after another only.

        Raises
        ------
        PluginError
            When a score is not within 0..100.
        """
        total = np.zeros((len(pods), len(nodes)), dtype=np.int64)
        for scorer in self.scorers:
            if scorer.name not in state.skip_score:
                scores = scorer.plugin.score_jointly(pods, nodes)
                if scores is None:
                    return None
                _check_scores(scorer.name, scores.reshape(-1), total.size)
                total += scores * scorer.weight
        return total

    def add_scores(
        self,
        total: IntArray,
        state: CycleState,
        info: PodInfo,
        nodes: NodesView,
        keep: dict[str, IntArray] | None = None,
    ) -> None:
        """Add the weighted scores of feasible nodes to `total`, int64 (n_nodes,).

        Parameters
        ----------
        keep
            Where each plugin's weighted scores are put.

        Raises
        ------
        PluginError
            When a plugin fails or a normalised score is not within 0..100.
        """
        for scorer, raw in self.raw_scores(state, info, nodes):
            weighted = scorer.weighted(state, info, raw, len(total))
            total += weighted
            if keep is not None:
                keep[scorer.name] = weighted


def _told(
    calls: Iterable[tuple[str, Callable[[CycleState, PodInfo, PodInfo, NodeInfo], Status]]],
    state: CycleState,
    info: PodInfo,
    other: PodInfo,
    node_info: NodeInfo,
) -> Status:
    for name, call in calls:
        if name not in state.skip_filter:
            status = call(state, info, other, node_info)
            if not status.is_success:
                return status.by(name)
    return SUCCESS


def _ended(status: Status, plugin: Plugin) -> PreFilterOutcome:
    return PreFilterOutcome(status.by(plugin.name), None, frozenset())


def _nothing_left(narrowing: set[str]) -> Status:
    if len(narrowing) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {next(iter(narrowing))}")
    names = " ".join(sorted(narrowing))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{names}] simultaneously")


def _check_scores(name: str, scores: object, count: int) -> None:
    """Raise PluginError for normalised scores that are not int64 of shape (count,) and 0..100."""
    if not isinstance(scores, np.ndarray) or scores.shape != (count,) or scores.dtype != np.int64:
        why = f"returned {_shape(scores)}, it must return int64 of shape ({count},)"
    elif count and scores.view(np.uint64).max() > MAX_NODE_SCORE:
        # Read as unsigned, a negative score is a huge one: one pass instead of two.
        worst = scores.max() if scores.max() > MAX_NODE_SCORE else scores.min()
        why = (
            f"returns an invalid score {worst}, it should in the range of "
            f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
        )
    else:
        return
    raise PluginError(Status(Code.ERROR, (f'plugin "{name}" {why}',), name))


def _shape(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
