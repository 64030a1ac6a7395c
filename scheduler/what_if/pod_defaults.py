"""What the API server would fill in, in a pod that nobody has sent to it.

*Source*: pkg/apis/core/v1/defaults.go, plugin/pkg/admission/defaulttolerationseconds and
plugin/pkg/admission/priority (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from cache.device_objects import DeviceSubRequest, ExactDeviceRequest
from cache.objects import Toleration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.device_objects import ResourceClaimSpec
    from cache.objects import Container, Pod

R = TypeVar("R", ExactDeviceRequest, DeviceSubRequest)

DEFAULT_SCHEDULER: Final = "default-scheduler"

SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The PriorityClasses that every cluster has."""

EXACT_COUNT: Final = "ExactCount"

_NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_S: Final = 300


class PriorityClasses:
    """The PriorityClasses of a cluster, as far as its pods show them.

    Parameters
    ----------
    pods
        The pods of the cluster, which are looked at when the first class is asked for.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = pods
        self._known: dict[str, tuple[int, str | None]] | None = None

    def get(self, name: str) -> tuple[int, str | None] | None:
        """Return priority and preemption policy of a class; None if no pod has it."""
        if name in SYSTEM_PRIORITIES:
            return SYSTEM_PRIORITIES[name], None
        if self._known is None:
            self._known = {
                pod.spec.priority_class_name: (pod.spec.priority, pod.spec.preemption_policy)
                for pod in self._pods
                if pod.spec.priority_class_name and pod.spec.priority is not None
            }
        return self._known.get(name)


def defaulted(pod: Pod, classes: PriorityClasses) -> tuple[Pod, str]:
    """Return a pod as the API server would store it, and a sentence about what is not known."""
    spec = pod.spec
    changes: dict[str, Any] = {
        "containers": _with_requests(spec.containers, host_network=spec.host_network),
        "init_containers": _with_requests(spec.init_containers, host_network=spec.host_network),
        "tolerations": _with_tolerations(spec.tolerations),
    }
    if not spec.scheduler_name:
        changes["scheduler_name"] = DEFAULT_SCHEDULER
    note = ""
    if spec.priority is None:
        changes["priority"], changes["preemption_policy"], note = _priority(pod, classes)
    return replace(pod, spec=replace(spec, **changes)), note


def defaulted_claim(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """Return what a claim of devices asks for as the API server would store it.

    *Source*: pkg/apis/resource/v1/defaults.go (1.36).
    """
    requests = tuple(
        replace(
            request,
            exactly=None if request.exactly is None else _counted(request.exactly),
            first_available=tuple(map(_counted, request.first_available)),
        )
        for request in spec.devices.requests
    )
    return replace(spec, devices=replace(spec.devices, requests=requests))


def _counted(request: R) -> R:
    mode = request.allocation_mode or EXACT_COUNT
    count = request.count or (1 if mode == EXACT_COUNT else 0)
    return replace(request, allocation_mode=mode, count=count)


def _with_requests(
    containers: tuple[Container, ...], *, host_network: bool
) -> tuple[Container, ...]:
    """Return containers that request what they limit, unless they say otherwise."""
    return tuple(_completed(each, host_network=host_network) for each in containers)


def _completed(container: Container, *, host_network: bool) -> Container:
    resources = container.resources
    if resources.limits:
        requests = {**resources.limits, **resources.requests}
        container = replace(container, resources=replace(resources, requests=requests))
    if host_network:
        ports = tuple(
            port if port.host_port else replace(port, host_port=port.container_port)
            for port in container.ports
        )
        container = replace(container, ports=ports)
    return container


def _with_tolerations(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Return tolerations with those of nodes that are not ready for a short time."""
    added = [
        Toleration(key, operator="Exists", effect="NoExecute", toleration_seconds=_TOLERATED_S)
        for key in _NOT_READY
        if not any(t.key in (key, "") and t.effect in ("NoExecute", "") for t in tolerations)
    ]
    return (*tolerations, *added)


def _priority(pod: Pod, classes: PriorityClasses) -> tuple[int, str | None, str]:
    """Return a pod's priority, its preemption policy, and a sentence if they are a guess."""
    name, policy = pod.spec.priority_class_name, pod.spec.preemption_policy
    if not name:
        return 0, policy, ""
    known = classes.get(name)
    if known is not None:
        return known[0], policy or known[1], ""
    note = (
        f"No pod of the cluster has the priority class {name!r}, so that its value is not known: "
        "0 is assumed. Set spec.priority to have another one."
    )
    return 0, policy, note
