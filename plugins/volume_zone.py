"""Keeps a pod in the zones of its volumes, as the labels of bound volumes name them.

A node without any zone or region label is considered to be in all of them.

*Source*: pkg/scheduler/framework/plugins/volumezone/volume_zone.go and k8s.io/cloud-provider
volume/helpers/zones.go, LabelZonesToSet (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cache.storage import claim_class
from plugins import names
from plugins.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_not_found,
    for_claims,
    named_claim_keys,
    storage_class_not_found,
    volume_not_found,
)
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.cycle_state import StateKey
from plugins.framework.interfaces import FilterPlugin, PreFilterPlugin
from plugins.framework.queueing_hints import for_everybody
from plugins.framework.results import PROCEED, SKIP_FILTER, NodeVerdicts, PreFilterResult
from plugins.framework.status import SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.columns import NodesView
    from cache.label_columns import LabelColumn
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from cache.storage_objects import PersistentVolume, StorageClass
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.results import BoolArray

REJECTED: Final = unresolvable("node(s) had no available volume zone")

_PRESENT_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The labels of the place of a volume or node, and the current name of each."""

_ZONES_SEPARATOR: Final = "__"


class VolumePlace(NamedTuple):
    """One zone or region label of a volume: the places from which it can be reached."""

    key: str
    values: frozenset[str]


_PLACES: Final[StateKey[tuple[VolumePlace, ...]]] = StateKey("VolumeZone")


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """Rejects nodes outside the zones and regions of the pod's volumes."""

    name = names.VOLUME_ZONE
    is_eased_by_removals = True
    reads_pods = False

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Skip for a pod whose volumes have no zone or region.

        A pod is rejected if a claim, volume or class of it does not exist, or if a claim should
        have been bound already.
        """
        if not info.pod.spec.volumes:
            return SKIP_FILTER
        places: dict[VolumePlace, None] = {}
        for volume in info.pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                state.budget.check()
                bound = self._bound_volume(info, volume.persistent_volume_claim.claim_name)
                if isinstance(bound, Status):
                    return PreFilterResult(bound)
                if bound is not None:
                    places.update(dict.fromkeys(_places(bound)))
        if not places:
            return SKIP_FILTER
        state.write(_PLACES, tuple(places))
        return PROCEED

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view.

        *Cost*: a few passes over integer columns, whatever the number of distinct zones.
        """
        somewhere = np.zeros(len(nodes), dtype=np.bool_)
        for key in _PRESENT_LABELS:
            _, ids = nodes.label(key)
            somewhere |= ids != 0
        within = np.ones(len(nodes), dtype=np.bool_)
        for place in state.read(_PLACES):
            state.budget.check()
            column, ids = nodes.label(place.key)
            inside = _allowed(column, place)[ids]
            present = _PRESENT_LABELS[place.key]
            if present != place.key:
                present_column, present_ids = nodes.label(present)
                inside |= (ids == 0) & _allowed(present_column, place)[present_ids]
            within &= inside
        return NodeVerdicts(within | ~somewhere, status=REJECTED)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        labels = node_info.labels
        if not any(key in labels for key in _PRESENT_LABELS):
            return SUCCESS
        for place in state.read(_PLACES):
            value = labels.get(place.key)
            if value is None:
                value = labels.get(_PRESENT_LABELS[place.key])
            if value is None or value not in place.values:
                return REJECTED
        return SUCCESS

    def signature(self, info: PodInfo) -> Hashable | None:
        """Return one signature for all pods without claims; other pods have none."""
        has_claim = any(each.persistent_volume_claim is not None for each in info.pod.spec.volumes)
        return None if has_claim else ()

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a new class, a new or relabelled node, and claims and volumes."""
        changes = Action.ADD | Action.UPDATE
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL
        return (
            EventRegistration.on(
                Resource.STORAGE_CLASS, Action.ADD, for_everybody(_after_class_added)
            ),
            EventRegistration.on(Resource.NODE, nodes),
            EventRegistration.on(
                Resource.PERSISTENT_VOLUME_CLAIM, changes, for_claims(named_claim_keys)
            ),
            EventRegistration.on(Resource.PERSISTENT_VOLUME, changes, for_everybody(_after_volume)),
        )

    def _bound_volume(self, info: PodInfo, claim_name: str) -> PersistentVolume | Status | None:
        """Return the volume of a claim, None for one that waits for its pod, or a rejection."""
        storage = self.handle.storage
        if not claim_name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = storage.claim(info.namespace, claim_name)
        if claim is None:
            return unresolvable(claim_not_found(claim_name))
        if claim.spec.volume_name:
            volume = storage.volume(claim.spec.volume_name)
            missing = volume_not_found(claim.spec.volume_name)
            return unresolvable(missing) if volume is None else volume
        class_name = claim_class(claim)
        if not class_name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = storage.classes.get(class_name)
        if storage_class is None:
            return unresolvable(storage_class_not_found(class_name))
        if storage_class.volume_binding_mode is None:
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return unresolvable("PersistentVolume had no name")


def _places(volume: PersistentVolume) -> tuple[VolumePlace, ...]:
    """Return the places from which a volume can be reached; empty zones are ignored."""
    found = []
    for key in _PRESENT_LABELS:
        text = volume.metadata.labels.get(key)
        if text is not None:
            values = frozenset(each.strip() for each in text.split(_ZONES_SEPARATOR))
            if "" not in values:
                found.append(VolumePlace(key, values))
    return tuple(found)


def _allowed(column: LabelColumn, place: VolumePlace) -> BoolArray:
    """Return bool (n_values,): whether each value of a label is in a place; absence is not."""
    return np.array([value in place.values for value in column.values], dtype=np.bool_)


def _after_class_added(old: StorageClass | None, new: StorageClass | None) -> bool:
    """Return the hint for a new class: Queue if its claims wait for their pods."""
    return new is None or new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _after_volume(old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
    """Return the hint for a volume: Queue if it is new or its place has changed."""
    return old is None or new is None or _places(old) != _places(new)
