"""The cluster of a what-if: changes of nodes and pods, seen by all that plugins read."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cache.objects import PodStatus, Taint
from cache.pod_info import PodInfo, is_terminal, on_node
from cache.resources import MalformedObjectError
from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.pod_claims import PodClaims

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.device_objects import ResourceClaimSpec
    from cache.objects import Node, Pod
    from scheduler.offline.cluster import Cluster

UID_PREFIX: Final = "what-if-"
"""How the UIDs of pods begin that a forecast has created."""

HOSTNAME: Final = "kubernetes.io/hostname"

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What the node lifecycle controller adds to a cordoned node."""

_OF_CONDITIONS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints that say how a node is at the moment; a new node does not begin with them."""


class ChangedCluster:
    """Changes a cluster as the API server, controllers and people would.

    Parameters
    ----------
    cluster
        It is changed for good.
    templates
        See :class:`scheduler.what_if.pod_claims.PodClaims`.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(
        self,
        cluster: Cluster,
        templates: dict[tuple[str, str], ResourceClaimSpec] | None = None,
    ) -> None:
        self.cluster = cluster
        self._claims = PodClaims(cluster, {} if templates is None else templates)
        self._uids = itertools.count(1)

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
        """Create a pending pod with a UID of its own, and its claims; return it."""
        uid = f"{UID_PREFIX}{next(self._uids)}"
        pod = replace(
            pod,
            metadata=replace(pod.metadata, uid=uid, resource_version="", deletion_timestamp=None),
            spec=replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec,
            status=_PENDING,
        )
        if pod.spec.volumes or pod.spec.resource_claims:
            pod = self._claims.create(pod)
        self.cluster.pods[_key(pod)] = pod
        self.cluster.known.pod_groups.pod_changed(None, pod)
        return pod

    def delete(self, pod: Pod) -> None:
        """Delete a pod, with or without a node, and what it owns."""
        cluster, uid = self.cluster, pod.metadata.uid
        cluster.cache.remove_uid(uid)
        cluster.nominator.delete(uid)
        cluster.known.pod_groups.pod_changed(pod, None)
        self._claims.delete(pod)
        key = _key(pod)
        if (known := cluster.pods.get(key)) is not None and known.metadata.uid == uid:
            del cluster.pods[key]

    def bind(self, info: PodInfo, node_name: str) -> None:
        """Give a pod its node."""
        bound = on_node(info.pod, node_name)
        self.cluster.cache.add_pod(PodInfo(bound))
        self.cluster.nominator.delete(info.uid)
        self.cluster.known.pod_groups.pod_changed(info.pod, bound)
        self.cluster.pods[info.key] = bound

    # --- nodes --------------------------------------------------------------------------------

    def cordon(self, name: str) -> None:
        """Mark a node as unschedulable."""
        node = self.cluster.nodes[name]
        taints = node.spec.taints
        if not any(taint.key == UNSCHEDULABLE.key for taint in taints):
            taints = (*taints, UNSCHEDULABLE)
        spec = replace(node.spec, unschedulable=True, taints=taints)
        self.cluster.add_node(replace(node, spec=spec))

    def remove_node(self, name: str) -> None:
        """Remove a node and what belongs to it; no pod may be left on it."""
        known = self.cluster.known
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


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
