"""How many members of one shape fit on each node, without placing them.

A filter that signs a pod and does not read the pods of nodes says the same of a node whoever is
placed on it; one that counts says how often a pod fits. What these allow is a bound for members of
a shape whatever other filters say, and it is reached where no other filter has anything to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cache.value import Value
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin
from plugins.names import INTER_POD_AFFINITY
from scheduler.runtime.judgement import pre_filter, search

if TYPE_CHECKING:
    from cache.columns import NodesView
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray, IntArray
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.judgement import Search


class Counts(Value, frozen=True, eq=False):
    """How many members of a shape fit.

    Parameters
    ----------
    slots
        int64 (n_nodes,): no more members of the shape fit on each node, nor more than it has.
    is_exact
        Whether that many fit, if no other pods come.
    """

    slots: IntArray
    is_exact: bool


def count(
    framework: FrameworkRunner, info: PodInfo, nodes: NodesView, most: int, budget: AttemptBudget
) -> Counts:
    """Return how many members of a shape fit on each node.

    Parameters
    ----------
    info
        One of them.
    nodes
        All nodes.
    most
        How many members the shape has.

    Raises
    ------
    PluginError
        When a plugin fails.

    *Cost*: one run of the filters.
    """
    state = CycleState(budget)
    found = search(framework, state, info, nodes, pre_filter(framework, state, info, nodes))
    slots = np.full(len(nodes), most, dtype=np.int64)
    fixed: set[str] = set()
    is_exact = True
    for plugin in framework.judges.filters:
        if is_fixed(plugin, info):
            fixed.add(plugin.name)
        elif plugin.name not in state.skip_filter:
            counted = plugin.count(state, info, nodes)
            if counted is None:
                is_exact = False
                continue
            fixed.add(plugin.name)
            np.minimum(slots, counted, out=slots)
            _count_beside_nominated(framework, plugin, state, info, nodes, slots)
    slots[_rejected(found, fixed, len(nodes))] = 0
    if found.outcome is None or not found.pre.narrowing_plugins <= fixed:
        is_exact = False
    return Counts(slots, is_exact)


def is_fixed(plugin: FilterPlugin, info: PodInfo) -> bool:
    """Return whether a filter says the same of a node whichever pods come to the nodes."""
    if plugin.reads_pods:
        return False
    try:
        return plugin.signature(info) is not None
    except Exception:  # noqa: BLE001 - its filter is asked in any case, and says whose fault it is
        return False


def is_counting(plugin: FilterPlugin) -> bool:
    """Return whether a filter knows how many pods fit, so that more pods only take room from it."""
    return type(plugin).count is not FilterPlugin.count


def is_lasting(plugin: FilterPlugin, state: CycleState, info: PodInfo) -> bool:
    """Return whether a node that a filter rejects stays rejected when more pods come to the nodes.

    Affinity and spreading may accept a node later, and nobody knows of users' plugins.
    """
    if plugin.name in state.skip_filter or is_fixed(plugin, info) or _is_eased(plugin, state):
        return True
    if plugin.name == INTER_POD_AFFINITY:
        affinity = info.pod.spec.affinity
        near = None if affinity is None else affinity.pod_affinity
        return near is None or not near.required_during_scheduling_ignored_during_execution
    return is_counting(plugin)


def _is_eased(plugin: FilterPlugin, state: CycleState) -> bool:
    try:
        return plugin.is_eased_for(state)
    except KeyError:
        return False  # an earlier PreFilter ended the round before this one ran


def lastingly_rejected(
    framework: FrameworkRunner, state: CycleState, info: PodInfo, found: Search, num_nodes: int
) -> BoolArray:
    """Return bool (n_nodes,): the nodes that no further pods can make feasible."""
    lasting = {p.name for p in framework.judges.filters if is_lasting(p, state, info)}
    return _rejected(found, lasting, num_nodes)


def _rejected(found: Search, plugins: set[str], num_nodes: int) -> BoolArray:
    """Return bool (n_nodes,): the nodes that some plugins rejected."""
    rejected = np.zeros(num_nodes, dtype=np.bool_)
    pre = found.pre
    if not pre.status.is_success:
        rejected[:] = pre.status.plugin in plugins
        return rejected
    view = found.nodes
    if pre.narrowing_plugins and pre.narrowing_plugins <= plugins:
        rejected[:] = True
        rejected[slice(None) if view.rows is None else view.rows] = False
    if found.outcome is not None:
        for plugin, _, newly in found.outcome.rejections:
            if plugin in plugins:
                rows = np.flatnonzero(newly)
                rejected[rows if view.rows is None else view.rows[rows]] = True
    return rejected


def _count_beside_nominated(
    framework: FrameworkRunner,
    plugin: FilterPlugin,
    state: CycleState,
    info: PodInfo,
    nodes: NodesView,
    slots: IntArray,
) -> None:
    """Lower the slots of the nodes that other pods are nominated for."""
    if framework.nominated is None:
        return
    for crowd in framework.nominated.crowded(info, nodes):
        counted = plugin.count(state, info, crowd.view)
        if counted is not None:
            slots[crowd.at] = np.minimum(slots[crowd.at], counted)
