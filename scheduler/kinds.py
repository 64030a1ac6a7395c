"""Define the kinds that are read from the API server, with the table of those that are watched.

All differences between kinds are defined here, once: how objects are decoded, where they go, which
cluster event a change means, and whether berth can do without the kind. The watches, their
metrics and the search for lost events, the permissions checked at the start, the role in the
chart, and what ``berth explain`` lists all follow :data:`WATCHED`.

*Concurrency*: immutable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from cache.device_amounts import claim_amounts, slice_amounts
from cache.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from cache.objects import Namespace, Node, Pod
from cache.pod_group_objects import (
    PodGroup,
    UnreadablePodGroup,
    UnreadableXPodGroup,
    XPodGroup,
)
from cache.quantity import exact_value
from cache.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from cache.value import Value
from cache.workload_objects import (
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from plugins.framework.cluster_events import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cache.known import Known
    from cache.objects import PodMeta, Quantity

T = TypeVar("T", bound=msgspec.Struct)


class ResourceKind(Value, Generic[T], frozen=True):
    """A kind of object that is listed and watched.

    Attributes
    ----------
    name
        The resource's name in metrics and logs: ``pods``. Where two kinds share it, with the API
        group as kubectl takes it: ``podgroups.scheduling.k8s.io``.
    path
        Of the list over all namespaces: ``/api/v1/pods``.
    struct
        What its objects are decoded to.
    unreadable
        Returns what stands for an object that cannot be decoded, of its metadata and what is wrong
        with it. None where the last version that could be read stays instead.
    label_selector
        Which objects the API server sends, as a query's ``labelSelector``; empty for all.
    """

    name: str
    path: str
    struct: type[T]
    unreadable: Callable[[PodMeta, str], T] | None = None
    label_selector: str = ""

    @property
    def resource(self) -> str:
        """The resource's name in paths and permissions: ``pods``."""
        return self.path.rpartition("/")[2]

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        parts = self.path.split("/")
        return "" if parts[1] == "api" else parts[2]

    @property
    def group_version(self) -> str:
        """The API group with its version: ``apps/v1``, or ``v1`` for the core group."""
        return "/".join(self.path.split("/")[2:-1])


def _no_amounts(_: object) -> Iterable[Quantity | None]:
    return ()


class WatchedKind(ResourceKind[T], frozen=True, kw_only=True):
    """A kind that is watched whatever the profiles are: a row of the table.

    Attributes
    ----------
    goes_to
        Returns the method that takes over a change, called with the old and the new object, of
        which one may be None. None for pods and nodes: what a change of theirs means is not the
        same for each, and :mod:`scheduler.event_handlers.pods_and_nodes` finds out.
    event
        What plugins register for to hear of changes; None where a change makes no pod schedulable.
    announced_by
        Returns the method that subscribes to changes of what is known, where our own writes change
        that as well: they are events before the watch brings them. None where each change that the
        watch brings is one event.
    amounts
        Returns the quantities of an object that scheduling compares. An object with one that
        cannot be read is not taken over.
    is_assumed
        Whether berth assumes its own writes of such objects, so that only a newer version is taken
        over: ``goes_to`` has to hear of a restored etcd.
    without
        What follows where the kind is not watched. Empty for a kind that berth cannot do without;
        any other is watched where the cluster serves it and berth has the rights.
    writes
        Verbs and resources besides list and watch, without which an optional kind is not watched:
        it is of no use then.
    optional_writes
        Verbs and resources that are used where we have the right.
    versions
        The versions of the API that can be read, best first, beginning with that of ``path``.
        Empty where that is the only one.
    kind_name
        What manifests call it, where the struct has another name.
    can_appear
        Whether it is watched from the moment on in which the cluster serves it, and as long as it
        does. Only for a kind of which a part may be known without harm: a claim that is unknown
        would be a device that is allocated twice.
    """

    goes_to: Callable[[Known], Callable[..., object]] | None
    event: Resource | None = None
    announced_by: Callable[[Known], Callable[[Callable[[T | None, T | None], object]], object]] | (
        None
    ) = None
    amounts: Callable[[T], Iterable[Quantity | None]] = _no_amounts
    is_assumed: bool = False
    without: str = ""
    writes: tuple[tuple[str, str], ...] = ()
    optional_writes: tuple[tuple[str, str], ...] = ()
    versions: tuple[str, ...] = ()
    kind_name: str = ""
    can_appear: bool = False

    @property
    def kind(self) -> str:
        """What manifests call it: ``Pod``."""
        return self.kind_name or self.struct.__name__

    def in_versions(self) -> tuple[WatchedKind[T], ...]:
        """Return the kind in each version of the API that can be read, best first."""
        if not self.versions:
            return (self,)
        prefix = f"/apis/{self.group}"
        return tuple(
            replace(self, path=f"{prefix}/{version}/{self.resource}") for version in self.versions
        )

    @property
    def is_optional(self) -> bool:
        """Whether berth can do without it."""
        return bool(self.without)

    def check_amounts(self, changed: T) -> None:
        """Check the quantities of an object that scheduling compares.

        Raises
        ------
        QuantityError
            When one of them cannot be read.
        """
        for amount in self.amounts(changed):
            if amount is not None:
                exact_value(amount)

    @property
    def rights(self) -> tuple[tuple[str, str], ...]:
        """Verbs and resources that berth needs for it."""
        return ("list", self.resource), ("watch", self.resource), *self.writes


