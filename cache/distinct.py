"""The distinct values of an array.

``np.unique`` does the same, but it imports ``numpy.ma`` on its first call: this takes 40 ms on a
fast core and 300 ms on a slow one, during the cycle of the first pod that fits on no node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def distinct(values: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Return the distinct values of a one-dimensional array, ascending.

    *Cost*: that of sorting.
    """
    return _firsts(np.sort(values))[0]


def distinct_with_inverse(
    values: npt.NDArray[np.integer],
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.intp]]:
    """Return the distinct values of a one-dimensional array, and each value's index among them.

    Returns
    -------
    codes
        shape (n_codes,), ascending.
    which
        intp, shape (n_values,): ``codes[which[i]] == values[i]``.

    *Cost*: that of sorting.
    """
    order = np.argsort(values, kind="stable")
    codes, is_first = _firsts(values[order])
    which = np.empty(len(values), dtype=np.intp)
    which[order] = np.cumsum(is_first) - 1
    return codes, which


def _firsts(
    ordered: npt.NDArray[np.integer],
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.bool_]]:
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first], is_first
