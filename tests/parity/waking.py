"""What berth makes of a change: its events, and the plugins whose hints would wake a pod."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cache.objects import Node, Pod
from cache.pod_info import PodInfo
from cache.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from plugins.framework.cluster_events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    Action,
    ClusterEvent,
    Hint,
    Resource,
    update_events,
)
from plugins.framework.queueing_hints import GroupHint
from scheduler.client.codec import Decoder
from scheduler.config import default_config, effective_profiles
from scheduler.event_handlers.pods_and_nodes import node_update, pod_update
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import offline_framework
from scheduler.queueing.pod_changes import pod_changes
from scheduler.queueing.requeue_check import with_node_taints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plugins.framework.cluster_events import EventRegistration
    from tests.parity.vocabulary import Json

_PODS = Decoder(Pod)
_DECODERS: dict[str, tuple[Resource, Decoder[Any]]] = {
    "PersistentVolume": (Resource.PERSISTENT_VOLUME, Decoder(PersistentVolume)),
    "PersistentVolumeClaim": (Resource.PERSISTENT_VOLUME_CLAIM, Decoder(PersistentVolumeClaim)),
    "StorageClass": (Resource.STORAGE_CLASS, Decoder(StorageClass)),
    "CSINode": (Resource.CSI_NODE, Decoder(CSINode)),
    "CSIDriver": (Resource.CSI_DRIVER, Decoder(CSIDriver)),
    "CSIStorageCapacity": (Resource.CSI_STORAGE_CAPACITY, Decoder(CSIStorageCapacity)),
    "VolumeAttachment": (Resource.VOLUME_ATTACHMENT, Decoder(VolumeAttachment)),
    "Node": (Resource.NODE, Decoder(Node)),
    "Pod": (Resource.ASSIGNED_POD, _PODS),
}

BESIDES = " besides"

_HARMLESS = frozenset({"queueSort", "preScore", "score", "bind", "postBind"})
"""Who serves only these points never rejects a pod."""


class Berth:
    """The default profile's plugins, in an empty cluster."""

    def __init__(self) -> None:
        framework = offline_framework(effective_profiles(default_config()), Cluster())
        refusing = {
            plugin.name
            for point, plugins in framework.points.items()
            for plugin in plugins
            if point not in _HARMLESS
        }
        self.registrations: dict[str, Sequence[EventRegistration]] = {
            name: with_node_taints([each for each in wanted if not _is_our_own(each)])
            for name, wanted in framework.event_registrations().items()
            if name in refusing
        }
        self._besides = {
            name: [each for each in wanted if _is_our_own(each)]
            for name, wanted in framework.event_registrations().items()
        }

    def answer(self, row: Json) -> dict[str, dict[str, bool]]:
        """Return, for each event by its label, who registered it and whether it wakes the pod.

        What only berth has registered stands apart, under the plugin's name and ``BESIDES``.
        """
        there = row["new"] or row["old"]
        resource, decoder = _DECODERS[there["kind"]]
        pod = _PODS.decode(_raw(row["pod"]))
        old, new = (
            None if row[k] is None else decoder.decode(_raw(row[k])) for k in ("old", "new")
        )
        return {
            event.label: self._ask(event, pod, old, new) for event in events(resource, old, new)
        }

    def _ask(self, event: ClusterEvent, pod: Pod, old: Any, new: Any) -> dict[str, bool]:
        said: dict[str, bool] = {}
        for plugin, wanted in self.registrations.items():
            for each in wanted:
                if each.event.matches(event):
                    wakes = each.hint is None or each.hint(pod, old, new) is Hint.QUEUE
                    said[plugin] = said.get(plugin, False) or wakes
        for plugin, wanted in self._besides.items():
            for each in wanted:
                if each.event.matches(event) and each.hint is not None and not said.get(plugin):
                    said[plugin + BESIDES] = each.hint(pod, old, new) is Hint.QUEUE
        return said


def _is_our_own(registration: EventRegistration) -> bool:
    """Tell whether kube-scheduler has no such hint: docs/differences.md says why berth does."""
    return isinstance(registration.hint, GroupHint) and registration.hint.is_addition


def events(resource: Resource, old: Any, new: Any) -> Sequence[ClusterEvent]:
    """Return what the event handlers make of a change."""
    if resource is Resource.NODE:
        if old is None or new is None:
            return (NODE_ADD if old is None else NODE_DELETE,)
        return update_events(resource, node_update(old, new))
    if resource is Resource.ASSIGNED_POD:
        if old is None or new is None:
            return (ASSIGNED_POD_ADD if old is None else ASSIGNED_POD_DELETE,)
        if new.spec.node_name:
            return update_events(resource, pod_update(old, PodInfo(new)))
        changes = pod_changes(PodInfo(old), PodInfo(new))
        return update_events(Resource.UNSCHEDULED_POD, changes)
    if old is not None and new is not None:
        return (ClusterEvent(resource, Action.UPDATE, f"{resource.value}Update"),)
    if old is None:
        return (ClusterEvent(resource, Action.ADD, f"{resource.value}Add"),)
    return (ClusterEvent(resource, Action.DELETE, f"{resource.value}Delete"),)


def _raw(value: Json) -> bytes:
    return json.dumps(value).encode()