# --- nodes, pods, and what decisions depend on besides ----------------------------------------

NAMESPACES: Final = WatchedKind(
    "namespaces",
    "/api/v1/namespaces",
    Namespace,
    goes_to=lambda known: known.namespaces.changed,
)
NODES: Final = WatchedKind(
    "nodes",
    "/api/v1/nodes",
    Node,
    goes_to=None,
    event=Resource.NODE,
)
PODS: Final = WatchedKind(
    "pods",
    "/api/v1/pods",
    Pod,
    goes_to=None,
    event=Resource.POD,
)
POD_DISRUPTION_BUDGETS: Final = WatchedKind(
    "poddisruptionbudgets",
    "/apis/policy/v1/poddisruptionbudgets",
    PodDisruptionBudget,
    goes_to=lambda known: known.disruption_budgets.budget_changed,
)
# --- what pods spread with by default ---------------------------------------------------------

SERVICES: Final = WatchedKind(
    "services",
    "/api/v1/services",
    Service,
    goes_to=lambda known: known.workloads.service_changed,
)
REPLICATION_CONTROLLERS: Final = WatchedKind(
    "replicationcontrollers",
    "/api/v1/replicationcontrollers",
    ReplicationController,
    goes_to=lambda known: known.workloads.controller_changed,
)
REPLICA_SETS: Final = WatchedKind(
    "replicasets",
    "/apis/apps/v1/replicasets",
    ReplicaSet,
    goes_to=lambda known: known.workloads.controller_changed,
)
STATEFUL_SETS: Final = WatchedKind(
    "statefulsets",
    "/apis/apps/v1/statefulsets",
    StatefulSet,
    goes_to=lambda known: known.workloads.controller_changed,
)

# --- where pods with volumes can go -----------------------------------------------------------

PERSISTENT_VOLUMES: Final = WatchedKind(
    "persistentvolumes",
    "/api/v1/persistentvolumes",
    PersistentVolume,
    goes_to=lambda known: known.storage.volumes.changed,
    event=Resource.PERSISTENT_VOLUME,
    amounts=lambda volume: (volume.spec.capacity.get("storage"),),
    is_assumed=True,
)
PERSISTENT_VOLUME_CLAIMS: Final = WatchedKind(
    "persistentvolumeclaims",
    "/api/v1/persistentvolumeclaims",
    PersistentVolumeClaim,
    goes_to=lambda known: known.storage.claims.changed,
    event=Resource.PERSISTENT_VOLUME_CLAIM,
    amounts=lambda claim: (claim.spec.resources.requests.get("storage"),),
    is_assumed=True,
)
STORAGE_CLASSES: Final = WatchedKind(
    "storageclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
    StorageClass,
    goes_to=lambda known: known.storage.classes.changed,
    event=Resource.STORAGE_CLASS,
)
CSI_NODES: Final = WatchedKind(
    "csinodes",
    "/apis/storage.k8s.io/v1/csinodes",
    CSINode,
    goes_to=lambda known: known.storage.csi_nodes.changed,
    event=Resource.CSI_NODE,
)
CSI_DRIVERS: Final = WatchedKind(
    "csidrivers",
    "/apis/storage.k8s.io/v1/csidrivers",
    CSIDriver,
    goes_to=lambda known: known.storage.csi_drivers.changed,
    event=Resource.CSI_DRIVER,
)
CSI_STORAGE_CAPACITIES: Final = WatchedKind(
    "csistoragecapacities",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    CSIStorageCapacity,
    goes_to=lambda known: known.storage.capacities.changed,
    event=Resource.CSI_STORAGE_CAPACITY,
    amounts=lambda capacity: (capacity.capacity, capacity.maximum_volume_size),
)
VOLUME_ATTACHMENTS: Final = WatchedKind(
    "volumeattachments",
    "/apis/storage.k8s.io/v1/volumeattachments",
    VolumeAttachment,
    goes_to=lambda known: known.storage.attachment_changed,
    event=Resource.VOLUME_ATTACHMENT,
)

