"""What is written into claims: devices, parameters for drivers, and the nodes that can use them.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go (Allocate, createNodeSelector).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cache.device_objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from cache.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from plugins.dynamic_resources.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cache.device_objects import DeviceClassConfiguration, ResourceClaim
    from plugins.dynamic_resources.requests import Request
    from plugins.dynamic_resources.taken_devices import Taken


def allocation_result(
    claim: ResourceClaim,
    requests: Sequence[Request],
    taken: Sequence[Taken],
    node_name: str,
    share_ids: Callable[[], str],
) -> AllocationResult:
    """Return the allocation of a claim.

    Parameters
    ----------
    requests
        The requests of the claim, with the chosen alternative of each prioritized list.
    taken
        Its devices, in the order of the results.
    share_ids
        Returns a new random id for a share of a device.

    Raises
    ------
    AllocationError
        When a device has a node selector that cannot be merged with others.
    """
    try:
        selector = _node_selector(taken, node_name)
    except ValueError as error:
        raise AllocationError(
            f"create NodeSelector for claim {claim.metadata.name}: {error}"
        ) from error
    results = tuple(_result(each, share_ids) for each in taken)
    return AllocationResult(DeviceAllocationResult(results, _configs(claim, requests)), selector)


def with_new_shares(
    results: tuple[AllocationResult, ...], share_ids: Callable[[], str]
) -> tuple[AllocationResult, ...]:
    """Return allocations of the same devices, each share of a device with an id of its own."""
    if not any(each.share_id is not None for one in results for each in one.devices.results):
        return results
    return tuple(
        replace(
            one,
            devices=replace(
                one.devices,
                results=tuple(
                    each if each.share_id is None else replace(each, share_id=share_ids())
                    for each in one.devices.results
                ),
            ),
        )
        for one in results
    )


def _result(taken: Taken, share_ids: Callable[[], str]) -> DeviceRequestAllocationResult:
    request, device = taken.request, taken.device
    return DeviceRequestAllocationResult(
        request=request.result_name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if request.is_admin else None,
        tolerations=request.tolerations,
        binding_conditions=device.device.binding_conditions or (),
        binding_failure_conditions=device.device.binding_failure_conditions or (),
        share_id=share_ids() if device.is_shared else None,
        consumed_capacity={name: amount.text for name, amount in taken.consumed.items()},
    )


# --- parameters -------------------------------------------------------------------------------


def _configs(
    claim: ResourceClaim, requests: Sequence[Request]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Return the parameters of the classes, each class once, and then those of the claim.

    Parameters of the claim are repeated for each request that they name, as in kube-scheduler.
    """
    of_class: dict[str, list[Request]] = {}
    for request in requests:
        if request.device_class is not None:
            of_class.setdefault(request.device_class.metadata.name, []).append(request)
    configs = [
        DeviceAllocationConfiguration(
            "FromClass", tuple(each.result_name for each in of_one), config.opaque
        )
        for of_one in of_class.values()
        for config in _class_configs(of_one[0])
    ]
    for own in claim.spec.devices.config:
        config = DeviceAllocationConfiguration("FromClaim", own.requests, own.opaque)
        if not own.requests:
            configs.append(config)
            continue
        configs += [
            config
            for request in requests
            if request.name in own.requests or request.result_name in own.requests
        ]
    return tuple(configs)


def _class_configs(request: Request) -> tuple[DeviceClassConfiguration, ...]:
    return () if request.device_class is None else request.device_class.spec.config


# --- nodes ------------------------------------------------------------------------------------


def _node_selector(taken: Iterable[Taken], node_name: str) -> NodeSelector | None:
    """Return the nodes that can use all devices; None for all nodes."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in taken:
        device, spec = each.device.device, each.device.slice.spec
        rule = device if spec.per_device_node_selection else spec
        if rule.node_name is not None or device.binds_to_node:
            name = NodeSelectorRequirement("metadata.name", "In", (node_name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))
        if rule.node_selector is None:
            continue
        terms = rule.node_selector.node_selector_terms
        if len(terms) > 1:
            raise ValueError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _merge(term.match_fields, fields)
            _merge(term.match_expressions, expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _merge(
    new: Iterable[NodeSelectorRequirement], requirements: list[NodeSelectorRequirement]
) -> None:
    for requirement in new:
        if not any(
            (known.key, known.operator, set(known.values))
            == (requirement.key, requirement.operator, set(requirement.values))
            for known in requirements
        ):
            requirements.append(requirement)
