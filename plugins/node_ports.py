"""Keeps a pod off nodes on which a host port that it needs is in use.

*Source*: pkg/scheduler/framework/plugins/nodeports/node_ports.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cache.columns import ColumnSpec
from cache.host_ports import ALL_ADDRESSES, HostPort, UsedHostPorts, host_ports
from cache.node_usage import has_taken_port
from plugins import names
from plugins.framework.cluster_events import Action, EventRegistration, Hint, Resource
from plugins.framework.interfaces import FilterPlugin, GuardPlugin, PreFilterPlugin
from plugins.framework.queueing_hints import for_pods_by
from plugins.framework.results import (
    ALL_PASS,
    PROCEED,
    SKIP_FILTER,
    BoolArray,
    IntArray,
    NodeVerdicts,
    PreFilterResult,
)
from plugins.framework.status import SUCCESS, Status, unschedulable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.node_usage import NodeUsage
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.cycle_state import CycleState

REJECTED: Final = unschedulable("node(s) didn't have free ports for the requested pod ports")

_BLOCK_BITS: Final = 6
"""A column holds 64 neighbouring ports as the bits of one integer, so that pods with ranges of
ports, and workloads whose every pod takes another port, share a few columns."""

MAX_BY_COLUMN: Final = 16
"""Blocks of a pod's ports that are evaluated on columns. Real pods have one or two."""

_BIT_MASK: Final = (1 << _BLOCK_BITS) - 1


class _Block(NamedTuple):
    """64 ports of one protocol that a pod requests at ``ip``."""

    ip: str
    protocol: str
    number: int

    def taken(self, node_info: NodeInfo) -> int:
        """Return the ports of the block that such a pod cannot have on the node, as bits."""
        bits = 0
        wanted_ip, wanted_protocol, number = self
        used = node_info.used_ports
        if len(used) > _BIT_MASK:
            for bit in range(_BIT_MASK + 1):
                asked = HostPort(wanted_ip, wanted_protocol, number << _BLOCK_BITS | bit)
                bits |= used.conflicts(asked) << bit
            return bits
        anywhere = wanted_ip == ALL_ADDRESSES
        for ip, protocol, port in used:
            if (
                port >> _BLOCK_BITS == number
                and protocol == wanted_protocol
                and (anywhere or ip in (wanted_ip, ALL_ADDRESSES))
            ):
                bits |= 1 << (port & _BIT_MASK)
        return bits


class NodePorts(PreFilterPlugin, FilterPlugin, GuardPlugin):
    """Rejects nodes on which one of the pod's host ports is in use."""

    name = names.NODE_PORTS
    judges_nodes_alone = True

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Skip for a pod without host ports."""
        return PROCEED if info.host_ports else SKIP_FILTER

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view.

        *Cost*: two passes over a column for each block of ports; filling the column at the
        first use of the block. For a pod with ports in very many blocks, one pass over the ports of
        each node.
        """
        passed: BoolArray | None = None
        blocks = _blocks(info.host_ports)
        if len(blocks) > MAX_BY_COLUMN:
            return NodeVerdicts(_one_by_one(info, nodes, state.budget), status=REJECTED)
        for block, wanted in blocks.items():
            state.budget.check()
            spec = ColumnSpec(("hostports", *block), block.taken, np.uint64, of_pods=True)
            free: BoolArray = (nodes.derived(spec) & np.uint64(wanted)) == 0
            passed = free if passed is None else passed & free
            if not passed.any():
                break
        return ALL_PASS if passed is None else NodeVerdicts(passed, status=REJECTED)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        conflicts = node_info.used_ports.conflicts
        return REJECTED if any(conflicts(port) for port in info.host_ports) else SUCCESS

    def still_fits(self, info: PodInfo, usage: NodeUsage) -> Status:
        """Return a rejection if another pod has one of the pod's host ports by now."""
        return REJECTED if has_taken_port(info, usage) else SUCCESS

    def count(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return 1 for each node: two pods with the same ports have no room on one."""
        return np.ones(len(nodes), dtype=np.int64)

    def signature(self, info: PodInfo) -> Hashable:
        """Return the host ports."""
        return info.host_ports

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a deleted pod, and a new node."""
        return (
            EventRegistration.on(Resource.POD, Action.DELETE, _AFTER_POD),
            EventRegistration.on(Resource.NODE, Action.ADD),
        )


def _one_by_one(info: PodInfo, nodes: NodesView, budget: AttemptBudget) -> BoolArray:
    """Return bool (n_nodes,): the nodes with no port in use that the pod needs."""
    wanted = UsedHostPorts()
    for port in info.host_ports:
        wanted.add(port)
    passed = np.ones(len(nodes), dtype=np.bool_)
    for index, node_info in enumerate(nodes.node_infos()):
        used = node_info.used_ports
        if len(used):
            budget.check()
            few, many = (used, wanted) if len(used) < len(wanted) else (wanted, used)
            passed[index] = not any(many.conflicts(port) for port in few)
    return passed


def _after_pod(pod: Pod, old: Pod, new: Any) -> Hint:
    """Return the hint for a deleted pod: Queue if it used a port that the pod requests."""
    if not old.spec.node_name and not old.status.nominated_node_name:
        return Hint.SKIP
    freed = UsedHostPorts()
    for port in host_ports(old):
        freed.add(port)
    wanted = any(freed.conflicts(port) for port in host_ports(pod)) if len(freed) else False
    return Hint.QUEUE if wanted else Hint.SKIP


def _numbers(ports: Iterable[HostPort]) -> set[tuple[str, int]]:
    return {(port.protocol, port.port) for port in ports}


_AFTER_POD: Final = for_pods_by(
    host_ports, _after_pod, _numbers, lambda old, new: _numbers(host_ports(old))
)


def _blocks(ports: Iterable[HostPort]) -> dict[_Block, int]:
    """Return the wanted ports as bits by block."""
    wanted: dict[_Block, int] = {}
    for port in ports:
        block = _Block(port.ip, port.protocol, port.port >> _BLOCK_BITS)
        wanted[block] = wanted.get(block, 0) | 1 << (port.port & _BIT_MASK)
    return wanted
