"""The services that the scheduler provides to its plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from cache.columns import NodesView
    from cache.device_objects import AllocationResult, ResourceClaim
    from cache.devices import Devices
    from cache.disruption_budgets import DisruptionBudgets
    from cache.namespaces import Namespaces
    from cache.node_info import NodeInfo
    from cache.objects import Node, Pod, PodExtendedResourceClaimStatus
    from cache.pod_groups import PodGroups
    from cache.pod_info import PodInfo
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
    from cache.workloads import Workloads
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.node_metrics import NodeMetrics
    from plugins.framework.results import BoolArray
    from plugins.framework.status import Status
    from plugins.framework.victims import Victims


class LoneVerdicts(Protocol):
    """The verdicts of the filters that judge each node alone, for the nodes of a view."""

    @property
    def feasible(self) -> BoolArray | None:
        """Bool (n_nodes,), or None when every node passes."""

    def rejections(self) -> Iterable[tuple[Status, int]]:
        """Return each distinct rejection with the number of nodes that got it first."""
        ...


class WhatIf(Protocol):
    """Runs the filters of the plugin's own profile on nodes that may not exist in this form.

    Scheduling thread only.
    """

    def settle(
        self, state: CycleState, info: PodInfo, nodes: NodesView
    ) -> tuple[CycleState, BoolArray] | None:
        """Leave the filters that judge nodes alone as the only ones that have a say.

        The others may be left out on a node that passes them as it is, if they are
        :meth:`plugins.framework.interfaces.FilterPlugin.is_eased_for` the pod.

        Parameters
        ----------
        nodes
            Nodes as they are.

        Returns
        -------
        A state in which the others are skipped, and bool (n_nodes,): the nodes on which that
        changes no verdict, whoever leaves. None when the pod's cycle has a filter that cannot be
        left out, or one that fails. Nominated pods are ignored.
        """
        ...

    def filter_alone(self, state: CycleState, info: PodInfo, nodes: NodesView) -> LoneVerdicts:
        """Run the filters that judge each node alone on all nodes of a view.

        Those are :attr:`plugins.framework.interfaces.FilterPlugin.judges_nodes_alone`. Nominated
        pods are not looked at.

        Raises
        ------
        Exception
            When a filter fails.
        """
        ...

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge the node with the pods that are nominated for it, and then without them."""
        ...

    def add_pod(
        self, state: CycleState, info: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Notify the PreFilters of a pod that was added to ``node_info``."""
        ...

    def remove_pod(
        self, state: CycleState, info: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Notify the PreFilters of a pod that was removed from ``node_info``."""
        ...


class Preemption(Protocol):
    """Carries preemptions out. Scheduling thread, but for :meth:`is_running`: any."""

    def leaving(self) -> Collection[str]:
        """Return the UIDs of chosen victims that no watch has shown to be leaving yet."""
        ...

    def is_running(self, uid: str) -> bool:
        """Return whether victims are being evicted for the pod with this UID."""
        ...

    def start(self, info: PodInfo, node_name: str, victims: Victims, plugin: str) -> Status:
        """Begin to evict victims for a pod; does not wait. ``plugin`` is named in the reason."""
        ...

    @property
    def asks_extenders(self) -> bool:
        """Whether :meth:`ask_extenders` may answer anything but what it was given."""

    def ask_extenders(
        self, info: PodInfo, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        """Let the extenders that preempt narrow the candidates, by node name.

        Raises
        ------
        Exception
            When an extender that is not ignorable fails; the message names it.
        """
        ...


class StorageWriter(Protocol):
    """Writes volumes and claims through the API. I/O loop; each raises what the client raises."""

    async def claim_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the volume's ``claimRef`` and annotations over the version it was read at."""
        ...

    async def annotate_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the claim's annotations over the version it was read at."""
        ...


class ClaimWriter(Protocol):
    """Writes claims of devices through the API; what a write returns is in the claim cache then.

    I/O loop, but for the first two methods and those that end in ``_soon``: these never wait, never
    raise, and may be called on any thread. The others raise when a write fails.
    """

    def now_s(self) -> float:
        """Return the time in seconds since the epoch, by the clock that stamps allocations."""
        ...

    def new_uid(self) -> str:
        """Return a random UID."""
        ...

    async def reserve(
        self,
        claim: ResourceClaim,
        pod: Pod,
        allocation: AllocationResult | None,
        check: Callable[[], object] = lambda: None,
    ) -> ResourceClaim:
        """Reserve a claim for a pod, after allocating it if there is an allocation to write.

        ``check`` is called right before an allocation is written, and may raise.
        """
        ...

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a special claim under a new name."""
        ...

    async def show_special_claim(self, pod: Pod, shown: PodExtendedResourceClaimStatus) -> None:
        """Write into the status of a pod which claim provides its extended resources."""
        ...

    async def deallocate(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Deallocate a claim that no other pod uses."""
        ...

    async def settled(self, uid: str) -> None:
        """Wait until nothing is left to be written soon of the claim with a UID."""
        ...

    def only_waits(self, pod_uid: str) -> None:
        """Let other bindings go ahead of a pod's that waits for more than its own requests."""
        ...

    def release_soon(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Remove the reservation of a pod; the allocation stays."""
        ...

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Deallocate a claim that nobody else changed meanwhile."""
        ...

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Delete a special claim."""
        ...


class DeviceReports(Protocol):
    """Reports what happens to devices while their pods are bound. I/O loop; never raises."""

    def waiting(self, pod: Pod, node_name: str) -> None:
        """Report that a pod waits for the binding conditions of its devices."""
        ...

    def waited(
        self, pod: Pod, claims: Sequence[ResourceClaim], result: str, seconds: float
    ) -> None:
        """Report how the wait ended: ``success``, ``failure``, ``timeout`` or ``error``."""
        ...

    def collision(self, driver: str) -> None:
        """Report that another scheduler had allocated a device of a driver as well."""
        ...


class WaitingPod(Protocol):
    """A pod that Permit plugins hold between its decision and its binding. Any thread."""

    @property
    def info(self) -> PodInfo:
        """The pod."""

    @property
    def node_name(self) -> str:
        """The node that was chosen for the pod."""

    def pending_plugins(self) -> frozenset[str]:
        """Return the plugins that still hold the pod."""
        ...

    def allow(self, plugin: str) -> None:
        """Release one plugin's hold; the pod continues once no plugin holds it."""
        ...

    def reject(self, plugin: str, reason: str) -> bool:
        """Reject the pod as unschedulable; return False when its outcome was already decided."""
        ...


class Services(Protocol):
    """Services for the plugins of all profiles."""

    @property
    def namespaces(self) -> Namespaces:
        """The labels of namespaces."""

    @property
    def workloads(self) -> Workloads:
        """Services and the controllers of pods."""

    @property
    def storage(self) -> Storage:
        """Volumes, claims, classes and drivers."""

    @property
    def devices(self) -> Devices:
        """Claims, slices and classes of devices, and the devices in use."""

    @property
    def storage_writer(self) -> StorageWriter:
        """The writer of volumes and claims."""

    @property
    def claim_writer(self) -> ClaimWriter:
        """The writer of claims of devices."""

    @property
    def device_reports(self) -> DeviceReports:
        """The reports about devices."""

    @property
    def disruption_budgets(self) -> DisruptionBudgets:
        """The PodDisruptionBudgets."""

    @property
    def pod_groups(self) -> PodGroups:
        """The groups of pods."""

    @property
    def node_metrics(self) -> NodeMetrics:
        """The measured metrics of nodes."""

    @property
    def preemption(self) -> Preemption:
        """The service that carries preemptions out."""

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the latest version of a pod that the watch brought, or None. Any thread."""
        ...

    def live_node(self, name: str) -> Node | None:
        """Return the latest version of a node that the watch brought, or None. Any thread."""
        ...

    def cached_node(self, name: str) -> NodeInfo | None:
        """Return a copy of a node with the pods that are there or assumed; None if unknown.

        Later than the snapshot of a cycle: for hints. Any thread.
        """
        ...

    def nominated_pods(self, node_name: str) -> Sequence[PodInfo]:
        """Return the pods that are nominated for a node. Any thread."""
        ...

    def nominated_node_names(self) -> Sequence[str]:
        """Return the nodes that pods are nominated for. Any thread."""
        ...

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return the pod with this UID if Permit plugins hold it, else None. Any thread."""
        ...

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """Return all pods that Permit plugins hold. Any thread."""
        ...

    def activate_pods(self, uids: Iterable[str]) -> None:
        """Move pods to the active queue without backoff, unless a gate keeps them out. Any thread.

        One that is being tried is tried again if it is refused; unknown ones are passed over. Not
        to be called from PreEnqueue or a hint.
        """
        ...

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod through the API, carrying its UID, and settle an unclear answer by a GET.

        Returns Success once the API server holds the binding; never raises for an answer of
        the API. Runs on the I/O loop.
        """
        ...


class Handle(Services, Protocol):
    """Services for plugins; given to each plugin's constructor.

    A plugin uses only what it names here. A constructor keeps its handle and does not use it: the
    filters of the profile are there once all of its plugins are.
    """

    @property
    def what_if(self) -> WhatIf:
        """The filters of this plugin's profile."""
