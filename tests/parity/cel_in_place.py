"""Sums as kube-scheduler computes them: in place, where a number has more than 64 bits.

Its quantities share the pointer to a large decimal, so that ``add`` and ``sub`` change the value
that they start from, the device's own capacity included; a comparison with a large number makes a
small one large. Berth does not do that (``plugins/cel/quantity.py``). A difference between the two
is this one if Berth gives kube-scheduler's answer with these functions.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plugins.cel.functions import IMPLEMENTATIONS
from plugins.cel.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = (".add(", ".sub(")
"""One of them is in each expression that differs."""


class _Shared(Quantity):
    """A quantity whose number is another one's."""

    __slots__ = ("_origin",)

    def __init__(self, origin: Quantity) -> None:
        self._origin = origin
        self.exact = True
        self.form = origin.form
        self.computed = True

    @property
    def unscaled(self) -> int:  # type: ignore[override]
        return self._origin.unscaled

    @unscaled.setter
    def unscaled(self, value: int) -> None:
        self._origin.unscaled = value

    @property
    def scale(self) -> int:  # type: ignore[override]
        return self._origin.scale

    @scale.setter
    def scale(self, value: int) -> None:
        self._origin.scale = value


def _in_place(compute: Callable[[Quantity, Any], Quantity]) -> Callable[[Quantity, Any], Quantity]:
    def computed(first: Quantity, second: Any) -> Quantity:
        found = compute(first, second)
        if not first.exact:
            return found
        first.unscaled, first.scale = found.unscaled, found.scale
        return _Shared(first)

    return computed


def _comparing(compare: Callable[[Quantity, Quantity], Any]) -> Callable[[Quantity, Quantity], Any]:
    def compared(first: Quantity, second: Quantity) -> Any:
        first.exact = first.exact or second.exact
        return compare(first, second)

    return compared


_WRAPPED = {
    **dict.fromkeys(
        ("quantity_add", "quantity_add_int", "quantity_sub", "quantity_sub_int"), _in_place
    ),
    **dict.fromkeys(
        ("quantity_is_greater_than", "quantity_is_less_than", "quantity_compare_to"), _comparing
    ),
}


@contextmanager
def sums_in_place() -> Iterator[None]:
    """Compile expressions whose sums change what they start from, as long as this lasts."""
    usual = {name: IMPLEMENTATIONS[name] for name in _WRAPPED}
    try:
        for name, wrap in _WRAPPED.items():
            IMPLEMENTATIONS[name] = wrap(usual[name])
        yield
    finally:
        IMPLEMENTATIONS.update(usual)
