"""What the pods on one node use at this moment, as far as it matters to one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cache.host_ports import UsedHostPorts
from cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.node_info import NodeInfo
    from cache.objects import Node
    from cache.pod_info import PodInfo

_NO_PORTS: Final = UsedHostPorts()
_NAMED: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})


class NodeUsage(NamedTuple):
    """The usage of a node by its pods, one pod among them for which this was made.

    Attributes
    ----------
    name
        The name of the node.
    node
        The node object; None for a node that was deleted.
    allocatable
        The amounts that pods may use, by resource name.
    requested
        The amounts that all pods on the node request, of the resources that the one pod requests.
    num_pods
        The number of pods on the node.
    is_assumed
        Whether the one pod is assumed there, and not confirmed by the watch.
    used_ports
        The host ports in use; empty if the one pod has none.

    Notes
    -----
    *Concurrency*: nothing in it changes.
    """

    name: str
    node: Node | None
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    num_pods: int
    is_assumed: bool
    used_ports: UsedHostPorts


def usage_for(info: PodInfo, node_info: NodeInfo, *, is_assumed: bool = True) -> NodeUsage:
    """Return the usage of a node on which a pod counts. *Cost*: 1 us."""
    requested = node_info.requested
    return NodeUsage(
        node_info.name,
        node_info.node,
        node_info.allocatable,
        {name: requested.get(name, 0) for name, amount in info.requests.items() if amount},
        len(node_info.pods),
        is_assumed,
        node_info.used_ports.copy() if info.host_ports else _NO_PORTS,
    )


def overcommitted(info: PodInfo, usage: NodeUsage) -> str:
    """Return a resource of which the pods on a node have more than there is, or the empty string.

    Only what the pod itself requests is looked at: the number of pods, then the resources in the
    order of its requests, then host ports. One of ``pods``, ``cpu``, ``memory``,
    ``ephemeral-storage``, ``host_ports`` and ``other``.
    """
    allocatable = usage.allocatable
    if usage.num_pods > allocatable.get(PODS, 0):
        return PODS
    for name, used in usage.requested.items():
        # A resource that the node does not report is not checked by its kubelet.
        if name != PODS and name in allocatable and used > allocatable[name]:
            return name if name in _NAMED else "other"
    own = info.host_ports
    return "host_ports" if own and usage.used_ports.conflicts_beside(own) else ""
