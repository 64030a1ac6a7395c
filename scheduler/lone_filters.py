"""The filters that judge a node by itself, asked about many nodes that may not exist so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plugins.framework.interfaces import FilterPlugin
from scheduler.filter_outcome import FilterOutcome, PluginError, run_vector_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cache.columns import NodesView
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.interfaces import Plugin
    from plugins.framework.results import BoolArray
    from plugins.framework.status import Status


class LoneOutcome:
    """See :class:`plugins.framework.handle.LoneVerdicts`."""

    __slots__ = ("_outcome",)

    def __init__(self, outcome: FilterOutcome) -> None:
        self._outcome = outcome

    @property
    def feasible(self) -> BoolArray | None:
        """Bool (n_nodes,), or None when every node passes."""
        return self._outcome.feasible

    def rejections(self) -> Iterable[tuple[Status, int]]:
        """Yield each distinct rejection with the number of nodes that got it first."""
        for group in self._outcome.rejected():
            yield group.status, len(group.node_names)


class LoneFilters:
    """Those filters of a profile that judge a node by itself.

    Parameters
    ----------
    filters
        All filters of the profile, in order.
    """

    def __init__(self, filters: Sequence[Plugin]) -> None:
        known = [each for each in filters if isinstance(each, FilterPlugin)]
        self._lone = tuple(each for each in known if each.judges_nodes_alone)
        self._others = tuple(each for each in known if not each.judges_nodes_alone)

    def settle(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> tuple[CycleState, BoolArray] | None:
        """Leave these filters as the only ones that have a say.

        See :meth:`plugins.framework.handle.WhatIf.settle`.
        """
        others = [each for each in self._others if each.name not in state.skip_filter]
        if not all(each.is_eased_by_removals for each in others):
            return None
        settled: BoolArray = np.ones(len(nodes), dtype=np.bool_)
        if not others:
            return state, settled
        for plugin in others:
            state.budget.check()
            try:
                passed = run_vector_filter(plugin, state, info, nodes, settled).passed
            except PluginError:
                # A dry run on each node tells which of them it cannot judge.
                return None
            if passed is not None:
                settled &= passed
        state = state.copy()
        state.skip_filter.update(each.name for each in others)
        return state, settled

    def run(self, state: CycleState, info: PodInfo, nodes: NodesView) -> LoneOutcome:
        """Ask them about all nodes of a view; raises PluginError when one fails."""
        outcome = FilterOutcome(nodes)
        for plugin in self._lone:
            if plugin.name not in state.skip_filter:
                state.budget.check()
                verdicts = run_vector_filter(plugin, state, info, nodes, outcome.feasible)
                if not outcome.add(plugin.name, verdicts):
                    break
        return LoneOutcome(outcome)
