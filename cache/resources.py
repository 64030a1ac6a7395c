"""What a pod asks for and what a node has, as integers by resource name.

CPU is counted in milli-cores, everything else in base units (bytes, pieces). A pod's request is
that of the moment in which it needs most: the sum of its containers and sidecars, or one init
container together with the sidecars started before it, whichever is larger for each resource;
then pod-level requests replace the sum, and the overhead of running the pod comes on top.

While a resize is under way the kubelet's status counts as well: what a container holds, was
granted or asks for, the largest of the three, so that nobody else gets what it is about to
take or has not yet returned. A resize that is infeasible no longer counts.

*Concurrency*: pure functions; call them from any thread.

*Source*: kube-scheduler 1.36, pkg/scheduler/framework/types.go (CalculateResource, Resource.Add),
pkg/scheduler/util/utils.go; k8s.io/component-helpers resource/helpers.go (PodRequests); with
the feature gates InPlacePodVerticalScaling, PodLevelResources and
InPlacePodLevelResourcesVerticalScaling on and DRANodeAllocatableResources off: their defaults.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from cache.ages import AGES
from cache.quantity import (
    INT64_MAX,
    QuantityError,
    exact_milli_value,
    exact_value,
    quantity_milli_value,
    quantity_value,
    rounded,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from fractions import Fraction

    from cache.objects import Container, ContainerStatus, Pod, Quantity, ResourceRequirements

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_MILLI_CPU_REQUEST = 100
"""What a container that requests no CPU is taken to use when nodes are compared, milli-cores."""

DEFAULT_MEMORY_REQUEST = 200 * 1024 * 1024
"""What a container that requests no memory is taken to use when nodes are compared, bytes."""

_HUGE_PAGES_PREFIX = "hugepages-"
_ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
_NATIVE_NAMESPACE = "kubernetes.io/"
_QUOTA_PREFIX = "requests."

_ALWAYS_COUNTED = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})

_TEMPLATES = 4096
"""Different requests that are remembered: more than the workloads of a large cluster."""

_NAMES = 1024
"""Names that are remembered: half a megabyte, since an API server lets none be longer than 317."""

_FEW_RESOURCES = 8
"""Up to so many resources: what is remembered takes 15 MiB at the very most."""

_Exact: TypeAlias = "dict[str, int | Fraction]"

_NO_DEFAULTS: Mapping[str, int] = {}
_DEFAULTS: Mapping[str, int] = {CPU: DEFAULT_MILLI_CPU_REQUEST, MEMORY: DEFAULT_MEMORY_REQUEST}


class MalformedObjectError(ValueError):
    """An object contains a malformed value.

    Parameters
    ----------
    path : str
        Where the value stands in its object, as ``spec.containers[0].resources.requests[cpu]``.
    why : str
        What is wrong with it.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


# --- names ------------------------------------------------------------------------------------

_NAME_PART = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_MAX_NAME_PART = 63
_MAX_DNS_SUBDOMAIN = 253


def is_qualified_name(name: str) -> bool:
    """Return whether ``name`` has the form of a label key: ``[dns.subdomain/]name``.

    Notes
    -----
    *Source*: k8s.io/apimachinery pkg/api/validate/content/kube.go (IsLabelKey).
    """
    prefix, slash, last = name.rpartition("/")
    if slash and not _is_dns_subdomain(prefix):
        return False
    return len(last) <= _MAX_NAME_PART and _NAME_PART.fullmatch(last) is not None


def _is_dns_subdomain(name: str) -> bool:
    return len(name) <= _MAX_DNS_SUBDOMAIN and all(
        _DNS_LABEL.fullmatch(label) is not None for label in name.split(".")
    )


