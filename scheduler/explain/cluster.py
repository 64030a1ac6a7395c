"""API objects from a file, a pipe or lists, as the informers would have delivered them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cache.device_classes import DeviceClass, DeviceClasses
from cache.disruption_budgets import DisruptionBudgets
from cache.namespaces import Namespaces
from cache.objects import (
    Namespace,
    Node,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from cache.pod_info import PodInfo, is_terminal
from cache.resources import MalformedObjectError
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from cache.storage import Storage
from cache.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from cache.workloads import Workloads
from scheduler.client.codec import Decoder, identity_of
from scheduler.queueing.nominator import Nominator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_PODS: Final = Decoder(Pod)
_NODES: Final = Decoder(Node)
_NAMESPACES: Final = Decoder(Namespace)
_SERVICES: Final = Decoder(Service)
_REPLICATION_CONTROLLERS: Final = Decoder(ReplicationController)
_REPLICA_SETS: Final = Decoder(ReplicaSet)
_STATEFUL_SETS: Final = Decoder(StatefulSet)
_BUDGETS: Final = Decoder(PodDisruptionBudget)
_VOLUMES: Final = Decoder(PersistentVolume)
_CLAIMS: Final = Decoder(PersistentVolumeClaim)
_STORAGE_CLASSES: Final = Decoder(StorageClass)
_DEVICE_CLASSES: Final = Decoder(DeviceClass)
_CSI_NODES: Final = Decoder(CSINode)
_CSI_DRIVERS: Final = Decoder(CSIDriver)
_CAPACITIES: Final = Decoder(CSIStorageCapacity)
_ATTACHMENTS: Final = Decoder(VolumeAttachment)


class ClusterObjectError(ValueError):
    """An object that cannot be read; the message names it and the path of the bad value."""


class _Kind(msgspec.Struct, frozen=True):
    kind: msgspec.Raw = msgspec.Raw(b'""')


_KIND: Final = msgspec.json.Decoder(_Kind)
_TEXT: Final = msgspec.json.Decoder(str)


def kind_of(raw: msgspec.Raw) -> str:
    """Return an object's ``kind``, the empty string where it has none or is no object."""
    try:
        return _TEXT.decode(_KIND.decode(raw).kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


class Cluster:
    """A cache filled with the objects of a cluster.

    Attributes
    ----------
    cache
        Nodes, and the pods that use them.
    namespaces, workloads, storage, device_classes, disruption_budgets
        What else plugins look at.
    nominator
        Waiting pods that have a node in view.
    nodes
        Every node by name.
    pods
        Every pod by ``namespace/name``, those that wait or have ended included.
    passed_over
        How many objects were of kinds that no plugin reads.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(self) -> None:
        self.cache = SchedulerCache()
        self.namespaces = Namespaces()
        self.workloads = Workloads()
        self.storage = Storage()
        self.device_classes = DeviceClasses()
        self.disruption_budgets = DisruptionBudgets()
        self.nominator = Nominator(lambda uid: True)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.passed_over = 0
        self._takers: Mapping[str, Callable[[msgspec.Raw], None]] = {
            "Pod": lambda raw: self.add_pod(_PODS.decode(raw)),
            "Node": lambda raw: self.add_node(_NODES.decode(raw)),
            "Namespace": lambda raw: self.namespaces.changed(None, _NAMESPACES.decode(raw)),
            "Service": lambda raw: self.workloads.service_changed(None, _SERVICES.decode(raw)),
            "ReplicationController": lambda raw: self.workloads.replication_controller_changed(
                None, _REPLICATION_CONTROLLERS.decode(raw)
            ),
            "ReplicaSet": lambda raw: self.workloads.replica_set_changed(
                None, _REPLICA_SETS.decode(raw)
            ),
            "StatefulSet": lambda raw: self.workloads.stateful_set_changed(
                None, _STATEFUL_SETS.decode(raw)
            ),
            "PodDisruptionBudget": lambda raw: self.disruption_budgets.budget_changed(
                None, _BUDGETS.decode(raw)
            ),
            "PersistentVolume": lambda raw: self.storage.volume_changed(None, _VOLUMES.decode(raw)),
            "PersistentVolumeClaim": lambda raw: self.storage.claim_changed(
                None, _CLAIMS.decode(raw)
            ),
            "StorageClass": lambda raw: self.storage.storage_class_changed(
                None, _STORAGE_CLASSES.decode(raw)
            ),
            "CSINode": lambda raw: self.storage.csi_node_changed(None, _CSI_NODES.decode(raw)),
            "CSIDriver": lambda raw: self.storage.csi_driver_changed(
                None, _CSI_DRIVERS.decode(raw)
            ),
            "CSIStorageCapacity": lambda raw: self.storage.capacity_changed(
                None, _CAPACITIES.decode(raw)
            ),
            "DeviceClass": lambda raw: self.device_classes.changed(
                None, _DEVICE_CLASSES.decode(raw)
            ),
            "VolumeAttachment": lambda raw: self.storage.attachment_changed(
                None, _ATTACHMENTS.decode(raw)
            ),
        }

    def add(self, raw: msgspec.Raw, kind: str = "") -> None:
        """Take in one object as JSON; ``kind`` is what it is when it does not say so itself.

        Raises
        ------
        ClusterObjectError
            When it cannot be read; the cluster is then as if it were not there.
        """
        kind = kind_of(raw) or kind
        take = self._takers.get(kind)
        if take is None:
            self.passed_over += 1
            return
        try:
            take(raw)
        except MalformedObjectError as error:
            raise ClusterObjectError(_sentence(kind, raw, error)) from error

    def add_node(self, node: Node) -> None:
        """Take in a node.

        Raises
        ------
        MalformedObjectError
            When a quantity cannot be read.
        """
        self.cache.add_node(node)
        self.nodes[node.metadata.name] = node

    def add_pod(self, pod: Pod) -> None:
        """Take in a pod.

        One that runs, or is about to, uses its node; one that waits may have a node in view.

        Raises
        ------
        MalformedObjectError
            When a quantity cannot be read.
        """
        if pod.spec.node_name and not is_terminal(pod):
            self.cache.add_pod(PodInfo(pod))
        elif pod.status.nominated_node_name and not is_terminal(pod):
            self.nominator.add(PodInfo(pod), pod.status.nominated_node_name)
        self.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod

    def add_all(self, raws: Iterable[tuple[msgspec.Raw, str]]) -> list[ClusterObjectError]:
        """Take in objects and their presumed kinds; return what could not be read."""
        unreadable = []
        for raw, kind in raws:
            try:
                self.add(raw, kind)
            except ClusterObjectError as error:
                unreadable.append(error)
        return unreadable

    def snapshot(self) -> Snapshot:
        """Return what a cycle would see now."""
        snapshot = Snapshot()
        self.cache.update_snapshot(snapshot)
        return snapshot


def read_pod(raw: msgspec.Raw) -> PodInfo:
    """Decode the pod that is asked about.

    Raises
    ------
    ClusterObjectError
        When it cannot be read.
    """
    try:
        return PodInfo(_PODS.decode(raw))
    except MalformedObjectError as error:
        raise ClusterObjectError(_sentence("Pod", raw, error)) from error


def _sentence(kind: str, raw: msgspec.Raw, error: MalformedObjectError) -> str:
    text = str(error)
    name = str(identity_of(bytes(raw)))
    return f"{kind} {text}" if text.startswith(name) else f"{kind} {name}: {text}"
