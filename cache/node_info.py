"""A node with the pods on it and the sums of the resources that they use."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from cache.host_ports import UsedHostPorts
from cache.many_pods import MANY, ManyPods
from cache.pod_info import PodInfo, has_affinity, has_required_anti_affinity
from cache.resources import CPU, MEMORY, resource_amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cache.image_states import ImageState
    from cache.objects import Node

NO_AMOUNTS: Mapping[str, int] = MappingProxyType({})
NO_IMAGES: Mapping[str, ImageState] = MappingProxyType({})

NO_PRESSURE: frozenset[str] = frozenset()
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class TransientInfo:
    """Data that one scheduling cycle stores on a node, and that the next snapshot drops.

    *Source*: framework.TransientSchedulerInfo of kube-scheduler up to 1.18. Newer versions keep
    such notes in the cycle state; it is kept here for plugins that want a place on the node.
    """

    __slots__ = ("allocatable_volumes", "requested_volumes")

    def __init__(self) -> None:
        self.allocatable_volumes = 0
        self.requested_volumes = 0


class NodeInfo:
    """A node, the pods on it, and the sums over them.

    A NodeInfo without a node is an *imaginary* node: its pods arrived before it, or it was
    deleted before they were.

    Notes
    -----
    *Concurrency*: the live ones belong to the cache and change under its lock; those of a
    snapshot belong to the scheduling thread.

    *Source*: pkg/scheduler/framework/types.go, NodeInfo (1.36). ``pressure`` is what it held
    until pressure became taints (1.12), kept because people ask for it; no plugin of the
    default profile reads it. PVC reference counts are keyed ``namespace/claim``.
    """

    __slots__ = (
        "_transient",
        "allocatable",
        "generation",
        "image_states",
        "name",
        "node",
        "nonzero_memory_bytes",
        "nonzero_milli_cpu",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "pressure",
        "pvc_ref_counts",
        "requested",
        "used_ports",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.pods: dict[str, PodInfo] | ManyPods = {}
        """All pods assigned to or assumed on the node, by UID, in order of arrival."""
        self.pods_with_affinity: dict[str, PodInfo] = {}
        """Those with any inter-pod (anti-)affinity term."""
        self.pods_with_required_anti_affinity: dict[str, PodInfo] = {}
        """Those with a required anti-affinity term."""
        self.used_ports = UsedHostPorts()
        self.requested: dict[str, int] = {}
        """Sum of the pods' requests by resource name; a resource with sum 0 has no entry."""
        self.nonzero_milli_cpu = 0
        """Sum of the CPU that pods are taken to use: 100m for a container that asks for none."""
        self.nonzero_memory_bytes = 0
        """Sum of the memory that pods are taken to use: 200 MiB where none is asked for."""
        self.allocatable: Mapping[str, int] = NO_AMOUNTS
        self.pressure = NO_PRESSURE
        self.image_states: Mapping[str, ImageState] = NO_IMAGES
        """The node's images: size and the number of nodes that have each, shared by these nodes."""
        self.pvc_ref_counts: dict[str, int] = {}
        self.generation = 0
        """Grows with every change, over all nodes, from one counter."""
        self._transient: TransientInfo | None = None

    @property
    def transient(self) -> TransientInfo:
        """The data that this cycle stores on the node, created on first use."""
        if self._transient is None:
            self._transient = TransientInfo()
        return self._transient

    def set_node(self, node: Node) -> None:
        """Set the node object: its allocatable amounts and its conditions.

        Raises
        ------
        MalformedObjectError
            When a quantity is malformed; the NodeInfo is then unchanged.
        """
        allocatable = resource_amounts(node.status.allocatable, "status.allocatable")
        self.allocatable = allocatable
        self.node = node
        self.pressure = NO_PRESSURE
        for condition in node.status.conditions:
            if condition.status == "True" and condition.type in _PRESSURES:
                self.pressure |= {condition.type}

    def remove_node(self) -> None:
        """Make the node imaginary: keep the pods, and drop the data of the node object."""
        self.node = None
        self.allocatable = NO_AMOUNTS
        self.pressure = NO_PRESSURE
        self.image_states = NO_IMAGES

    def add_pod(self, info: PodInfo) -> None:
        """Add a pod to the node.

        Raises
        ------
        ValueError
            When the pod is counted already.
        """
        uid = info.uid
        if uid in self.pods:
            raise ValueError(f"{info!r} is on node {self.name} already")
        self.pods[uid] = info
        if len(self.pods) == MANY and isinstance(self.pods, dict):
            self.pods = ManyPods(self.pods)
        requested = self.requested
        for name, amount in info.requests.items():
            if amount:
                requested[name] = requested.get(name, 0) + amount
        self.nonzero_milli_cpu += info.nonzero_milli_cpu
        self.nonzero_memory_bytes += info.nonzero_memory_bytes
        for port in info.host_ports:
            self.used_ports.add(port)
        spec = info.pod.spec
        if spec.affinity is not None:
            if has_affinity(spec.affinity):
                self.pods_with_affinity[uid] = info
            if has_required_anti_affinity(spec.affinity):
                self.pods_with_required_anti_affinity[uid] = info
        for claim in claim_keys(info):
            self.pvc_ref_counts[claim] = self.pvc_ref_counts.get(claim, 0) + 1

    def remove_pod(self, uid: str) -> PodInfo:
        """Remove a pod from the node, and return it as it was added.

        Raises
        ------
        KeyError
            When the pod is not on the node.
        """
        try:
            info = self.pods.pop(uid)
        except KeyError:
            raise KeyError(f"pod with UID {uid} is not on node {self.name}") from None
        _subtract(self.requested, info.requests)
        self.nonzero_milli_cpu -= info.nonzero_milli_cpu
        self.nonzero_memory_bytes -= info.nonzero_memory_bytes
        for port in info.host_ports:
            self.used_ports.remove(port)
        self.pods_with_affinity.pop(uid, None)
        self.pods_with_required_anti_affinity.pop(uid, None)
        for claim in claim_keys(info):
            _subtract(self.pvc_ref_counts, {claim: 1})
        return info

    def replace_pod(self, info: PodInfo) -> bool:
        """Replace a pod by a newer version of it.

        Returns
        -------
        Whether anything that a decision may depend on has changed. The API's confirmation of an
        assumed pod and most status updates change nothing, and so cost no row of the snapshot.

        Raises
        ------
        KeyError
            When the pod is not on the node.
        """
        old = self.pods.get(info.uid)
        if old is None:
            raise KeyError(f"{info!r} is not on node {self.name}")
        if same_for_decisions(old, info):
            self.pods[info.uid] = info
            for group in (self.pods_with_affinity, self.pods_with_required_anti_affinity):
                if info.uid in group:
                    group[info.uid] = info
            return False
        self.remove_pod(info.uid)
        self.add_pod(info)
        return True

    def clone(self) -> NodeInfo:
        """Return a copy that shares only unchanging parts, with its transient part reset.

        *Cost*: proportional to the pods on the node, some 2 us for 30 of them; beyond 512 a
        matter of chunks, see :class:`cache.many_pods.ManyPods`.
        """
        twin = NodeInfo.__new__(NodeInfo)
        twin.name = self.name
        twin.node = self.node
        twin.pods = self.pods.copy()
        twin.pods_with_affinity = self.pods_with_affinity.copy()
        twin.pods_with_required_anti_affinity = self.pods_with_required_anti_affinity.copy()
        twin.used_ports = self.used_ports.copy()
        twin.requested = self.requested.copy()
        twin.nonzero_milli_cpu = self.nonzero_milli_cpu
        twin.nonzero_memory_bytes = self.nonzero_memory_bytes
        twin.allocatable = self.allocatable
        twin.pressure = self.pressure
        twin.image_states = self.image_states
        twin.pvc_ref_counts = self.pvc_ref_counts.copy()
        twin.generation = self.generation
        twin._transient = None
        return twin

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels; an imaginary node has none."""
        return self.node.metadata.labels if self.node is not None else NO_LABELS

    @property
    def uid(self) -> str:
        """The node's UID; empty for an imaginary node."""
        return self.node.metadata.uid if self.node is not None else ""

    def facts(self) -> dict[str, object]:
        """Return everything that must be equal between this node and one rebuilt from the API.

        The order of arrival, the generation and the transient part are left out, and so is the
        size of an image: where nodes disagree on it, it depends on who came first.
        """
        return {
            "node": self.node,
            "pods": set(self.pods),
            "pods_with_affinity": set(self.pods_with_affinity),
            "pods_with_required_anti_affinity": set(self.pods_with_required_anti_affinity),
            "used_ports": self.used_ports,
            "requested": self.requested,
            "nonzero": (self.nonzero_milli_cpu, self.nonzero_memory_bytes),
            "allocatable": dict(self.allocatable),
            "pressure": self.pressure,
            "image_states": {name: state.num_nodes for name, state in self.image_states.items()},
            "pvc_ref_counts": self.pvc_ref_counts,
        }

    def __repr__(self) -> str:
        kind = "" if self.node is not None else ", imaginary"
        return (
            f"NodeInfo({self.name}{kind}, pods={len(self.pods)}, "
            f"cpu={self.requested.get(CPU, 0)}/{self.allocatable.get(CPU, 0)}m, "
            f"memory={self.requested.get(MEMORY, 0)}/{self.allocatable.get(MEMORY, 0)})"
        )


