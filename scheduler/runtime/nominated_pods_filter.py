"""The vectorized filters for nodes some of which have nominated pods.

There are two passes, as if one after the other: the crowded nodes with the nominated pods on them,
then all nodes as they are. A node that does not pass the first one gets that pass's status. A
filter runs on crowded nodes in the cheapest way that is correct:

* on the node as it is, when neither its pods nor the filter's state of nominated pods matter;
* over the columns of the crowded nodes, when it reads the pods on a node;
* node by node, with the pods added to a copy of the cycle state, if they concern its PreFilter.

*Source*: pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plugins.framework.interfaces import PreFilterPlugin
from plugins.framework.results import NodeVerdicts
from plugins.framework.status import Code, Status, failure
from scheduler.runtime.filter_outcome import (
    FilterOutcome,
    PluginError,
    Rejection,
    run_vector_filter,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.interfaces import FilterPlugin
    from plugins.framework.results import BoolArray
    from scheduler.runtime.nominated_nodes import CrowdedNodes
    from scheduler.runtime.plugin_set import PluginSet


class CrowdedFilter:
    """Run the filters once over nodes and crowded nodes.

    Parameters
    ----------
    nodes
        The nodes as they are.
    crowds
        The nodes for which pods are nominated; each node at most once.

    Notes
    -----
    *Cost*: a run over the nodes and one over the crowded ones; a scalar filter for each crowded
    node whose nominated pods concern a PreFilter.
    """

    def __init__(
        self, state: CycleState, info: PodInfo, nodes: NodesView, crowds: Sequence[CrowdedNodes]
    ) -> None:
        self._state = state
        self._info = info
        self._nodes = nodes
        self._crowds = [(each, np.ones(len(each.at), dtype=np.bool_)) for each in crowds]
        self._first: list[Rejection] = []
        self._as_is = FilterOutcome(nodes)
        self._filters: dict[str, FilterPlugin] = {}

    def run(self, plugins: PluginSet) -> FilterOutcome:
        """Run the filters.

        Raises
        ------
        PluginError
            When a filter fails.
        """
        self._filters = {plugin.name: plugin for plugin in plugins.filters}
        plugins.run_filters(self._state, self._info, self._nodes, self)
        if self._first:
            self._combine(self._as_is)
        return self._as_is

    def add(self, plugin: str, verdicts: NodeVerdicts) -> bool:
        """Take in what a filter says of the nodes as they are, and ask it about crowded ones."""
        go_on = self._as_is.add(plugin, verdicts)
        for crowd, alive in self._crowds:
            if alive.any():
                self._judge(self._filters[plugin], verdicts, crowd, alive)
                go_on = go_on or bool(alive.any())
        return go_on

    def counting(self) -> BoolArray:
        """Return the nodes that are alive: crowded ones with the pods nominated for them."""
        feasible = self._as_is.feasible
        if feasible is None:
            counting: BoolArray = np.ones(len(self._nodes), dtype=np.bool_)
        else:
            counting = feasible.copy()
        for crowd, alive in self._crowds:
            counting[crowd.at] = alive
        return counting

    def surviving(self) -> BoolArray:
        """Return the nodes that are alive."""
        return self.counting()

    def _judge(
        self, plugin: FilterPlugin, as_is: NodeVerdicts, crowd: CrowdedNodes, alive: BoolArray
    ) -> None:
        """Judge the crowded nodes; what does not pass is dead afterwards."""
        verdicts, source = as_is, crowd.at
        if plugin.reads_pods:
            verdicts = run_vector_filter(
                plugin, plugin.filter, self._state, self._info, crowd.view, lambda: alive
            )
            source = np.arange(len(crowd.at))
        passed: BoolArray = (
            np.ones(len(crowd.at), dtype=np.bool_)
            if verdicts.passed is None
            else verdicts.passed[source]
        )
        singles = self._judge_singly(plugin, crowd, alive)
        for index, status in singles.items():
            passed[index] = status.is_success
        newly = alive & ~passed
        if not newly.any():
            return
        alive &= passed
        count = len(self._nodes)
        meant = np.zeros(count, dtype=np.bool_)
        meant[crowd.at[newly]] = True

        # Without `self`, which keeps the result: only the garbage collector frees a cycle, and with
        # it all that the filters know of the attempt.
        def detail() -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
            which_source, statuses = verdicts.statuses()
            which = np.zeros(count, dtype=np.intp)
            if len(which_source):
                which[crowd.at] = which_source[source]
            told = list(statuses)
            for index, status in singles.items():
                which[crowd.at[index]] = len(told)
                told.append(status)
            return which, told

        self._first.append(Rejection(plugin.name, NodeVerdicts(~meant, detail=detail), meant))

    def _judge_singly(
        self, plugin: FilterPlugin, crowd: CrowdedNodes, alive: BoolArray
    ) -> dict[int, Status]:
        """Return the statuses of the nodes whose nominated pods concern the plugin's PreFilter."""
        if not isinstance(plugin, PreFilterPlugin) or _ignores_added_pods(plugin):
            return {}
        state, info = self._state, self._info
        found: dict[int, Status] = {}
        beside: CycleState | None = None
        try:
            for index in np.flatnonzero(alive).tolist():
                state.budget.check()
                added = crowd.added_to(index)
                if not any(plugin.is_concerned_by(state, info, each) for each in added):
                    continue
                node_info = crowd.view.node_info(index)
                beside = state.copy() if beside is None else beside
                for each in added:
                    _require(plugin, plugin.add_pod(beside, info, each, node_info))
                found[index] = plugin.filter_one(beside, info, node_info)
                for each in reversed(added):
                    _require(plugin, plugin.remove_pod(beside, info, each, node_info))
                if _cannot_take_back(plugin):
                    beside = None
        except PluginError:
            raise
        except Exception as error:
            status = failure(error, f'running "{plugin.name}" filter plugin')
            raise PluginError(status.by(plugin.name)) from error
        return found

    def _combine(self, outcome: FilterOutcome) -> None:
        """Let the first pass speak for the nodes that it rejected."""
        rejected = np.zeros(len(self._nodes), dtype=np.bool_)
        for each in self._first:
            rejected |= each.newly
        kept = [
            Rejection(plugin, verdicts, newly & ~rejected)
            for plugin, verdicts, newly in outcome.rejections
        ]
        outcome.rejections = [*self._first, *(each for each in kept if each.newly.any())]
        outcome.feasible = ~rejected if outcome.feasible is None else outcome.feasible & ~rejected


def _ignores_added_pods(plugin: PreFilterPlugin) -> bool:
    return type(plugin).add_pod is PreFilterPlugin.add_pod


def _cannot_take_back(plugin: PreFilterPlugin) -> bool:
    return type(plugin).remove_pod is PreFilterPlugin.remove_pod


def _require(plugin: PreFilterPlugin, told: Status) -> None:
    """Raise PluginError unless a plugin has counted a nominated pod in or out."""
    if not told.is_success:
        why = f'counting nominated pods in "{plugin.name}": {told.message}'
        raise PluginError(Status(Code.ERROR, (why,), plugin.name, told.error))
