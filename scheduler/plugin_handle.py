"""What plugins are lent: see :class:`plugins.framework.handle.Handle`.

Plugins are made before the queue, because the queue asks them, and what carries preemptions out
needs the queue. So a handle is made in two steps: :class:`PluginHandle` with what is there
already, and :meth:`PluginHandle.start` with the rest. What differs between profiles is laid over
it by a :class:`ProfileHandle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import ref

import msgspec

from cache.device_classes import DeviceClasses
from plugins.framework.node_metrics import NoMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.disruption_budgets import DisruptionBudgets
    from cache.namespaces import Namespaces
    from cache.node_info import NodeInfo
    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from cache.storage import Storage
    from cache.workloads import Workloads
    from plugins.framework.handle import Handle, Preemption, StorageWriter, WhatIf
    from plugins.framework.node_metrics import NodeMetrics
    from plugins.framework.status import Status
    from scheduler.extenders import ExtenderChain
    from scheduler.queueing import SchedulingQueue
    from scheduler.queueing.nominator import Nominator
    from scheduler.waiting_pods import WaitingPods


def _unknown_node(name: str) -> NodeInfo | None:
    """Return None: where no cache is lent, hints answer without regard to it."""
    return None


class PodBinder(Protocol):
    """Binds pods."""

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod through the API."""
        ...


class PluginHandle:
    """The services for plugins, put together from those who give them.

    Parameters
    ----------
    binder
        Binds pods, on the I/O loop.
    namespaces, workloads, disruption_budgets, storage
        What the watches tell of them.
    storage_writer
        Writes volumes and claims, on the I/O loop.
    waiting_pods
        The pods that Permit plugins hold.
    live_node
        Gives the latest version of a node that the watch brought. Any thread.
    cached_node
        Gives a copy of a node as the cache has it. Any thread.

    Notes
    -----
    *Concurrency*: :meth:`start` before the first pod; afterwards as each service says.
    """

    preemption: Preemption
    """Carries preemptions out; from :meth:`start` on."""

    def __init__(
        self,
        *,
        binder: PodBinder,
        namespaces: Namespaces,
        workloads: Workloads,
        disruption_budgets: DisruptionBudgets,
        storage: Storage,
        storage_writer: StorageWriter,
        waiting_pods: WaitingPods,
        live_node: Callable[[str], Node | None],
        cached_node: Callable[[str], NodeInfo | None] = _unknown_node,
    ) -> None:
        self._binder = binder
        self.namespaces = namespaces
        self.workloads = workloads
        self.disruption_budgets = disruption_budgets
        self.storage = storage
        self.device_classes = DeviceClasses()
        """Filled by whoever watches them, where the cluster has any."""
        self.storage_writer = storage_writer
        self.waiting_pod = waiting_pods.get
        self.waiting_pods = waiting_pods.list
        self.live_node = live_node
        self.cached_node = cached_node
        self.node_metrics: NodeMetrics = NoMetrics()
        """Who measures nodes, once there is somebody; any thread may put one in."""
        self._nominator: Nominator | None = None
        self._live_pod: Callable[[str, str], Pod | None] = _no_pod

    def start(
        self,
        *,
        preemption: Preemption,
        queue: SchedulingQueue,
        live_pod: Callable[[str, str], Pod | None],
    ) -> None:
        """Take over the services that could not be made before the plugins."""
        self.preemption = preemption
        self.activate_pods = queue.activate
        self._nominator = queue.nominator
        self._live_pod = live_pod

    @property
    def what_if(self) -> WhatIf:
        """Nothing that all profiles share: see :class:`ProfileHandle`.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError("the filters of a profile are there once its plugins are made")

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the latest version of a pod that the watch brought, or None.

        A pending one shows the node that it is nominated for here: what its status says lags
        behind, and a pod that was nominated a moment ago must not preempt once more elsewhere.
        """
        pod = self._live_pod(namespace, name)
        if pod is None or pod.spec.node_name or self._nominator is None:
            return pod
        nominated = self._nominator.node_of(pod.metadata.uid) or ""
        if nominated == pod.status.nominated_node_name:
            return pod
        status = msgspec.structs.replace(pod.status, nominated_node_name=nominated)
        return msgspec.structs.replace(pod, status=status)

    def nominated_pods(self, node_name: str) -> Sequence[PodInfo]:
        """Return the pods that are nominated for a node."""
        if self._nominator is None:
            return ()
        return self._nominator.nominated_pods_for_node(node_name)

    def nominated_node_names(self) -> Sequence[str]:
        """Return the nodes that pods are nominated for."""
        return () if self._nominator is None else self._nominator.node_names()

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod through the API; see :meth:`scheduler.binder.Binder.bind_pod`."""
        return await self._binder.bind_pod(info, node_name)


class ProfileHandle:
    """A handle as the plugins of one profile see it: everybody's services and their own.

    Parameters
    ----------
    extenders
        Those of the profile; None where there are none.

    Notes
    -----
    ``what_if`` is there once all plugins of the profile are made, for as long as the profile is.
    """

    def __init__(self, shared: Handle, extenders: ExtenderChain | None = None) -> None:
        self._shared = shared
        self._extenders = extenders
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

    @property
    def preemption(self) -> Preemption:
        """Carries preemptions out, and asks the profile's extenders before."""
        shared = self._shared.preemption
        if self._extenders is None:
            return shared
        return cast("Preemption", _AskingPreemption(shared, self._extenders))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shared, name)


class _AskingPreemption:
    """Everybody's preemption with the extenders of one profile."""

    asks_extenders = True

    def __init__(self, shared: Preemption, extenders: ExtenderChain) -> None:
        self._shared = shared
        self.ask_extenders = extenders.preempt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shared, name)


def _no_pod(namespace: str, name: str) -> Pod | None:
    return None
