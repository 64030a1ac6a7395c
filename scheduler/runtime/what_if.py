"""The filters of one profile, asked about nodes as they would be."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import proxy

from scheduler.runtime.single_node_filters import LoneFilters

if TYPE_CHECKING:
    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.results import BoolArray
    from plugins.framework.status import Status
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.single_node_filters import LoneOutcome


class FrameworkWhatIf:
    """See :class:`plugins.framework.handle.WhatIf`.

    Notes
    -----
    *Concurrency*: scheduling thread only.

    Belongs to the framework, which it knows weakly: a profile that is gone takes megabytes with it
    at once, while the cyclic collector may look hours later.
    """

    def __init__(self, framework: FrameworkRunner) -> None:
        self._framework: FrameworkRunner = proxy(framework)
        self._lone_filters = LoneFilters(framework.judges)

    def settle(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> tuple[CycleState, BoolArray] | None:
        """Leave the filters that judge nodes alone as the only ones that have a say."""
        return self._lone_filters.settle(state, info, nodes)

    def filter_alone(self, state: CycleState, info: PodInfo, nodes: NodesView) -> LoneOutcome:
        """Ask the filters that judge a node by itself about all nodes of a view."""
        return self._lone_filters.run(state, info, nodes)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge the node with the pods that are nominated for it, and then without them."""
        return self._framework.run_filter_one_with_nominated(state, info, node_info)

    def add_pod(
        self, state: CycleState, info: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Tell the PreFilters of a pod that was put on the node."""
        return self._framework.judges.add_pod(state, info, added, node_info)

    def remove_pod(
        self, state: CycleState, info: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Tell the PreFilters of a pod that was taken off the node."""
        return self._framework.judges.remove_pod(state, info, removed, node_info)
