"""Quantities of Kubernetes as values of expressions.

*Source*: k8s.io/apimachinery pkg/api/resource quantity.go, amount.go, suffix.go (0.36);
k8s.io/apiserver pkg/cel/library/quantity.go (0.36).
"""

from __future__ import annotations

import math
import re

from plugins.cel.errors import CelError
from plugins.cel.values import INT_MAX, INT_MIN, Opaque, Value

MAX_EXPONENT = 1000
"""Largest exponent, either sign, that is read.

# Differs: kube-scheduler reads any exponent of 32 bits, and may not come back from comparing
two of them.
"""

MAX_DIGITS = 1000
"""Longest number that is read; Python takes quadratic time for converting digits."""

_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*[+-]?[0-9]*)"
)
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = -9
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES = {power: suffix for suffix, power in _DECIMAL.items()}

WRONG_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"


class Quantity(Opaque):
    """``unscaled * 10**scale``; ``exact`` where kube-scheduler leaves 64 bits for a decimal.

    ``form`` is how it was written: ``binary``, ``decimal`` or ``exponent``; a sum is ``computed``.
    """

    __slots__ = ("computed", "exact", "form", "scale", "unscaled")
    type_name = "kubernetes.Quantity"
    go_native = "*resource.Quantity"

    def __init__(self, unscaled: int, scale: int, exact: bool, form: str | None = None) -> None:
        self.unscaled = unscaled
        self.scale = scale
        self.exact = exact
        self.form = form or "decimal"
        self.computed = form is None

    def compare(self, other: Quantity) -> int:
        """Return -1, 0 or 1."""
        mine, theirs, _ = _aligned(self, other)
        return (mine > theirs) - (mine < theirs)

    def same(self, other: Opaque) -> bool | None:
        """Report whether the two are the same amount; None where the other is a sum.

        Notes
        -----
        *Source*: k8s.io/apiserver pkg/cel/quantity.go, ``Quantity.Equal`` (0.36): sums are
        pointers, which it does not take for quantities.
        """
        if not isinstance(other, Quantity) or other.computed:
            return None
        return self.compare(other) == 0

    def __str__(self) -> str:
        if not self.unscaled:
            return "0"
        whole, rest = divmod(self.unscaled * 10 ** max(0, self.scale), 10 ** max(0, -self.scale))
        if self.form == "binary" and not rest and abs(whole) >= 1024:
            power = 0
            while whole % 1024 == 0 and power < 6:
                whole //= 1024
                power += 1
            return f"{whole}{_BINARY_SUFFIXES[power]}"
        amount, exponent = self.unscaled, self.scale
        while amount % 10 == 0:
            amount //= 10
            exponent += 1
        amount *= 10 ** (exponent % 3)
        exponent -= exponent % 3
        if self.form == "exponent":
            return f"{amount}e{exponent}" if exponent else str(amount)
        return f"{amount}{_DECIMAL_SUFFIXES.get(exponent, '')}"


def _aligned(first: Quantity, second: Quantity) -> tuple[int, int, int]:
    """Return both numbers, without fractions, and the power of ten they are multiples of."""
    scale = min(first.scale, second.scale)
    return (
        first.unscaled * 10 ** (first.scale - scale),
        second.unscaled * 10 ** (second.scale - scale),
        scale,
    )


def parsed(text: str) -> Quantity:
    """Return the quantity that the text stands for.

    Raises
    ------
    CelError
        With kube-scheduler's text.
    """
    match = _FORM.fullmatch(text)
    if not text or match is None:
        raise CelError(WRONG_FORM)
    negative = match["sign"] == "-"
    whole = match["whole"].lstrip("0") or "0"
    part = match["part"] or ""
    suffix = match["suffix"]
    if len(whole) + len(part) > MAX_DIGITS:
        raise CelError(WRONG_NUMBER)
    if match["part"] is None and whole == "0" and not suffix:
        return Quantity(0, 0, False, "decimal")
    exponent, form = _exponent(suffix)
    binary = form == "binary"
    digits = whole + part
    unscaled = int(digits)
    if _fits(whole, part, exponent, binary):
        value = unscaled << exponent if binary else unscaled
        scale = (0 if binary else exponent) - len(part)
        if scale >= _NANO and value <= INT_MAX:
            return Quantity(-value if negative else value, scale, False, form)
    if not (match["whole"] or part):
        raise CelError(WRONG_NUMBER)
    amount = _exact(unscaled, len(part), exponent, binary)
    return Quantity(-amount[0] if negative else amount[0], amount[1], True, form)