@AGES.forgets(_NAMES)
def is_extended_resource_name(name: str) -> bool:
    """Return whether ``name`` is a resource of somebody's own, such as ``example.com/gpu``.

    Notes
    -----
    *Source*: kube-scheduler 1.36, pkg/apis/core/v1/helper/helpers.go (IsExtendedResourceName).
    """
    if "/" not in name or _NATIVE_NAMESPACE in name or name.startswith(_QUOTA_PREFIX):
        return False
    return is_qualified_name(_QUOTA_PREFIX + name)


@AGES.forgets(_NAMES)
def is_scalar_resource_name(name: str) -> bool:
    """Return whether scheduling counts ``name`` though it is none of the four basic resources.

    These are extended resources, huge pages, attachable volumes and whatever stands in a
    ``kubernetes.io/`` namespace.

    Notes
    -----
    *Source*: kube-scheduler 1.36, pkg/scheduler/util/utils.go (IsScalarResourceName).
    """
    return (
        is_extended_resource_name(name)
        or name.startswith((_HUGE_PAGES_PREFIX, _ATTACHABLE_VOLUMES_PREFIX))
        or _NATIVE_NAMESPACE in name
    )


def _is_pod_level_resource(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES_PREFIX)


def _is_counted(name: str) -> bool:
    return name in _ALWAYS_COUNTED or is_scalar_resource_name(name)


# --- amounts ----------------------------------------------------------------------------------


def resource_amounts(quantities: Mapping[str, Quantity], path: str) -> dict[str, int]:
    """Return every quantity as an integer: ``cpu`` in milli-cores, all others in base units.

    Parameters
    ----------
    quantities : mapping of str to Quantity
        Quantities by resource name; no name is left out.
    path : str
        Where they stand in their object, for the error.

    Raises
    ------
    MalformedObjectError
        If a quantity cannot be read; its path is ``path[name]``.
    """
    try:
        return {
            name: quantity_milli_value(text) if name == CPU else quantity_value(text)
            for name, text in quantities.items()
        }
    except QuantityError:
        _raise_malformed(((path, quantities),))
        raise


def pod_amounts(pod: Pod) -> tuple[Mapping[str, int], int, int]:
    """Return the amounts that the pod requests, and its assumed use of CPU and memory.

    Returns
    -------
    requests
        Amounts by resource name. A resource that is requested as zero is kept with 0. A name that
        scheduling does not count (neither basic nor :func:`is_scalar_resource_name`) is left out.
        Pods of one template have the same mapping, which must not be changed.
    milli_cpu, memory_bytes
        What counts where nodes are compared: a container (or init container) that requests no CPU
        counts 100m, one that requests no memory 200 MiB; an explicit zero stays zero. Once the pod
        has pod-level requests, a default is used only for a resource that neither the pod nor any
        of its containers requests.

    Raises
    ------
    MalformedObjectError
        If a quantity of the pod cannot be read.

    Notes
    -----
    *Cost*: about a microsecond for a pod of one container whose like has been seen.
    """
    if _is_plain(pod):
        requests = pod.spec.containers[0].resources.requests
        amounts = _plain_amounts if len(requests) <= _FEW_RESOURCES else _plain_amounts.__wrapped__
        try:
            return amounts(tuple(requests.items()))
        except QuantityError:
            _raise_malformed(_quantities_of(pod))
            raise
    exact = _requests(pod, _NO_DEFAULTS)
    defaults = _DEFAULTS
    if _has_pod_level_requests(pod):
        defaults = {name: size for name, size in _DEFAULTS.items() if name not in exact}
    used = _requests(pod, defaults)
    return (
        {name: rounded(amount) for name, amount in exact.items() if _is_counted(name)},
        rounded(used.get(CPU, 0)),
        rounded(used.get(MEMORY, 0)),
    )


@AGES.forgets(_TEMPLATES)
def _plain_amounts(
    requests: tuple[tuple[str, Quantity], ...],
) -> tuple[Mapping[str, int], int, int]:
    amounts = {
        name: quantity_milli_value(text) if name == CPU else quantity_value(text)
        for name, text in requests
        if _is_counted(name)
    }
    return (
        amounts,
        amounts.get(CPU, DEFAULT_MILLI_CPU_REQUEST),
        amounts.get(MEMORY, DEFAULT_MEMORY_REQUEST),
    )