# --- the devices that pods can use ------------------------------------------------------------

# All of them are optional: dynamic resource allocation can be switched off in the cluster, and
# roles that were written for an earlier version lack the rights.
DEVICE_CLASSES: Final = WatchedKind(
    "deviceclasses",
    "/apis/resource.k8s.io/v1/deviceclasses",
    DeviceClass,
    goes_to=lambda known: known.devices.classes.changed,
    event=Resource.DEVICE_CLASS,
    without="devices count as ordinary extended resources",
)
RESOURCE_SLICES: Final = WatchedKind(
    "resourceslices",
    "/apis/resource.k8s.io/v1/resourceslices",
    ResourceSlice,
    goes_to=lambda known: known.devices.slices.changed,
    event=Resource.RESOURCE_SLICE,
    amounts=slice_amounts,
    without="no devices can be allocated",
)
RESOURCE_CLAIMS: Final = WatchedKind(
    "resourceclaims",
    "/apis/resource.k8s.io/v1/resourceclaims",
    ResourceClaim,
    goes_to=lambda known: known.devices.claims.changed,
    event=Resource.RESOURCE_CLAIM,
    announced_by=lambda known: known.devices.claims.subscribe,
    amounts=claim_amounts,
    is_assumed=True,
    without="pods with resource claims cannot be scheduled",
    writes=(
        ("get", "resourceclaims"),
        ("patch", "resourceclaims"),
        ("create", "resourceclaims"),
        ("delete", "resourceclaims"),
        ("patch", "resourceclaims/status"),
        # No resource of the API: who may write allocations and reservations.
        ("patch", "resourceclaims/binding"),
    ),
)

# --- the groups of pods that are placed together ----------------------------------------------

# Neither has a cluster event: the queue itself subscribes to what is known of groups, and plugins
# see no groups that they could wait for.
POD_GROUPS: Final = WatchedKind(
    "podgroups.scheduling.k8s.io",
    "/apis/scheduling.k8s.io/v1beta1/podgroups",
    PodGroup,
    unreadable=lambda metadata, problem: UnreadablePodGroup(metadata, problem=problem),
    goes_to=lambda known: known.pod_groups.pod_group_changed,
    without="pods with spec.schedulingGroup wait",
    optional_writes=(("patch", "podgroups/status"),),
    versions=("v1beta1", "v1alpha3", "v1alpha2"),
    can_appear=True,
)
X_POD_GROUPS: Final = WatchedKind(
    "podgroups.scheduling.x-k8s.io",
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    XPodGroup,
    unreadable=lambda metadata, problem: UnreadableXPodGroup(metadata, problem=problem),
    goes_to=lambda known: known.pod_groups.x_pod_group_changed,
    without="pods with the label scheduling.x-k8s.io/pod-group wait",
    optional_writes=(("patch", "podgroups/status"),),
    kind_name="PodGroup",
    can_appear=True,
)

WATCHED: Final[tuple[WatchedKind[Any], ...]] = (
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    POD_DISRUPTION_BUDGETS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    RESOURCE_CLAIMS,
    POD_GROUPS,
    X_POD_GROUPS,
)
"""All kinds that are watched, in the order in which ``berth explain`` lists them: nodes before the
pods on them."""
