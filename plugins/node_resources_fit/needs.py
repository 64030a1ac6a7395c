"""The resources that a pod needs, and those of them that a node lacks.

*Source*: kube-scheduler 1.36, plugins/noderesources/fit.go (computePodResourceRequest,
fitsRequest) and resource_allocation.go (calculatePodResourceRequest).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec.structs import replace

from cache.device_classes import may_be_devices
from cache.objects import PodStatus
from cache.quantity import INT64_MAX
from cache.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    is_extended_resource_name,
    pod_amounts,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from cache.device_classes import DeviceClasses
    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.pod_info import PodInfo

Needs: TypeAlias = tuple[tuple[str, int], ...]
"""Amounts above 0 by resource, in the order in which reasons are given."""

_BASIC = (CPU, MEMORY, EPHEMERAL_STORAGE)
_BASIC_AND_PODS = frozenset((*_BASIC, PODS))
_NO_STATUS = PodStatus()


class Shortfall(NamedTuple):
    """A resource of which a node has too little free for a pod.

    Amounts are milli-CPU for ``cpu``, pods for ``pods``, bytes or pieces for all others.
    """

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def reason(self) -> str:
        """The reason as it appears in the pod's condition."""
        return reason_for(self.resource)

    @property
    def is_unresolvable(self) -> bool:
        """Whether even the empty node is too small, so that preemption cannot help."""
        return self.resource != PODS and self.requested > self.capacity


def reason_for(resource: str) -> str:
    """Return the reason for a lack of a resource."""
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"


class IgnoredResources:
    """The extended resources that the filter does not check.

    Parameters
    ----------
    names
        Whole resource names.
    groups
        The parts of names before the slash.
    """

    __slots__ = ("_groups", "_names")

    def __init__(self, names: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> None:
        self._names = frozenset(names)
        self._groups = frozenset(groups)

    def __contains__(self, resource: str) -> bool:
        if not (self._names or self._groups) or not is_extended_resource_name(resource):
            return False
        return resource in self._names or resource.partition("/")[0] in self._groups


NOTHING_IGNORED = IgnoredResources()


def filter_needs(info: PodInfo, ignored: IgnoredResources = NOTHING_IGNORED) -> Needs:
    """Return the requests that the filter checks besides the number of pods.

    CPU, memory and ephemeral storage come first, then the others by name.

    # Differs: upstream gives the reasons of the others in a random order.

    Of an extended resource that a DeviceClass provides, see :func:`device_resources`.
    """
    amounts = _amounts_by_spec(info)
    names: Iterable[str] = _BASIC
    if not _BASIC_AND_PODS.issuperset(amounts):
        others = sorted(amounts.keys() - _BASIC_AND_PODS)
        names = (*_BASIC, *(name for name in others if name not in ignored))
    return tuple([(n, min(amounts[n], INT64_MAX)) for n in names if amounts.get(n, 0) > 0])


def device_resources(needs: Needs, classes: DeviceClasses) -> frozenset[str]:
    """Return the needed resources that a DeviceClass provides.

    A node that does not report such a resource is left to DynamicResources.

    *Source*: shouldDelegateResourceToDRA; gate DRAExtendedResource, on by default.
    """
    return frozenset(
        name for name, _ in needs if may_be_devices(name) and classes.for_resource(name) is not None
    )


def _amounts_by_spec(info: PodInfo) -> Mapping[str, int]:
    """Return the pod's requests without regard to its status: it is not running yet.

    A running pod (in a what-if) has a status, and then its requests may differ.
    """
    if _has_container_status(info.pod):
        return pod_amounts(replace(info.pod, status=_NO_STATUS))[0]
    return info.requests


def scored_amounts(info: PodInfo) -> Mapping[str, int]:
    """Return the requests that the scoring strategies compare nodes by.

    A container that asks for no CPU counts 100m, one that asks for no memory 200 MiB; status
    and pod-level requests do not count: kube-scheduler enables neither for this score, though
    it does for the filter and for NodeResourcesBalancedAllocation.

    *Source*: NewFit and getScorer leave ``enablePodLevelResources`` of the scorer unset.
    """
    pod = info.pod
    if pod.spec.resources is None and not _has_container_status(pod):
        return {**info.requests, CPU: info.nonzero_milli_cpu, MEMORY: info.nonzero_memory_bytes}
    bare = replace(pod, spec=replace(pod.spec, resources=None), status=_NO_STATUS)
    requests, cpu, memory = pod_amounts(bare)
    return {**requests, CPU: cpu, MEMORY: memory}


def _has_container_status(pod: Pod) -> bool:
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses or status.resources)


def find_shortfalls(
    needs: Needs, node_info: NodeInfo, devices: Container[str] = ()
) -> list[Shortfall]:
    """Return all resources that the node has too little of, the number of pods first.

    Parameters
    ----------
    devices
        The resources that are devices on nodes that do not report them.
    """
    found = []
    allocatable, requested = node_info.allocatable, node_info.requested
    pods = len(node_info.pods)
    if pods >= allocatable.get(PODS, 0):
        found.append(Shortfall(PODS, 1, pods, allocatable.get(PODS, 0)))
    for name, amount in needs:
        capacity, used = allocatable.get(name, 0), requested.get(name, 0)
        if amount > capacity - used and (capacity or name not in devices):
            found.append(Shortfall(name, amount, used, capacity))
    return found
