"""What-if: run the filters of one profile on nodes in a hypothetical state."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import proxy

import numpy as np

from plugins.framework.interfaces import FilterPlugin
from scheduler.runtime.filter_outcome import FilterOutcome, PluginError
from scheduler.runtime.plugin_set import Mask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.interfaces import Plugin
    from plugins.framework.results import BoolArray
    from plugins.framework.status import Status
    from scheduler.runtime.framework_runner import FrameworkRunner


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


class FrameworkWhatIf:
    """See :class:`plugins.framework.handle.WhatIf`.

    Notes
    -----
    *Concurrency*: scheduling thread only.

    It belongs to the framework and holds a weak reference to it: so a dropped profile frees
    megabytes at once, while the cyclic garbage collector may run hours later.
    """

    def __init__(self, framework: FrameworkRunner) -> None:
        self._framework: FrameworkRunner = proxy(framework)
        judges = framework.judges
        self._lone = judges.where(_judges_nodes_alone)
        self._others = judges.where(lambda each: not _judges_nodes_alone(each))
        self.add_pod = judges.add_pod
        self.remove_pod = judges.remove_pod

    def settle(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> tuple[CycleState, BoolArray] | None:
        """Leave the filters that judge nodes alone as the only ones that have a say."""
        others = [each for each in self._others.filters if each.name not in state.skip_filter]
        if not all(each.is_eased_for(state) for each in others):
            return None
        settled = _Settled(np.ones(len(nodes), dtype=np.bool_))
        if not others:
            return state, settled.feasible
        try:
            self._others.run_filters(state, info, nodes, settled)
        except PluginError:
            # A dry run on each node tells which of them it cannot judge.
            return None
        state = state.copy()
        state.skip_filter.update(each.name for each in others)
        return state, settled.feasible

    def filter_alone(self, state: CycleState, info: PodInfo, nodes: NodesView) -> LoneOutcome:
        """Ask the filters that judge a node by itself about all nodes of a view."""
        outcome = FilterOutcome(nodes)
        self._lone.run_filters(state, info, nodes, outcome)
        return LoneOutcome(outcome)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge the node with the pods that are nominated for it, and then without them."""
        return self._framework.run_filter_one_with_nominated(state, info, node_info)


class _Settled(Mask):
    """The nodes that pass all filters; a filter may fail on nodes that are excluded already."""

    __slots__ = ()

    def counting(self) -> BoolArray:
        """Return the nodes that are left."""
        return self.feasible


def _judges_nodes_alone(plugin: Plugin) -> bool:
    return isinstance(plugin, FilterPlugin) and plugin.judges_nodes_alone