def _exponent(suffix: str) -> tuple[int, str]:
    """Return the exponent, of two or of ten, and how the number is written."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return _BINARY[suffix], "binary"
    if len(suffix) > 1 and suffix[0] in "eE":
        number = suffix[1:]
        if re.fullmatch(r"[+-]?[0-9]{1,12}", number) and abs(int(number)) <= MAX_EXPONENT:
            return int(number), "exponent"
    raise CelError(WRONG_SUFFIX)


def _fits(whole: str, part: str, exponent: int, binary: bool) -> bool:
    """Report whether the number is short enough for 64 bits."""
    if binary:
        return not part and 15 - len(whole) - int(exponent * 3 / 10) - 1 >= 0
    return 18 - len(whole) - len(part) >= 0


def _exact(unscaled: int, places: int, exponent: int, binary: bool) -> tuple[int, int]:
    """Return number and scale, rounded up to nanos; a binary number is capped at 64 bits."""
    scale = -places
    if binary:
        unscaled <<= exponent
    else:
        scale += exponent
    if scale < _NANO:
        unscaled = -(-unscaled // 10 ** (_NANO - scale))
        scale = _NANO
    if binary and unscaled * 10 ** max(0, scale) > INT_MAX * 10 ** max(0, -scale):
        unscaled, scale = INT_MAX, 0
    return unscaled, scale


def is_quantity(text: str) -> bool:
    """Report whether the text is a quantity."""
    try:
        parsed(text)
    except CelError:
        return False
    return True


def as_integer(value: Quantity) -> int | None:
    """Return the whole number, or None for a fraction and for what needs more than 64 bits."""
    if value.exact or value.scale < 0:
        return None
    whole = value.unscaled * 10**value.scale if value.scale <= 18 or not value.unscaled else None
    return whole if whole is not None and INT_MIN <= whole <= INT_MAX else None


def integer(value: Quantity) -> int:
    """Return the whole number.

    Raises
    ------
    CelError
        It is none, or too large.
    """
    whole = as_integer(value)
    if whole is None:
        raise CelError("cannot convert value to integer")
    return whole


def approximate(value: Quantity) -> float:
    """Return the nearest double, as kube-scheduler computes it: two roundings."""
    try:
        base = float(value.unscaled)
    except OverflowError:
        base = math.copysign(math.inf, value.unscaled)
    if value.scale == 0:
        return base
    power = 0.0 if value.scale < -323 else math.inf if value.scale > 308 else None
    return base * (float(f"1e{value.scale}") if power is None else power)


def total(first: Quantity, second: Quantity) -> Quantity:
    """Return the sum.

    # Differs: kube-scheduler changes the first one where it has more than 64 bits, so that the
    device's own capacity is another one from then on.
    """
    if not (first.exact or second.exact):
        if second.unscaled == 0:
            return Quantity(first.unscaled, first.scale, False)
        if first.unscaled == 0:
            return Quantity(second.unscaled, second.scale, False)
    mine, theirs, scale = _aligned(first, second)
    exact = first.exact or second.exact
    fits = all(INT_MIN <= each <= INT_MAX for each in (mine, theirs, mine + theirs))
    return Quantity(mine + theirs, scale, exact or not fits)


def of_integer(number: int) -> Quantity:
    """Return the whole number as a quantity."""
    return Quantity(number, 0, False)


def difference(first: Quantity, second: Quantity) -> Quantity:
    """Return the first without the second."""
    if second.unscaled == INT_MIN and not (first.exact or second.exact):
        # Its negation overflows in kube-scheduler: it is added, where the sum has 64 bits.
        found = total(first, second)
        if not found.exact:
            return found
    return total(first, Quantity(-second.unscaled, second.scale, second.exact))


def sign(value: Quantity) -> int:
    """Return -1, 0 or 1."""
    return (value.unscaled > 0) - (value.unscaled < 0)


IMPLEMENTATIONS: dict[str, Value] = {
    "string_to_quantity": parsed,
    "is_quantity_string": is_quantity,
    "quantity_sign": sign,
    "quantity_is_greater_than": lambda first, second: first.compare(second) > 0,
    "quantity_is_less_than": lambda first, second: first.compare(second) < 0,
    "quantity_compare_to": lambda first, second: first.compare(second),
    "quantity_get_float": approximate,
    "quantity_get_int": integer,
    "quantity_is_integer": lambda value: as_integer(value) is not None,
    "quantity_add": total,
    "quantity_add_int": lambda first, number: total(first, of_integer(number)),
    "quantity_sub": difference,
    "quantity_sub_int": lambda first, number: difference(first, of_integer(number)),
}