def _is_plain(pod: Pod) -> bool:
    """Return whether the requests of its only container are those of the pod."""
    spec = pod.spec
    if len(spec.containers) != 1 or spec.init_containers or spec.overhead or spec.resources:
        return False
    requests = spec.containers[0].resources.requests
    # Nearly every pod that runs has such a status, and nearly none is being resized.
    return all(
        status.resources is None
        or _is_at_rest(requests, status.resources.requests, status.allocated_resources)
        for status in pod.status.container_statuses
    )


def _requests(pod: Pod, defaults: Mapping[str, int]) -> _Exact:
    try:
        total = _container_requests(pod, defaults)
        if _has_pod_level_requests(pod):
            _apply_pod_level_requests(pod, total)
        _add(total, _exact(pod.spec.overhead))
    except QuantityError:
        _raise_malformed(_quantities_of(pod))
        raise
    return total


def _container_requests(pod: Pod, defaults: Mapping[str, int]) -> _Exact:
    status = pod.status
    statuses: dict[str, ContainerStatus] = {s.name: s for s in status.container_statuses}
    statuses.update((s.name, s) for s in status.init_container_statuses)
    total: _Exact = {}
    for container in pod.spec.containers:
        _add(total, _requests_of(pod, container, statuses.get(container.name), defaults))
    if pod.spec.init_containers:
        sidecars: _Exact = {}
        peak: _Exact = {}
        for container in pod.spec.init_containers:
            if is_restartable(container):
                requests = _requests_of(pod, container, statuses.get(container.name), defaults)
                _add(total, requests)
                _add(sidecars, requests)
                _raise_to(peak, sidecars)
            else:
                requests = _requests_of(pod, container, None, defaults)
                _add(requests, sidecars)
                _raise_to(peak, requests)
        _raise_to(total, peak)
    return total


def is_restartable(container: Container) -> bool:
    """Return whether an init container is a sidecar: it keeps running beside the containers."""
    return container.restart_policy == "Always"


def _requests_of(
    pod: Pod,
    container: Container,
    status: ContainerStatus | None,
    defaults: Mapping[str, int],
) -> _Exact:
    """Return a dict of the caller's own: one container's requests, defaults filled in."""
    spec = container.resources.requests
    if status is None or status.resources is None:
        requests = _exact(spec)
    else:
        requests = _effective(pod, spec, status.resources.requests, status.allocated_resources)
    for name, amount in defaults.items():
        requests.setdefault(name, amount)
    return requests


def _effective(
    pod: Pod,
    spec: Mapping[str, Quantity],
    actuated: Mapping[str, Quantity],
    allocated: Mapping[str, Quantity],
) -> _Exact:
    if _is_at_rest(spec, actuated, allocated):
        return _exact(spec)
    effective = _exact(actuated)
    _raise_to(effective, _exact(allocated))
    if not _is_resize_infeasible(pod):
        _raise_to(effective, _exact(spec))
    return effective


def _is_at_rest(
    spec: Mapping[str, Quantity],
    actuated: Mapping[str, Quantity],
    allocated: Mapping[str, Quantity],
) -> bool:
    """Whether all three say the same in the same words, so that nothing need be compared."""
    return actuated == spec and (not allocated or allocated == spec)


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(_is_pod_level_resource, resources.requests))


def _apply_pod_level_requests(pod: Pod, total: _Exact) -> None:
    if pod.spec.resources is None:
        return
    spec = pod.spec.resources.requests
    status = pod.status
    if status.resources is None:
        effective = _exact(spec)
    else:
        effective = _effective(pod, spec, status.resources.requests, status.allocated_resources)
    for name in spec:
        if _is_pod_level_resource(name):
            total[name] = effective.get(name, 0)