NO_LABELS: Mapping[str, str] = MappingProxyType({})


def claim_keys(info: PodInfo) -> Iterable[str]:
    """Yield ``namespace/claim`` for each PersistentVolumeClaim that the pod mounts by name."""
    for volume in info.pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"{info.namespace}/{volume.persistent_volume_claim.claim_name}"


def same_for_decisions(old: PodInfo, new: PodInfo) -> bool:
    """Return whether two versions of a pod are alike in all that a decision may depend on."""
    before, after = old.pod, new.pod
    return (
        old.requests == new.requests
        and old.nonzero_milli_cpu == new.nonzero_milli_cpu
        and old.nonzero_memory_bytes == new.nonzero_memory_bytes
        and old.host_ports == new.host_ports
        and before.metadata.labels == after.metadata.labels
        and before.metadata.annotations == after.metadata.annotations
        and before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
        and before.status.start_time == after.status.start_time
        and before.spec.priority == after.spec.priority
        and before.spec.affinity == after.spec.affinity
        and before.spec.volumes == after.spec.volumes
        and before.spec.topology_spread_constraints == after.spec.topology_spread_constraints
    )


def _subtract(totals: dict[str, int], amounts: Mapping[str, int]) -> None:
    """Subtract amounts from totals; remove entries that reach 0, so that totals compare equal."""
    for name, amount in amounts.items():
        if amount:
            left = totals[name] - amount
            if left:
                totals[name] = left
            else:
                del totals[name]
