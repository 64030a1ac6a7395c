"""Builds a profile's framework for an offline cluster: it judges pods and changes nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import uuid4

from plugins.framework.node_metrics import NoMetrics
from plugins.framework.status import Code, Status
from plugins.registry import PLUGINS
from scheduler.runtime.nominated_nodes import NominatedNodes
from scheduler.runtime.profile_builder import build_framework

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from cache.device_objects import AllocationResult, ResourceClaim
    from cache.node_info import NodeInfo
    from cache.objects import Node, Pod, PodExtendedResourceClaimStatus
    from cache.pod_info import PodInfo
    from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
    from plugins.framework.handle import Preemption, WaitingPod
    from plugins.framework.interfaces import Plugin
    from plugins.framework.node_metrics import NodeMetrics
    from plugins.framework.victims import Victims
    from scheduler.config import EffectiveProfile
    from scheduler.offline.cluster import Cluster
    from scheduler.queueing.nominator import Nominations
    from scheduler.runtime.framework_runner import FrameworkRunner


class ReadOnlyError(Exception):
    """A plugin tried to change a cluster that is read-only."""


class NoPreemption:
    """Evicts no pods. See :class:`plugins.framework.handle.Preemption`."""

    asks_extenders = False

    def is_running(self, uid: str) -> bool:
        """Return False: no preemption runs offline."""
        return False

    def leaving(self) -> Collection[str]:
        """Return nothing: no preemption runs offline."""
        return ()

    def start(self, info: PodInfo, node_name: str, victims: Victims, plugin: str) -> Status:
        """Return an error: no pod is evicted offline."""
        return Status(Code.ERROR, ("nobody is evicted while explaining",))

    def ask_extenders(
        self, info: PodInfo, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        """Return all candidates: extenders are not called offline."""
        return candidates


class NoStorageWriter:
    """Writes nothing. See :class:`plugins.framework.handle.StorageWriter`."""

    async def claim_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Raise ReadOnlyError: no volume is written offline."""
        raise ReadOnlyError("no volume is written while explaining")

    async def annotate_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Raise ReadOnlyError: no claim is written offline."""
        raise ReadOnlyError("no claim is written while explaining")


class NoClaimWriter:
    """Writes nothing. See :class:`plugins.framework.handle.ClaimWriter`."""

    def now_s(self) -> float:
        """Return the time in seconds since the epoch."""
        return time.time()

    def new_uid(self) -> str:
        """Return a random UID."""
        return str(uuid4())

    async def reserve(
        self,
        claim: ResourceClaim,
        pod: Pod,
        allocation: AllocationResult | None,
        check: Callable[[], object] = lambda: None,
    ) -> ResourceClaim:
        """Raise ReadOnlyError: no claim is written offline."""
        raise ReadOnlyError("no claim is written while explaining")

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Raise ReadOnlyError: no claim is created offline."""
        raise ReadOnlyError("no claim is created while explaining")

    async def show_special_claim(self, pod: Pod, shown: PodExtendedResourceClaimStatus) -> None:
        """Raise ReadOnlyError: no pod is written offline."""
        raise ReadOnlyError("no pod is written while explaining")

    async def deallocate(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Raise ReadOnlyError: no claim is written offline."""
        raise ReadOnlyError("no claim is written while explaining")

    async def settled(self, uid: str) -> None:
        """Return: nothing is left to be written offline."""

    def only_waits(self, pod_uid: str) -> None:
        """Do nothing: no pod is bound offline."""

    def release_soon(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Do nothing: no claim is written offline."""

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Do nothing: no claim is written offline."""

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Do nothing: no claim is deleted offline."""


class NoDeviceReports:
    """Reports nothing. See :class:`plugins.framework.handle.DeviceReports`."""

    def waiting(self, pod: Pod, node_name: str) -> None:
        """Do nothing: no pod waits offline."""

    def waited(
        self, pod: Pod, claims: Sequence[ResourceClaim], result: str, seconds: float
    ) -> None:
        """Do nothing: no pod waits offline."""

    def collision(self, driver: str) -> None:
        """Do nothing: no device is allocated offline."""


class OfflineServices:
    """The services of plugins in a read-only cluster.

    Parameters
    ----------
    cluster
        The cluster that plugins read.
    node_metrics
        What plugins are told of metrics of nodes; None for nothing.
    """

    def __init__(self, cluster: Cluster, node_metrics: NodeMetrics | None = None) -> None:
        self._cluster, known = cluster, cluster.known
        self.namespaces = known.namespaces
        self.nominations: Nominations = cluster.nominator.latest
        self.workloads = known.workloads
        self.storage = known.storage
        self.devices = known.devices
        self.storage_writer = NoStorageWriter()
        self.claim_writer = NoClaimWriter()
        self.device_reports = NoDeviceReports()
        self.disruption_budgets = known.disruption_budgets
        self.pod_groups = known.pod_groups
        self.preemption: Preemption = NoPreemption()
        self.node_metrics: NodeMetrics = NoMetrics() if node_metrics is None else node_metrics

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod of the cluster, or None."""
        return self._cluster.pods.get(f"{namespace}/{name}")

    def live_node(self, name: str) -> Node | None:
        """Return a node of the cluster, or None."""
        return self._cluster.nodes.get(name)

    def cached_node(self, name: str) -> None:
        """Return None: queueing hints do not depend on the offline cluster."""

    def nominated_pods(self, node_name: str) -> Sequence[PodInfo]:
        """Return the pods that are nominated for a node."""
        return self.nominations.nominated_pods_for_node(node_name)

    def nominated_node_names(self) -> Sequence[str]:
        """Return the nodes that pods are nominated for."""
        return self.nominations.node_names()

    def waiting_pod(self, uid: str) -> None:
        """Return None: no pod waits at Permit offline."""

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """Return an empty sequence: no pod waits at Permit offline."""
        return ()

    def activate_pods(self, uids: Iterable[str]) -> None:
        """Do nothing: there is no queue offline."""

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Return an error: no pod is bound offline."""
        return Status(Code.ERROR, ("nothing is bound while explaining",))


def offline_framework(
    profiles: Sequence[EffectiveProfile],
    cluster: Cluster,
    scheduler_name: str = "",
    plugins: Mapping[str, type[Plugin]] = PLUGINS,
    node_metrics: NodeMetrics | None = None,
) -> FrameworkRunner:
    """Build the profile that serves a schedulerName, or the first profile if none does.

    Its plugin objects are new and read only this cluster; ``plugins`` are the available plugins,
    besides the classes that the profile has itself. Without ``node_metrics``, plugins are told that
    there are none.

    Raises
    ------
    ConfigError
        When a plugin's arguments cannot be used.
    """
    names = [profile.scheduler_name for profile in profiles]
    index = names.index(scheduler_name) if scheduler_name in names else 0
    classes = {**plugins, **profiles[index].classes}
    services = OfflineServices(cluster, node_metrics)
    framework = build_framework(profiles[index], index, classes, services)
    framework.nominated = NominatedNodes(cluster.nominator.latest)
    return framework
