"""The cluster of a what-if: changes of nodes and pods, seen by all that plugins read."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cache.objects import PodCondition, PodStatus, Taint
from cache.pod_info import PodInfo, is_terminal, on_node
from cache.resources import MalformedObjectError
from scheduler.what_if.budgets import is_healthy
from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.pod_claims import PodClaims

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.device_objects import ResourceClaimSpec
    from cache.objects import Node, Pod
    from scheduler.offline.cluster import Cluster
    from scheduler.what_if.admission import Admission

UID_PREFIX: Final = "what-if-"
"""How the UIDs of pods begin that a forecast has created."""

HOSTNAME: Final = "kubernetes.io/hostname"

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What the node lifecycle controller adds to a cordoned node."""

_OF_CONDITIONS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints that say how a node is at the moment; a new node does not begin with them."""


@dataclass(slots=True)
class Changes:
    """What has changed that may help a pod that was refused.

    Attributes
    ----------
    room
        Grows when nodes change, and when a pod leaves a node that is not cordoned.
    left
        Grows when nodes change, and with every deletion.
    bound
        Grows with every placement.
    """

    room: int = 0
    left: int = 0
    bound: int = 0

    def node_changed(self) -> None:
        """Count the change of a node."""
        self.room += 1
        self.left += 1


class ChangedCluster:
    """Changes a cluster as the API server, controllers and people would.

    Parameters
    ----------
    cluster
        It is changed for good.
    templates
        See :class:`scheduler.what_if.pod_claims.PodClaims`.
    admission
        The limits of namespaces.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(
        self,
        cluster: Cluster,
        templates: dict[tuple[str, str], ResourceClaimSpec],
        admission: Admission,
    ) -> None:
        self.cluster = cluster
        self.admission = admission
        self._claims = PodClaims(cluster, templates)
        self._uids = itertools.count(1)
        self.changes = Changes()

    # --- pods ---------------------------------------------------------------------------------

    def pods_on(self, names: frozenset[str]) -> dict[str, list[Pod]]:
        """Return the pods with one of these nodes that have not ended, by node and in order."""
        found: dict[str, list[Pod]] = {name: [] for name in names}
        for key in sorted(self.cluster.pods):
            pod = self.cluster.pods[key]
            if pod.spec.node_name in names and not is_terminal(pod):
                found[pod.spec.node_name].append(pod)
        return found

    def create(self, pod: Pod) -> Pod:
        """Create a pending pod that was admitted, with a UID of its own, and its claims; return it.

        It will be ready as soon as it runs, unless ``pod`` was not ready itself although its node
        is: then it replaces a pod that does not get ready.
        """
        uid = self.next_uid()
        is_unready = bool(pod.spec.node_name) and self._is_unready(pod)
        pod = replace(
            pod,
            metadata=replace(pod.metadata, uid=uid, resource_version="", deletion_timestamp=None),
            spec=replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec,
            status=_PENDING_UNREADY if is_unready else _PENDING,
        )
        if pod.spec.volumes or pod.spec.resource_claims:
            pod = self._claims.create(pod)
        self.cluster.pods[_key(pod)] = pod
        self.cluster.known.pod_groups.pod_changed(None, pod)
        return pod

    def replace(self, pod: Pod) -> tuple[Pod | None, str]:
        """Delete a pod of a controller, and return what is created in its place.

        None if that is refused by a limit of the namespace, with the reason.
        """
        self.delete(pod)
        why = self.admission.admit(pod)
        return (None, why) if why else (self.create(pod), "")

    def _is_unready(self, pod: Pod) -> bool:
        node = self.cluster.nodes.get(pod.spec.node_name)
        if is_healthy(pod) or node is None:
            return False
        return all(each.status == "True" for each in node.status.conditions if each.type == "Ready")

    def delete(self, pod: Pod) -> None:
        """Delete a pod, with or without a node, and what it owns."""
        cluster, uid = self.cluster, pod.metadata.uid
        node = cluster.nodes.get(pod.spec.node_name)
        self.changes.left += 1
        self.changes.room += node is None or not node.spec.unschedulable
        cluster.cache.remove_uid(uid)
        cluster.nominator.delete(uid)
        cluster.known.pod_groups.pod_changed(pod, None)
        self._claims.delete(pod)
        self.admission.release(pod)
        key = _key(pod)
        if (known := cluster.pods.get(key)) is not None and known.metadata.uid == uid:
            del cluster.pods[key]

    def bind(self, info: PodInfo, node_name: str) -> Pod:
        """Give a pod its node, where it runs at once; return it."""
        bound = on_node(info.pod, node_name)
        bound = replace(bound, status=replace(bound.status, phase="Running"))
        self.changes.bound += 1
        self.cluster.cache.add_pod(PodInfo(bound))
        self.cluster.nominator.delete(info.uid)
        self.cluster.known.pod_groups.pod_changed(info.pod, bound)
        self.cluster.pods[info.key] = bound
        return bound

    def next_uid(self) -> str:
        """Return the UID of a pod that is created."""
        return f"{UID_PREFIX}{next(self._uids)}"

    def add_bound(self, info: PodInfo) -> None:
        """Store a new pod that was admitted, has its node and runs; it owns nothing.

        No pod is nominated for anything of it, and it is in no group.
        """
        self.changes.bound += 1
        self.cluster.cache.add_pod(info)
        self.cluster.pods[info.key] = info.pod

    # --- nodes --------------------------------------------------------------------------------

    def cordon(self, name: str) -> None:
        """Mark a node as unschedulable."""
        node = self.cluster.nodes[name]
        taints = node.spec.taints
        if not any(taint.key == UNSCHEDULABLE.key for taint in taints):
            taints = (*taints, UNSCHEDULABLE)
        spec = replace(node.spec, unschedulable=True, taints=taints)
        self.changes.node_changed()
        self.cluster.add_node(replace(node, spec=spec))

    def remove_node(self, name: str) -> None:
        """Remove a node and what belongs to it; no pod may be left on it."""
        known = self.cluster.known
        self.changes.node_changed()
        self.cluster.cache.remove_node(name)
        del self.cluster.nodes[name]
        driver_data = known.storage.csi_nodes.get(name)
        if driver_data is not None:
            known.storage.csi_nodes.changed(driver_data, None)
        for each in known.devices.slices.view().by_node.get(name, ()):
            known.devices.slices.changed(each, None)

    def add_nodes_like(self, like: str, count: int) -> None:
        """Add nodes like another one, with the pods that every such node has.

        Their labels, taints, resources, volume limits and devices are those of the other node, but
        for the host name, a cordon and the taints of conditions. They have no images yet.
        """
        self.changes.node_changed()
        node = self.cluster.nodes[like]
        of_every_node = [
            pod
            for pod in self.pods_on(frozenset((like,)))[like]
            if drain_kind(pod) in (DrainKind.DAEMON_SET, DrainKind.MIRROR)
        ]
        numbered = (f"{like}-new-{number}" for number in itertools.count(1))
        free = (name for name in numbered if name not in self.cluster.nodes)
        for name in itertools.islice(free, count):
            self._add_copy(node, name)
            self._copy_drivers(like, name)
            self._copy_pods(of_every_node, name)

    def _add_copy(self, node: Node, name: str) -> None:
        labels = dict(node.metadata.labels)
        if HOSTNAME in labels:
            labels[HOSTNAME] = name
        taints = tuple(t for t in node.spec.taints if not t.key.startswith(_OF_CONDITIONS))
        self.cluster.add_node(
            replace(
                node,
                metadata=replace(node.metadata, name=name, uid=f"what-if-{name}", labels=labels),
                spec=replace(node.spec, unschedulable=False, taints=taints),
                status=replace(node.status, images=()),
            )
        )

    def _copy_drivers(self, like: str, name: str) -> None:
        """Give a new node the volume limits and the devices of another one."""
        storage, slices = self.cluster.known.storage, self.cluster.known.devices.slices
        driver_data = storage.csi_nodes.get(like)
        if driver_data is not None:
            named = replace(driver_data.metadata, name=name)
            storage.csi_nodes.changed(None, replace(driver_data, metadata=named))
        for each in slices.view().by_node.get(like, ()):
            metadata = replace(each.metadata, name=f"{each.metadata.name}-{name}")
            pool = each.spec.pool
            pool_name = name if pool.name == like else f"{pool.name}-{name}"
            spec = replace(each.spec, node_name=name, pool=replace(pool, name=pool_name))
            slices.changed(None, replace(each, metadata=metadata, spec=spec))

    def _copy_pods(self, pods: Iterable[Pod], name: str) -> None:
        """Run copies of pods on a new node."""
        for pod in pods:
            metadata = replace(
                pod.metadata, name=f"{pod.metadata.name}-{name}", deletion_timestamp=None
            )
            copy = replace(pod, metadata=metadata)
            try:
                self.bind(PodInfo(self.create(copy)), name)
            except MalformedObjectError:
                continue  # nobody knows what it asks for, on the other node neither


_PENDING: Final = PodStatus(phase="Pending")
_PENDING_UNREADY: Final = PodStatus(
    phase="Pending", conditions=(PodCondition("Ready", status="False"),)
)


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
