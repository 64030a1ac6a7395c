"""Report the requests and limits of each pod: ``/metrics/resources``.

*Source*: pkg/scheduler/metrics/resources/resources.go and k8s.io/component-helpers/resource (1.36).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from cache.pod_info import is_terminal
from cache.quantity import QuantityError, exact_milli_value, exact_value, rounded
from cache.resources import CPU, MalformedObjectError, is_restartable, pod_amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cache.objects import Pod, Quantity


def pod_limits(pod: Pod) -> dict[str, int]:
    """Return what a pod may use, by resource name: CPU in milli-cores, else base units.

    The containers' limits in sum, or those of the largest init container if they are more; limits
    of the pod itself come before both, and its overhead on top of what is limited at all. What is
    left of a limit while a container is resized is not looked at.
    """
    spec = pod.spec
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, _amounts(container.resources.limits))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        limits = _amounts(container.resources.limits)
        if is_restartable(container):
            _add(total, limits)
            _add(sidecars, limits)
            limits = dict(sidecars)
        else:
            _add(limits, sidecars)
        for name, amount in limits.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    if spec.resources is not None:
        total.update(_amounts(spec.resources.limits))
    for name, amount in _amounts(spec.overhead).items():
        if total.get(name):
            total[name] += amount
    return total


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        name: rounded(exact_milli_value(text) if name == CPU else exact_value(text))
        for name, text in quantities.items()
    }


_METRICS: Final = (
    (
        "kube_pod_resource_request",
        "Resources that pods request, as the scheduler and the kubelet see it.",
        lambda pod: pod_amounts(pod)[0],
    ),
    (
        "kube_pod_resource_limit",
        "Resources that pods may use, as the scheduler and the kubelet see it.",
        pod_limits,
    ),
)
_BYTES: Final = frozenset({"memory", "storage", "ephemeral-storage"})
_BLOCK: Final = 200


def pod_resources(pods: Iterable[Pod]) -> bytes:
    """Return the metrics of all pods that have not ended, in Prometheus's text format.

    *Cost*: some 20 us for a pod; the interpreter is given up every few milliseconds.
    """
    alive = [pod for pod in pods if not (pod.spec.node_name and is_terminal(pod))]
    parts: list[str] = []
    for name, text, amounts_of in _METRICS:
        parts.append(f"# HELP {name} {text}\n# TYPE {name} gauge\n")
        for number, pod in enumerate(alive):
            if number % _BLOCK == 0:
                time.sleep(0)
            try:
                amounts = amounts_of(pod)
            except (MalformedObjectError, QuantityError):
                continue
            spec = pod.spec
            priority = "" if spec.priority is None else str(spec.priority)
            start = (
                f'{name}{{namespace="{pod.metadata.namespace}",pod="{pod.metadata.name}",'
                f'node="{spec.node_name}",scheduler="{spec.scheduler_name}",'
                f'priority="{priority}",resource="'
            )
            parts += [
                f'{start}{resource}",unit="{_unit(resource)}"}} {_value(resource, amount)}\n'
                for resource, amount in amounts.items()
                if amount
            ]
    return "".join(parts).encode()


def _unit(resource: str) -> str:
    if resource == CPU:
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _value(resource: str, amount: int) -> str:
    if resource == CPU:
        return f"{amount / 1000:g}" if amount < 1_000_000 else repr(amount / 1000)
    return str(amount)
