"""Asks VolumeBinding about a pod and a few nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cache.columns import NodesView
from cache.pod_info import PodInfo
from plugins.framework.cycle_state import CycleState
from plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.storage import Storage
    from plugins.framework.status import Status

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(frozen=True)
class Assumed:
    """What was assumed for a pod: the volume of each claim, and the node of each to be made."""

    bound: dict[str, str]
    wanted: dict[str, str]


def plugin_over(storage: Storage) -> VolumeBinding:
    """Return the plugin with its default arguments."""
    return VolumeBinding(VolumeBindingArgs(), RecordingHandle(storage=storage))


def pre_filter(storage: Storage, pod: Pod) -> Status:
    """Return what PreFilter says."""
    return plugin_over(storage).pre_filter(CycleState(), PodInfo(pod), NodesView.of([])).status


def rejections(storage: Storage, pod: Pod, *nodes: NodeInfo) -> dict[str, tuple[str, ...]]:
    """Return the reasons of each node that is rejected, which both forms agree on."""
    plugin, info, state = plugin_over(storage), PodInfo(pod), CycleState()
    view = NodesView.of(nodes)
    assert plugin.pre_filter(state, info, view).status.is_success
    verdicts = plugin.filter(state, info, view)
    found = {}
    for row, node_info in enumerate(view.node_infos()):
        status = verdicts.status_of(row)
        assert status == plugin.filter_one(state, info, node_info)
        if not status.is_success:
            found[node_info.name] = status.reasons
    return found


def assume(storage: Storage, pod: Pod, node_info: NodeInfo) -> Assumed:
    """Reserve a node for the pod, and return what the storage shows from then on."""
    plugin, info, state = plugin_over(storage), PodInfo(pod), CycleState()
    assert plugin.pre_filter(state, info, NodesView.of([node_info])).status.is_success
    assert plugin.reserve(state, info, node_info.name).is_success
    bound = {}
    for volume in storage.volumes._assumed.values():
        reference = volume.spec.claim_ref
        assert reference is not None
        bound[reference.name] = volume.metadata.name
    return Assumed(
        bound,
        {
            each.metadata.name: each.metadata.annotations["volume.kubernetes.io/selected-node"]
            for each in storage.claims._assumed.values()
        },
    )
