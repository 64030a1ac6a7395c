"""Amounts and numbers as texts for people."""

from __future__ import annotations

from typing import Final

from cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY

_NARROW_SPACE: Final = "\N{NARROW NO-BREAK SPACE}"
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def count(number: float) -> str:
    """Return a whole number in groups of three digits: ``20 000``."""
    return f"{int(number):,}".replace(",", _NARROW_SPACE)


def percent(share: float) -> str:
    """Return a share as a percentage; only nothing at all is ``0 %``."""
    if 0 < share < 0.01:
        return f"<{_NARROW_SPACE}1{_NARROW_SPACE}%"
    return f"{100 * share:.0f}{_NARROW_SPACE}%"


def amount(number: float, resource: str) -> str:
    """Return an amount of a resource: cores for CPU, binary units for bytes, else a number."""
    if resource == CPU:
        return _cores(number)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        return _bytes(number)
    return count(number)


def unit(resource: str) -> str:
    """Return the unit of amounts where it is not in their texts."""
    return "cores" if resource == CPU else ""


def _cores(milli: float) -> str:
    cores = milli / 1000
    if cores >= 100 or cores == int(cores):
        return count(round(cores))
    return f"{cores:.1f}" if cores >= 10 else f"{cores:.2f}".rstrip("0").rstrip(".")


def _bytes(number: float) -> str:
    size, power = float(number), 0
    while size >= 1024 and power < len(_UNITS) - 1:
        size, power = size / 1024, power + 1
    digits = f"{size:.0f}" if size >= 100 or size == int(size) else f"{size:.1f}"
    return f"{digits}{_NARROW_SPACE}{_UNITS[power]}" if power else digits
