"""Parsing of numbers and selectors, shared by the views of one node and of many nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cache.byte_bounded import remembered
from cache.label_selectors import Selector, selector_of_labels

if TYPE_CHECKING:
    from collections.abc import Mapping


def number_of(text: str | None, default: float) -> float:
    """Return a string as a number; ``default`` for None, other strings, infinity and NaN."""
    if text is None or "_" in text:
        return default
    try:
        number = float(text)
    except ValueError:
        return default
    return number if math.isfinite(number) else default


def selector_of(selector: Mapping[str, str] | Selector) -> Selector:
    """Return the selector of pods that have all these labels; a selector is returned unchanged.

    Raises
    ------
    ValueError
        When a key or value is not valid for a label.
    """
    if isinstance(selector, Selector):
        return selector
    return _of_labels(tuple(sorted(selector.items())))


@remembered(1 << 21)
def _of_labels(labels: tuple[tuple[str, str], ...]) -> Selector:
    return selector_of_labels(dict(labels))
