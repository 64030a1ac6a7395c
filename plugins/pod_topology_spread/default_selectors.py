"""The default selectors of topology spreading: the pods of a pod's Services and controller.

*Source*: kube-scheduler 1.36, plugins/helper/spread.go, DefaultSelector and GetPodServices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.affinity_terms import compile_selector_once
from cache.byte_bounded import ByteBounded, deep_bytes
from cache.label_selectors import Selector, selector_of_labels
from cache.resources import MalformedObjectError
from cache.workload_objects import ReplicaSet, ReplicationController, StatefulSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.objects import LabelSelector, OwnerReference, Pod
    from cache.workloads import Workloads

MAX_REMEMBERED_BYTES: Final = 2**20
"""More than the workloads whose pods are pending at one time: a thousand with ten labels each."""

_SETS_VERSION: Final = "apps/v1"
_SETS: Final[Mapping[str, type[ReplicaSet | StatefulSet]]] = {
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
}


class DefaultSelectors:
    """The default selectors of pods, remembered until a Service or a controller changes.

    Notes
    -----
    *Concurrency*: calls may come from several threads; at worst a selector is computed twice.
    """

    def __init__(self) -> None:
        self._known = _remembered()
        self._made_from: tuple[Workloads | None, int] = (None, -1)

    def of(self, pod: Pod, workloads: Workloads) -> Selector:
        """Return the default selector of a pod; EVERYTHING means that it has none.

        *Cost*: constant for pods of a workload seen before; else proportional to the Services
        of the namespace.
        """
        # Read before the rest: a change meanwhile makes the result stale, not wrong for good.
        made_from = (workloads, workloads.version)
        metadata = pod.metadata
        owner = _controller(pod)
        if self._made_from[0] is not workloads or self._made_from[1] != made_from[1]:
            self._known, self._made_from = _remembered(), made_from
        known_ones = self._known
        key = (
            metadata.namespace,
            frozenset(metadata.labels.items()),
            None if owner is None else (owner.api_version, owner.kind, owner.name),
        )
        known = known_ones.get(key)
        if known is None:
            known = _default_selector(pod, owner, workloads)
            known_ones.put(key, known)
        return known


def _remembered() -> ByteBounded[tuple[object, ...], Selector]:
    return ByteBounded(MAX_REMEMBERED_BYTES, _weight)


def _weight(key: tuple[object, ...], selector: Selector) -> int:
    return deep_bytes(key, selector, at_most=MAX_REMEMBERED_BYTES)


def _default_selector(pod: Pod, owner: OwnerReference | None, workloads: Workloads) -> Selector:
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    merged: dict[str, str] = {}
    for service in workloads.services(namespace):
        wanted = service.spec.selector
        if all(labels.get(key) == value for key, value in wanted.items()):
            merged.update(wanted)
    if owner is not None and (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
        controller = workloads.controller(ReplicationController, namespace, owner.name)
        if controller is not None:
            merged.update(controller.spec.selector)
    selector = selector_of_labels(merged)
    more = None if owner is None else _set_selector(namespace, owner, workloads)
    if more is None:
        return selector
    try:
        return selector.with_requirements(compile_selector_once(more).requirements)
    except MalformedObjectError:
        return selector


def _set_selector(
    namespace: str, owner: OwnerReference, workloads: Workloads
) -> LabelSelector | None:
    """Return the selector of the ReplicaSet or StatefulSet that manages a pod."""
    if owner.api_version != _SETS_VERSION:
        return None
    kind = _SETS.get(owner.kind)
    found = None if kind is None else workloads.controller(kind, namespace, owner.name)
    return None if found is None else found.spec.selector


def _controller(pod: Pod) -> OwnerReference | None:
    for owner in pod.metadata.owner_references:
        if owner.controller:
            return owner
    return None
