"""Whether values fit the types of an overload while an expression runs.

*Source*: github.com/google/cel-go common/types/types.go, ``IsAssignableRuntimeType`` (0.26).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plugins.cel import type_terms as types
from plugins.cel.addresses import Cidr, Ip
from plugins.cel.quantity import Quantity
from plugins.cel.semver import Semver
from plugins.cel.urls import Url
from plugins.cel.values import (
    Duration,
    Timestamp,
    Uint,
    Value,
    is_list,
    is_map,
    type_name,
)

if TYPE_CHECKING:
    from plugins.cel.type_terms import Type

Fits = Callable[[Value], bool]

_RUNTIME_NAMES = {
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "null": "null_type",
}


CLASSES: dict[Type, type] = {
    types.STRING: str,
    types.INT: int,
    types.BOOL: bool,
    types.UINT: Uint,
    types.DOUBLE: float,
    types.BYTES: bytes,
    types.TIMESTAMP: Timestamp,
    types.DURATION: Duration,
    types.QUANTITY: Quantity,
    types.SEMVER: Semver,
    types.IP: Ip,
    types.CIDR: Cidr,
    types.URL: Url,
}
"""Types whose values all have one class."""


def classes(arguments: tuple[Type, ...]) -> tuple[type, ...] | None:
    """Return the classes of the arguments, or None where a class does not say it all."""
    found = tuple(CLASSES[each] for each in arguments if each in CLASSES)
    return found if len(found) == len(arguments) else None


def guard(arguments: tuple[Type, ...]) -> Callable[[tuple[Value, ...]], bool] | None:
    """Return the test whether values fit the types, or None if all do."""
    fits = tuple(_fits(each) for each in arguments)
    if all(each is None for each in fits):
        return None

    def test(given: tuple[Value, ...]) -> bool:
        for fit, value in zip(fits, given, strict=True):
            if fit is not None and not fit(value):
                return False
        return True

    return test


def _fits(type_: Type) -> Fits | None:
    if type_.kind in ("param", "dyn", "any"):
        return None
    if type_.kind == "list":
        element = _fits(type_.parameters[0])

        def fits_list(value: Value) -> bool:
            return is_list(value) and (element is None or not value or element(value[0]))

        return fits_list
    if type_.kind == "map":
        return _fits_map(_fits(type_.parameters[0]), _fits(type_.parameters[1]))
    exact = CLASSES.get(type_)
    if exact is not None:
        return lambda value: type(value) is exact
    name = _RUNTIME_NAMES.get(type_.name, type_.name)
    return lambda value: type_name(value) == name


def _fits_map(key: Fits | None, element: Fits | None) -> Fits:
    def fits(value: Value) -> bool:
        if not is_map(value):
            return False
        first = next(iter(value.each_key()), None)
        if first is None or not value.entries:
            return True
        return (key is None or key(first)) and (element is None or element(value.find(first)))

    return fits