def _exact(quantities: Mapping[str, Quantity]) -> _Exact:
    return {
        name: exact_milli_value(text) if name == CPU else exact_value(text)
        for name, text in quantities.items()
    }


def _add(total: _Exact, more: _Exact) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: _Exact, other: _Exact) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount


# --- what cannot be read ----------------------------------------------------------------------

_LARGEST = str(INT64_MAX)
_LARGEST_CPU = f"{INT64_MAX}m"


def with_readable_amounts(pod: Pod) -> Pod:
    """Return the pod with the largest possible amount in place of each malformed one.

    Notes
    -----
    Nobody knows how much a pod holds that asks for such an amount: all of it, to be safe. What
    else the pod asks for counts as it is.
    """
    spec, status = pod.spec, pod.status
    spec = msgspec.structs.replace(
        spec,
        containers=tuple(map(_readable_container, spec.containers)),
        init_containers=tuple(map(_readable_container, spec.init_containers)),
        overhead=_readable(spec.overhead),
        resources=_readable_resources(spec.resources),
    )
    status = msgspec.structs.replace(
        status,
        container_statuses=tuple(map(_readable_status, status.container_statuses)),
        init_container_statuses=tuple(map(_readable_status, status.init_container_statuses)),
        allocated_resources=_readable(status.allocated_resources),
        resources=_readable_resources(status.resources),
    )
    return msgspec.structs.replace(pod, spec=spec, status=status)


def _readable_container(container: Container) -> Container:
    requests = _readable(container.resources.requests)
    resources = msgspec.structs.replace(container.resources, requests=requests)
    return msgspec.structs.replace(container, resources=resources)


def _readable_status(status: ContainerStatus) -> ContainerStatus:
    return msgspec.structs.replace(
        status,
        allocated_resources=_readable(status.allocated_resources),
        resources=_readable_resources(status.resources),
    )


def _readable_resources(resources: ResourceRequirements | None) -> ResourceRequirements | None:
    if resources is None:
        return None
    return msgspec.structs.replace(resources, requests=_readable(resources.requests))


def _readable(quantities: Mapping[str, Quantity]) -> dict[str, Quantity]:
    readable = dict(quantities)
    for name, text in quantities.items():
        try:
            exact_value(text)
        except QuantityError:
            readable[name] = _LARGEST_CPU if name == CPU else _LARGEST
    return readable


# --- errors -----------------------------------------------------------------------------------


def _quantities_of(pod: Pod) -> Iterator[tuple[str, Mapping[str, Quantity]]]:
    """Yield every map of quantities that the pod's request is computed from, with its path."""
    spec, status = pod.spec, pod.status
    for field, containers in (
        ("spec.containers", spec.containers),
        ("spec.initContainers", spec.init_containers),
    ):
        for index, container in enumerate(containers):
            yield f"{field}[{index}].resources.requests", container.resources.requests
    if spec.resources is not None:
        yield "spec.resources.requests", spec.resources.requests
    yield "spec.overhead", spec.overhead
    for field, statuses in (
        ("status.containerStatuses", status.container_statuses),
        ("status.initContainerStatuses", status.init_container_statuses),
    ):
        for index, container_status in enumerate(statuses):
            if container_status.resources is not None:
                yield f"{field}[{index}].resources.requests", container_status.resources.requests
            yield f"{field}[{index}].allocatedResources", container_status.allocated_resources
    if status.resources is not None:
        yield "status.resources.requests", status.resources.requests
    yield "status.allocatedResources", status.allocated_resources


def _raise_malformed(maps: Iterable[tuple[str, Mapping[str, Quantity]]]) -> None:
    """Raise for the first quantity that cannot be read; the good way never pays for paths."""
    for path, quantities in maps:
        for name, text in quantities.items():
            try:
                exact_value(text)
            except QuantityError as error:
                raise MalformedObjectError(f"{path}[{name}]", str(error)) from None
