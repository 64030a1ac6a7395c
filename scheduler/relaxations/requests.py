"""Pods that request less of a resource, and amounts as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cache.quantity import exact_milli_value, exact_value
from cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_restartable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from cache.objects import Container, Pod, PodSpec, Quantity

_UNITS: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount_text(resource: str, amount: int) -> str:
    """Return an exact amount in the shortest usual form: ``500m``, ``2``, ``4Gi``, ``1000001``."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        unit, suffix = 1, ""
        for power, name in enumerate(_UNITS, start=1):
            if amount and amount % 1024**power == 0:
                unit, suffix = 1024**power, name
        return f"{amount // unit}{suffix}"
    return str(amount)


def requesting(pod: Pod, resource: str, target: int) -> Pod:
    """Return the pod with requests of a resource that add up to at most ``target``.

    The containers with the largest requests give up first. Overhead stays, as its RuntimeClass
    sets it: a target below it leaves the containers nothing.

    Parameters
    ----------
    target
        Milli-CPU for ``cpu``, else bytes or pieces; not negative.
    """
    spec = pod.spec
    left = max(target - _of(spec.overhead, resource), 0)
    inits = list(spec.init_containers)
    sidecars = [at for at, each in enumerate(inits) if is_restartable(each)]
    running = [*spec.containers, *(inits[at] for at in sidecars)]
    running = _together(running, resource, left)
    count = len(spec.containers)
    for at, each in zip(sidecars, running[count:], strict=True):
        inits[at] = each
    beside: int | Fraction = 0
    for at, each in enumerate(inits):
        if is_restartable(each):
            beside += _of(each.resources.requests, resource)
        else:
            inits[at] = _at_most(each, resource, max(left - beside, 0))
    spec = replace(spec, containers=tuple(running[:count]), init_containers=tuple(inits))
    return replace(pod, spec=_pod_level_at_most(spec, resource, left))


def _together(containers: list[Container], resource: str, limit: int | Fraction) -> list[Container]:
    """Return containers whose requests add up to at most ``limit``."""
    amounts = [_of(each.resources.requests, resource) for each in containers]
    over = sum(amounts) - limit
    reduced = list(containers)
    for at in sorted(range(len(containers)), key=lambda at: -amounts[at]):
        if over <= 0:
            break
        given_up = min(over, amounts[at])
        reduced[at] = _at_most(reduced[at], resource, amounts[at] - given_up)
        over -= given_up
    return reduced


def _at_most(container: Container, resource: str, limit: int | Fraction) -> Container:
    requests = container.resources.requests
    if _of(requests, resource) <= limit:
        return container
    resources = replace(container.resources, requests=_with(requests, resource, limit))
    return replace(container, resources=resources)


def _pod_level_at_most(spec: PodSpec, resource: str, limit: int | Fraction) -> PodSpec:
    if spec.resources is None or _of(spec.resources.requests, resource) <= limit:
        return spec
    requests = _with(spec.resources.requests, resource, limit)
    return replace(spec, resources=replace(spec.resources, requests=requests))


def _with(
    requests: Mapping[str, Quantity], resource: str, amount: int | Fraction
) -> Mapping[str, Quantity]:
    whole = int(amount)
    return {**requests, resource: f"{whole}m" if resource == CPU else str(whole)}


def _of(quantities: Mapping[str, Quantity], resource: str) -> int | Fraction:
    text = quantities.get(resource)
    if text is None:
        return 0
    return exact_milli_value(text) if resource == CPU else exact_value(text)
