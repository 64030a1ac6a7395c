"""How much of a device's capacities a request consumes.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
consumable_capacity.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cache.quantity import QuantityError, exact_value, quantity_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from cache.device_objects import (
        CapacityRequestPolicy,
        CapacityRequestPolicyRange,
        DeviceCapacity,
    )
    from cache.objects import Quantity

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")


class Amount(NamedTuple):
    """An exact amount, and how the API writes it."""

    exact: int | Fraction
    text: Quantity


def consumed_capacity(
    capacities: Mapping[str, DeviceCapacity], requested: Mapping[str, Quantity]
) -> Mapping[str, Amount] | None:
    """Return what a request consumes of each capacity of a device; None if it cannot have it.

    Parameters
    ----------
    requested
        The amounts that are asked for. Of all other capacities the default of the policy is
        consumed or, without a policy, the whole capacity.

    Notes
    -----
    # Differs: an amount or a policy that the API server lets nobody write (no quantity, steps of
    zero, steps without a minimum) makes kube-scheduler panic; here the device is not used.
    """
    if not requested.keys() <= capacities.keys():
        return None
    consumed: dict[str, Amount] = {}
    try:
        for name, capacity in capacities.items():
            amount = _amount(requested.get(name), capacity)
            if _violates(amount, capacity.request_policy):
                return None
            # A capacity that is no number is found here, not when amounts are compared.
            exact_value(capacity.value)
            consumed[name] = amount
    except (QuantityError, ZeroDivisionError):
        return None
    return consumed


def fits(
    capacities: Mapping[str, DeviceCapacity],
    consumed: Mapping[str, Amount],
    used: Mapping[str, int | Fraction],
    taken: Mapping[str, int | Fraction],
) -> bool:
    """Return whether capacities suffice for what a request consumes.

    Parameters
    ----------
    used
        What claims consume already.
    taken
        What the search has taken for other requests.
    """
    return all(
        amount.exact + used.get(name, 0) + taken.get(name, 0) <= exact_value(capacities[name].value)
        for name, amount in consumed.items()
    )


def _amount(requested: Quantity | None, capacity: DeviceCapacity) -> Amount:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        return _exact(capacity.value if default is None else default)
    if policy is None:
        return _exact(requested)
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_to_range(requested, policy.valid_range, policy.valid_range.min)
    wanted = exact_value(requested)
    for value in policy.valid_values:
        if wanted <= exact_value(value):
            return _exact(value)
    return _exact(requested)


def _rounded_to_range(
    requested: Quantity, valid: CapacityRequestPolicyRange, minimum: Quantity
) -> Amount:
    if exact_value(requested) < exact_value(minimum):
        return _exact(minimum)
    if valid.step is None:
        return _exact(requested)
    least, step = quantity_value(minimum), quantity_value(valid.step)
    steps = -(-(quantity_value(requested) - least) // step)
    value = least + step * steps
    return Amount(value, canonical_text(value))


def _violates(amount: Amount, policy: CapacityRequestPolicy | None) -> bool:
    """Return whether an amount is none that the policy allows."""
    if policy is None:
        return False
    if policy.default is not None and amount.exact == exact_value(policy.default):
        return False
    valid = policy.valid_range
    if valid is None:
        values = policy.valid_values
        return bool(values) and all(amount.exact != exact_value(value) for value in values)
    if valid.max is not None and amount.exact > exact_value(valid.max):
        return True
    if valid.step is None:
        return False
    if valid.min is None:
        return True
    whole = quantity_value(amount.text)
    return (whole - quantity_value(valid.min)) % quantity_value(valid.step) != 0


def _exact(text: Quantity) -> Amount:
    return Amount(exact_value(text), text)


def canonical_text(value: int) -> str:
    """Return how the API writes a whole number of binary format.

    *Source*: k8s.io/apimachinery 0.36, pkg/api/resource quantity.go, CanonicalizeBytes.
    """
    base, suffixes = (1000, _DECIMAL) if abs(value) < 1024 else (1024, _BINARY)
    power = 0
    while value and value % base == 0 and power < len(suffixes) - 1:
        value //= base
        power += 1
    return f"{value}{suffixes[power]}"
