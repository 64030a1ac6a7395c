"""Keeps a pod away from disks and claims that only one pod may use.

An inline disk excludes others on its node; a claim with the access mode ReadWriteOncePod excludes
others everywhere.

*Source*: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from cache.node_info import claim_keys
from cache.value import Value
from plugins import names
from plugins.claims import claim_not_found, for_claims, named_claim_keys
from plugins.framework.cluster_events import Action, EventRegistration, Hint, Resource
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import FilterPlugin, PreFilterPlugin
from plugins.framework.queueing_hints import for_pods_by
from plugins.framework.results import (
    ALL_PASS,
    PROCEED,
    SKIP_FILTER,
    NodeVerdicts,
    PreFilterResult,
)
from plugins.framework.status import SUCCESS, Status, unresolvable, unschedulable
from plugins.inline_disks import (
    DiskMount,
    DisksInUse,
    conflict,
    disk_mounts,
    disks_of_node,
    disks_of_pod,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import msgspec

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from cache.storage import ClaimKey
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.results import BoolArray

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"

DISK_IN_USE: Final = unschedulable("node(s) had no available disk")
CLAIM_IN_USE: Final = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


class _Wanted(Value, frozen=True):
    disks: tuple[DiskMount, ...]
    claims: frozenset[str]
    """Claims that no other pod may use, as ``namespace/claim``."""
    uses: int
    """How often other pods use these claims."""


_WANTED: Final[StateKey[_Wanted]] = StateKey("VolumeRestrictions")


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """Rejects nodes on which the pod's disk is mounted, and all while its claim is in use."""

    name = names.VOLUME_RESTRICTIONS
    is_eased_by_removals = True

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._in_use: DisksInUse | None = None

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Skip for a pod without a disk or claim that conflicts with other pods.

        A pod whose claim does not exist is rejected, since its access modes are not known.
        """
        pod = info.pod
        if not pod.spec.volumes:
            return SKIP_FILTER
        claims = set()
        for volume in pod.spec.volumes:
            source = volume.persistent_volume_claim
            if source is not None:
                state.budget.check()
                claim = self.handle.storage.claim(info.namespace, source.claim_name)
                if claim is None:
                    return PreFilterResult(unresolvable(claim_not_found(source.claim_name)))
                if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                    claims.add(f"{info.namespace}/{source.claim_name}")
        disks = tuple(disk_mounts(pod.spec.volumes))
        # Differs: kube-scheduler counts a claim once, however many pods use it, but takes one off
        # for every pod that a what-if removes; and there it takes claims of the same name in
        # another namespace for the same one. Its preemption then evicts pods in vain.
        ref_counts = nodes.columns.claim_ref_counts
        uses = sum(ref_counts.get(claim, 0) for claim in claims)
        if not disks and not uses:
            return SKIP_FILTER
        if disks and (self._in_use is None or self._in_use.columns is not nodes.columns):
            with state.budget.exempt():
                self._in_use = DisksInUse(nodes.columns)
                self._in_use.follow()
        state.write(_WANTED, _Wanted(disks, frozenset(claims), uses))
        return PROCEED

    def add_pod(
        self, state: CycleState, info: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Count the pod's use of the claims."""
        return _count(state, added, 1)

    def remove_pod(
        self, state: CycleState, info: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Count the pod's use of the claims out."""
        return _count(state, removed, -1)

    def is_concerned_by(self, state: CycleState, info: PodInfo, other: PodInfo) -> bool:
        """Return whether the other pod uses one of the claims, or mounts one of the disks."""
        wanted = state.read(_WANTED)
        return _uses(other, wanted.claims) > 0 or conflict(wanted.disks, disks_of_pod(other.pod))

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view.

        *Cost*: constant, except for the nodes that have changed since the last pod with disks.
        """
        wanted = state.read(_WANTED)
        without_disk: BoolArray | None = None
        if wanted.disks:
            if self._in_use is None or self._in_use.columns is not nodes.columns:
                return super().filter(state, info, nodes)  # a what-if about some nodes
            free = np.ones(len(nodes.columns), dtype=np.bool_)
            free[self._in_use.conflicting_rows(wanted.disks, state.budget)] = False
            without_disk = nodes.take(free)
        if wanted.uses > 0:
            nobody = np.zeros(len(nodes), dtype=np.bool_)
            if without_disk is None:
                return NodeVerdicts(nobody, status=CLAIM_IN_USE)
            which = without_disk.astype(np.intp)
            return NodeVerdicts(nobody, detail=lambda: (which, (DISK_IN_USE, CLAIM_IN_USE)))
        if without_disk is None:
            return ALL_PASS
        return NodeVerdicts(without_disk, status=DISK_IN_USE)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        wanted = state.read(_WANTED)
        if wanted.disks and conflict(wanted.disks, disks_of_node(node_info)):
            return DISK_IN_USE
        return CLAIM_IN_USE if wanted.uses > 0 else SUCCESS

    def signature(self, info: PodInfo) -> Hashable | None:
        """Return one signature for all pods without claims and disks; other pods have none."""
        for volume in info.pod.spec.volumes:
            if volume.persistent_volume_claim is not None or any(disk_mounts((volume,))):
                return None
        return ()

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a deleted pod, a new node, a new claim."""
        return (
            EventRegistration.on(Resource.POD, Action.DELETE, _AFTER_POD_DELETED),
            EventRegistration.on(Resource.NODE, Action.ADD),
            EventRegistration.on(
                Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, for_claims(named_claim_keys)
            ),
        )


def _uses(other: PodInfo, claims: frozenset[str]) -> int:
    return sum(claim in claims for claim in claim_keys(other)) if claims else 0


def _count(state: CycleState, other: PodInfo, sign: int) -> Status:
    wanted = state.read(_WANTED)
    uses = _uses(other, wanted.claims)
    if uses:
        state.write(_WANTED, replace(wanted, uses=wanted.uses + sign * uses))
    return SUCCESS


def _after_pod_deleted(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """Return the hint for a deleted pod: Queue if it used a disk or a claim of this pod.

    kube-scheduler checks only pods of the same namespace, although disks have no namespace.
    """
    if old is None:
        return Hint.QUEUE
    if old.metadata.namespace != pod.metadata.namespace:
        return Hint.SKIP
    if conflict(disk_mounts(pod.spec.volumes), disks_of_pod(old)):
        return Hint.QUEUE
    return Hint.SKIP if named_claim_keys(pod).isdisjoint(named_claim_keys(old)) else Hint.QUEUE


def _volumes(pod: Pod) -> tuple[str, tuple[DiskMount, ...], frozenset[ClaimKey]]:
    """Return the part of a pod that the hint for pods reads."""
    return (
        pod.metadata.namespace,
        tuple(disk_mounts(pod.spec.volumes)),
        named_claim_keys(pod),
    )


def _topics(volumes: tuple[str, tuple[DiskMount, ...], frozenset[ClaimKey]]) -> set[Hashable]:
    namespace, mounts, claims = volumes
    return {*((namespace, mount.disk) for mount in mounts), *claims}


_AFTER_POD_DELETED: Final = for_pods_by(
    _volumes,
    _after_pod_deleted,
    _topics,
    lambda old, new: None if old is None else _topics(_volumes(old)),
)
