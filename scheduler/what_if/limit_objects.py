"""LimitRanges and ResourceQuotas, which no scheduling cycle reads, and amounts of pods for them.

*Source*: k8s.io/api core/v1, and PodRequests and PodLimits of k8s.io/component-helpers (1.36).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

from cache.objects import EMPTY_QUANTITIES, ApiStruct, Container, Quantity
from cache.quantity import QuantityError, exact_value
from cache.resources import MalformedObjectError, is_restartable
from cache.workload_objects import WorkloadMeta

if TYPE_CHECKING:
    from cache.objects import Pod

Amounts: TypeAlias = dict[str, int | Fraction]

REQUESTS: Final = "requests"
LIMITS: Final = "limits"

_BINARY: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


class LimitRangeItem(ApiStruct, frozen=True):
    """What containers, pods or claims may request."""

    type: str = ""
    max: Mapping[str, Quantity] = EMPTY_QUANTITIES
    min: Mapping[str, Quantity] = EMPTY_QUANTITIES
    default: Mapping[str, Quantity] = EMPTY_QUANTITIES
    default_request: Mapping[str, Quantity] = EMPTY_QUANTITIES
    max_limit_request_ratio: Mapping[str, Quantity] = EMPTY_QUANTITIES


class LimitRangeSpec(ApiStruct, frozen=True):
    """The items of a LimitRange."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(ApiStruct, frozen=True):
    """Defaults and bounds for the pods of a namespace."""

    metadata: WorkloadMeta = WorkloadMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class ScopeRequirement(ApiStruct, frozen=True):
    """The pods that a quota counts."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(ApiStruct, frozen=True):
    """All of these must be true of a pod."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(ApiStruct, frozen=True):
    """What a namespace may use."""

    hard: Mapping[str, Quantity] = EMPTY_QUANTITIES
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(ApiStruct, frozen=True):
    """What it uses; without ``hard`` the quota was not counted yet."""

    hard: Mapping[str, Quantity] = EMPTY_QUANTITIES
    used: Mapping[str, Quantity] = EMPTY_QUANTITIES


class ResourceQuota(ApiStruct, frozen=True):
    """A limit on what all pods of a namespace use together."""

    metadata: WorkloadMeta = WorkloadMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


def amounts_of(container: Container, which: str) -> Mapping[str, Quantity]:
    """Return what a container requests, or its limits."""
    resources = container.resources
    return resources.requests if which == REQUESTS else resources.limits


def pod_amounts_of(pod: Pod, which: str, *, overhead: bool) -> Amounts:
    """Return what a pod requests by its spec, or its limits: CPU in CPUs."""
    spec = pod.spec
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _exact(amounts_of(container, which)))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        own = _exact(amounts_of(container, which))
        if is_restartable(container):
            _add(total, own)
            _add(sidecars, own)
            own = dict(sidecars)
        else:
            _add(own, sidecars)
        for name, amount in own.items():
            peak[name] = max(peak.get(name, amount), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, amount), amount)
    if spec.resources is not None:
        whole = spec.resources.requests if which == REQUESTS else spec.resources.limits
        total.update(_exact(whole))
    if overhead:
        more = _exact(spec.overhead)
        _add(total, more if which == REQUESTS else {k: v for k, v in more.items() if k in total})
    return total


def shown_amount(name: str, amount: int | Fraction) -> str:
    """Return an amount as Kubernetes writes it: ``1500m``, ``2Gi``."""
    if amount != int(amount):
        milli = Fraction(amount) * 1000
        return f"{-(-milli.numerator // milli.denominator)}m"
    whole = int(amount)
    if name.rpartition(".")[2] in ("memory", "ephemeral-storage") or "hugepages-" in name:
        for suffix, size in _BINARY:
            if whole and not whole % size:
                return f"{whole // size}{suffix}"
    return str(whole)


def _exact(quantities: Mapping[str, Quantity]) -> Amounts:
    return {name: exact_value(text) for name, text in quantities.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def check_amounts(made: LimitRange | ResourceQuota) -> None:
    """Read all amounts once.

    Raises
    ------
    MalformedObjectError
        With the path of one that cannot be read.
    """
    maps: list[tuple[str, Mapping[str, Quantity]]] = []
    if isinstance(made, ResourceQuota):
        maps += [
            ("spec.hard", made.spec.hard),
            ("status.hard", made.status.hard),
            ("status.used", made.status.used),
        ]
    else:
        for index, each in enumerate(made.spec.limits):
            maps += [
                (f"spec.limits[{index}].max", each.max),
                (f"spec.limits[{index}].min", each.min),
                (f"spec.limits[{index}].default", each.default),
                (f"spec.limits[{index}].defaultRequest", each.default_request),
                (f"spec.limits[{index}].maxLimitRequestRatio", each.max_limit_request_ratio),
            ]
    for path, amounts in maps:
        check_quantities(path, amounts)


def check_quantities(path: str, amounts: Mapping[str, Quantity]) -> None:
    """Read amounts; raises MalformedObjectError with the path of one that cannot be read."""
    for name, text in amounts.items():
        try:
            exact_value(text)
        except QuantityError as error:
            raise MalformedObjectError(f"{path}[{name}]", str(error)) from error
