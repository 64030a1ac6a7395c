"""The LimitRanges of a namespace: what they fill in, and the pods that they refuse.

*Source*: plugin/pkg/admission/limitranger/admission.go and SetDefaults_LimitRange of
pkg/apis/core/v1/defaults.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cache.quantity import exact_value
from scheduler.what_if.limit_objects import LIMITS, REQUESTS, pod_amounts_of, shown_amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from fractions import Fraction

    from cache.objects import Container, Pod, Quantity
    from scheduler.what_if.limit_objects import Amounts, LimitRange, LimitRangeItem

CONTAINER: Final = "Container"
POD: Final = "Pod"


def completed(pod: Pod, ranges: Iterable[LimitRange]) -> Pod:
    """Return a pod with the requests and limits that LimitRanges fill in."""
    spec = pod.spec
    for each in ranges:
        for limit in map(_with_defaults, each.spec.limits):
            if limit.type == CONTAINER:
                spec = replace(
                    spec,
                    containers=tuple(_filled(c, limit) for c in spec.containers),
                    init_containers=tuple(_filled(c, limit) for c in spec.init_containers),
                )
    return pod if spec is pod.spec else replace(pod, spec=spec)


def refusal(pod: Pod, ranges: Iterable[LimitRange]) -> str:
    """Return why LimitRanges refuse a pod, or nothing."""
    found: list[str] = []
    for each in ranges:
        for limit in each.spec.limits:
            if limit.type == CONTAINER:
                for container in (*pod.spec.containers, *pod.spec.init_containers):
                    resources = container.resources
                    requests, limits = _exact(resources.requests), _exact(resources.limits)
                    found += _violations(limit, requests, limits)
            elif limit.type == POD:
                requests = pod_amounts_of(pod, REQUESTS, overhead=False)
                limits = pod_amounts_of(pod, LIMITS, overhead=False)
                found += _violations(limit, requests, limits)
    return "; ".join(dict.fromkeys(found))


def _with_defaults(limit: LimitRangeItem) -> LimitRangeItem:
    """Return what the API server would store of an item that nobody has sent to it."""
    if limit.type != CONTAINER:
        return limit
    default = {**limit.max, **limit.default}
    return replace(
        limit, default=default, default_request={**limit.min, **default, **limit.default_request}
    )


def _filled(container: Container, limit: LimitRangeItem) -> Container:
    resources = container.resources
    return replace(
        container,
        resources=replace(
            resources,
            limits={**limit.default, **resources.limits},
            requests={**limit.default_request, **resources.requests},
        ),
    )


def _violations(limit: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, text in limit.min.items():
        head = f"minimum {name} usage per {limit.type} is {text}"
        if name not in requests:
            yield f"{head}.  No request is specified"
            continue
        yield from _beyond(head, name, (requests, limits), exact_value(text), sign=-1)
    for name, text in limit.max.items():
        head = f"maximum {name} usage per {limit.type} is {text}"
        if name not in limits:
            yield f"{head}.  No limit is specified"
            continue
        yield from _beyond(head, name, (requests, limits), exact_value(text), sign=1)
    for name, text in limit.max_limit_request_ratio.items():
        head = f"{name} max limit to request ratio per {limit.type} is {text}, but"
        request, bound = requests.get(name, 0), limits.get(name, 0)
        if not request:
            yield f"{head} no request is specified or request is 0"
        elif not bound:
            yield f"{head} no limit is specified or limit is 0"
        elif bound > request * exact_value(text):
            yield f"{head} provided ratio is {float(bound) / float(request):f}"


def _beyond(
    head: str,
    name: str,
    amounts: tuple[Amounts, Amounts],
    bound: int | Fraction,
    *,
    sign: int,
) -> Iterator[str]:
    """Yield what is wrong with a request or a limit that is beyond a bound: the first of them."""
    for noun, each in zip(("request", "limit"), amounts, strict=True):
        amount = each.get(name)
        if amount is not None and sign * amount > sign * bound:
            yield f"{head}, but {noun} is {shown_amount(name, amount)}"
            return


def _exact(quantities: Mapping[str, Quantity]) -> Amounts:
    return {name: exact_value(text) for name, text in quantities.items()}
