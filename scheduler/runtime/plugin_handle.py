"""The handle for plugins: see :class:`plugins.framework.handle.Handle`.

:class:`PluginServices` are the same for all profiles; a :class:`ProfileHandle` adds the services
that differ between profiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from weakref import ref

import msgspec

from cache.value import Value
from plugins.framework.node_metrics import NoMetrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.known import Known
    from cache.node_info import NodeInfo
    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from plugins.framework.handle import (
        ClaimWriter,
        DeviceReports,
        Preemption,
        Services,
        StorageWriter,
        WhatIf,
    )
    from plugins.framework.node_metrics import NodeMetrics
    from plugins.framework.status import Status
    from plugins.framework.victims import Victims
    from scheduler.extenders import ExtenderChain
    from scheduler.informers.watched import Watched
    from scheduler.runtime.known_pods import KnownPods


class PodBinder(Protocol):
    """Binds pods."""

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod through the API."""
        ...


class PluginActions(Value, frozen=True):
    """What plugins may have done.

    Attributes
    ----------
    binder
        Binds pods, on the I/O loop.
    storage_writer
        Writes volumes and claims, on the I/O loop.
    preemption
        Executes preemptions.
    claim_writer
        Writes claims of devices, on the I/O loop.
    device_reports
        Reports what happens to devices.
    """

    binder: PodBinder
    storage_writer: StorageWriter
    preemption: Preemption
    claim_writer: ClaimWriter
    device_reports: DeviceReports


class PluginServices:
    """The services for plugins, which all profiles share.

    Parameters
    ----------
    known
        The observed state of the cluster.
    watched
        The latest versions of pods and nodes that the watches reported. Any thread.
    pods
        The location of every pod.
    actions
        What plugins may have done.
    node_metrics
        Measured values of nodes.

    Notes
    -----
    *Concurrency*: as each service says.
    """

    def __init__(
        self,
        known: Known,
        watched: Watched,
        pods: KnownPods,
        actions: PluginActions,
        node_metrics: NodeMetrics | None = None,
    ) -> None:
        self.namespaces = known.namespaces
        self.workloads = known.workloads
        self.disruption_budgets = known.disruption_budgets
        self.pod_groups = known.pod_groups
        self.storage = known.storage
        self.devices = known.devices
        self.cached_node = known.cache.node_info
        self.storage_writer = actions.storage_writer
        self.claim_writer = actions.claim_writer
        self.device_reports = actions.device_reports
        self.preemption = actions.preemption
        self.bind_pod = actions.binder.bind_pod
        self.waiting_pod = pods.waiting.get
        self.waiting_pods = pods.waiting.list
        self.activate_pods = pods.queue.activate
        self.node_metrics: NodeMetrics = NoMetrics() if node_metrics is None else node_metrics
        self._nominator = pods.queue.nominator
        self._watched = watched

    def live_node(self, name: str) -> Node | None:
        """Return the latest version of a node that the watch brought, or None."""
        return self._watched.nodes.get("", name)

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the latest version of a pod that the watch brought, or None.

        A pending one shows the node that it is nominated for here: what its status says lags
        behind, and a pod that was nominated a moment ago must not preempt once more elsewhere.
        """
        pod = self._watched.pods.get(namespace, name)
        if pod is None or pod.spec.node_name:
            return pod
        nominated = self._nominator.node_of(pod.metadata.uid) or ""
        if nominated == pod.status.nominated_node_name:
            return pod
        status = msgspec.structs.replace(pod.status, nominated_node_name=nominated)
        return msgspec.structs.replace(pod, status=status)

    def nominated_pods(self, node_name: str) -> Sequence[PodInfo]:
        """Return the pods that were nominated for a node when the attempt under way began."""
        return self._nominator.frozen.nominated_pods_for_node(node_name)

    def nominated_node_names(self) -> Sequence[str]:
        """Return the nodes that pods were nominated for when the attempt under way began."""
        return self._nominator.frozen.node_names()


class ProfileHandle:
    """The handle for the plugins of one profile: the shared services and those of the profile.

    Parameters
    ----------
    services
        The services that all profiles share.
    extenders
        The extenders of the profile; None if it has none.

    Notes
    -----
    ``what_if`` is available once all plugins of the profile are created, while the profile exists.
    """

    def __init__(self, services: Services, extenders: ExtenderChain | None = None) -> None:
        self.namespaces = services.namespaces
        self.workloads = services.workloads
        self.disruption_budgets = services.disruption_budgets
        self.pod_groups = services.pod_groups
        self.storage = services.storage
        self.devices = services.devices
        self.storage_writer = services.storage_writer
        self.claim_writer = services.claim_writer
        self.device_reports = services.device_reports
        self.node_metrics = services.node_metrics
        self.cached_node = services.cached_node
        self.live_pod = services.live_pod
        self.live_node = services.live_node
        self.nominated_pods = services.nominated_pods
        self.nominated_node_names = services.nominated_node_names
        self.waiting_pod = services.waiting_pod
        self.waiting_pods = services.waiting_pods
        self.activate_pods = services.activate_pods
        self.bind_pod = services.bind_pod
        self.preemption: Preemption = services.preemption
        if extenders is not None:
            self.preemption = _AskingPreemption(services.preemption, extenders)
        self._what_if: ref[WhatIf] | None = None

    def lend_filters(self, what_if: WhatIf) -> None:
        """Take over the filters of the profile, which keeps them: its plugins have this handle."""
        self._what_if = ref(what_if)

    @property
    def what_if(self) -> WhatIf:
        """The filters of the profile.

        Raises
        ------
        AttributeError
            Before the plugins are made, and when the profile is gone.
        """
        found = None if self._what_if is None else self._what_if()
        if found is None:
            raise AttributeError("the filters of a profile are there while the profile is")
        return found


class _AskingPreemption:
    """The shared preemption service with the extenders of one profile."""

    asks_extenders = True

    def __init__(self, shared: Preemption, extenders: ExtenderChain) -> None:
        self.is_running = shared.is_running
        self.leaving = shared.leaving
        self.start = shared.start
        self._extenders = extenders

    def ask_extenders(
        self, info: PodInfo, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        """Let the extenders narrow the candidates."""
        return self._extenders.preempt(info, candidates, nodes)
