"""NodeVolumeLimits: keeps a pod off nodes that cannot attach more volumes of a driver.

A driver reports in a node's CSINode how many of its volumes the node can attach. Volumes that
pods there use and volumes that are attached count, each volume once.

*Source*: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (1.36), without the gate
VolumeLimitScaling, which is off by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.value import Value
from plugins import names
from plugins.claims import claim_keys, for_claims
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import FilterPlugin, PreFilterPlugin
from plugins.framework.results import (
    ALL_PASS,
    PROCEED,
    SKIP_FILTER,
    NodeVerdicts,
    PreFilterResult,
)
from plugins.framework.status import SUCCESS, Status, unresolvable, unschedulable
from plugins.node_volume_limits.counted_volumes import (
    Counted,
    VolumeKey,
    attached_volumes,
    may_count,
    volume_limits,
    volumes_of_new_pod,
    volumes_of_running_pod,
)
from plugins.node_volume_limits.hints import (
    AFTER_ATTACHMENT_DELETED,
    AFTER_CSI_NODE_UPDATED,
    AFTER_POD_DELETED,
)
from plugins.node_volume_limits.usage import VolumeUsage, exceeds, held_volumes

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import msgspec

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle

REJECTED: Final = unschedulable("node(s) exceed max volume count")


class _Wanted(Value, frozen=True):
    volumes: Counted
    """On a node with a CSINode."""
    without_csi_node: Counted
    """On a node without one: nothing is limited there, but a claim may still be missing."""


_WANTED: Final[StateKey[_Wanted]] = StateKey("NodeVolumeLimits")


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Rejects nodes on which the pod's volumes would exceed a driver's limit.

    Notes
    -----
    *Cost*: the first pod with such volumes counts those of all nodes; later pods the changes.
    """

    name = names.NODE_VOLUME_LIMITS
    is_eased_by_removals = True

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._usage: VolumeUsage | None = None

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Skip for a pod without claims and in-tree volumes."""
        pod, storage = info.pod, self.handle.storage
        if not may_count(pod):
            return SKIP_FILTER
        state.write(
            _WANTED,
            _Wanted(
                volumes_of_new_pod(storage, pod, on_csi_node=True),
                volumes_of_new_pod(storage, pod, on_csi_node=False),
            ),
        )
        if self._usage is None or self._usage.columns is not nodes.columns:
            with state.budget.exempt():
                self._usage = VolumeUsage(nodes.columns, storage)
                self._usage.follow()
        return PROCEED

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view. *Cost*: three passes over columns for each driver."""
        wanted, usage = state.read(_WANTED), self._usage
        volumes = wanted.volumes
        if isinstance(wanted.without_csi_node, Status) and volumes == wanted.without_csi_node:
            return NodeVerdicts(np.zeros(len(nodes), dtype=np.bool_), status=volumes)
        if isinstance(volumes, Status) or usage is None or usage.columns is not nodes.columns:
            # Malformed volumes, or a what-if about some nodes.
            return super().filter(state, info, nodes)
        if not volumes:
            return ALL_PASS
        usage.follow()
        passed = ~usage.over_limit(volumes, state.budget)
        errors = usage.errors()
        if not errors:
            return NodeVerdicts(nodes.take(passed), status=REJECTED)
        which = np.zeros(len(nodes.columns), dtype=np.intp)
        for index, row in enumerate(errors, 1):
            passed[row], which[row] = False, index
        taken, statuses = nodes.take(which), (REJECTED, *map(_left_out, errors.values()))
        return NodeVerdicts(nodes.take(passed), detail=lambda: (taken, statuses))

    def is_eased_for(self, state: CycleState) -> bool:
        """Return whether no pod on a node uses a volume of the pod.

        Such a volume is free for the pod, and costs one as soon as the others have left.
        """
        volumes = state.read(_WANTED).volumes
        if isinstance(volumes, Status) or self._usage is None:
            return True
        self._usage.follow()
        return not self._usage.uses_any(volumes)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node. *Cost*: proportional to the pods on it."""
        wanted, storage = state.read(_WANTED), self.handle.storage
        csi_node = storage.csi_nodes.get(node_info.name)
        volumes = wanted.without_csi_node if csi_node is None else wanted.volumes
        if isinstance(volumes, Status):
            return volumes
        limits = volume_limits(csi_node)
        if not volumes or not limits:
            return SUCCESS
        if self._usage is not None:
            self._usage.follow()
        uses: set[VolumeKey] = set()
        for pod in node_info.pods.values():
            state.budget.check()
            used = self._volumes_of(node_info.name, pod)
            if isinstance(used, Status):
                return _left_out(used)
            uses |= used
        attached = None if self._usage is None else self._usage.attached_to(node_info.name)
        if attached is None:
            attached = attached_volumes(storage, node_info.name, set())
        held = held_volumes(uses, attached)
        return REJECTED if exceeds(volumes, uses, held, limits) else SUCCESS

    def signature(self, info: PodInfo) -> Hashable | None:
        """Return one signature for all pods without such volumes; other pods have none."""
        return None if may_count(info.pod) else ()

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a new CSINode or a higher limit, and claims, pods and attachments."""
        return (
            EventRegistration.on(Resource.CSI_NODE, Action.ADD),
            EventRegistration.on(Resource.CSI_NODE, Action.UPDATE, AFTER_CSI_NODE_UPDATED),
            EventRegistration.on(Resource.POD, Action.DELETE, AFTER_POD_DELETED),
            EventRegistration.on(
                Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, for_claims(claim_keys)
            ),
            EventRegistration.on(
                Resource.VOLUME_ATTACHMENT, Action.DELETE, AFTER_ATTACHMENT_DELETED
            ),
        )

    def _volumes_of(self, node_name: str, info: PodInfo) -> Counted:
        known = None if self._usage is None else self._usage.volumes_of(node_name, info)
        if known is not None:
            return known
        return volumes_of_running_pod(self.handle.storage, info.pod, set())


def _left_out(error: Status) -> Status:
    """Return the rejection of a node on which the volumes of some pod cannot be counted.

    # Differs: in kube-scheduler that is an error, which ends the cycle of any pod with volumes
    whatever other nodes exist; here only that node is rejected.
    """
    return unresolvable(*error.reasons)
