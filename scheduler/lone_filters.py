"""The filters that judge a node by itself, asked about many nodes that may not exist so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.framework.interfaces import FilterPlugin
from scheduler.filter_outcome import FilterOutcome, run_vector_filter

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
        self._others = frozenset(each.name for each in known if not each.judges_nodes_alone)

    def judge_alone(self, state: CycleState) -> bool:
        """Tell whether no other filter has a say in a pod's cycle."""
        return state.skip_filter.issuperset(self._others)

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
