"""Groups nodes by their set of flags.

Thousands of nodes have a handful of different sets of flags ("too little cpu and memory"), so a
value that depends on the set alone is computed once for each set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cache.distinct import distinct_with_inverse

if TYPE_CHECKING:
    import numpy.typing as npt

    from plugins.framework.results import BoolArray, RowArray

_BITS = 32
"""Flags that go into one int64 beside the number of a pattern of those before."""


def distinct_patterns(flags: npt.NDArray[np.bool_]) -> tuple[BoolArray, RowArray]:
    """Return the distinct columns of a table of flags, and the index of each column's pattern.

    Parameters
    ----------
    flags
        bool, shape (n_flags, n_nodes).

    Returns
    -------
    patterns
        bool, shape (n_patterns, n_flags).
    which
        intp, shape (n_nodes,): ``patterns[which[i]]`` is column ``i``.

    Notes
    -----
    *Cost*: 0.2 ms for 5 000 nodes and every 32 flags.
    """
    which = np.zeros(flags.shape[1], dtype=np.intp)
    for first in range(0, len(flags), _BITS):
        bits = which.astype(np.int64)
        for flag in flags[first : first + _BITS]:
            bits = bits << 1 | flag
        _, which = distinct_with_inverse(bits)
    examples = np.zeros(int(which.max(initial=-1)) + 1, dtype=np.intp)
    examples[which] = np.arange(len(which))
    return flags[:, examples].T, which
