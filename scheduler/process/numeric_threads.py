"""Keep numeric libraries from starting threads."""

from __future__ import annotations

import os
from typing import Final

_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def start_no_numeric_threads() -> None:
    """Have numpy's OpenBLAS compute on the thread that calls it; to be called before its import.

    It starts a thread for each core otherwise, each of which then waits for work in a busy loop for
    0.1 s: CPU time that the API server could have used, or all that a container may have on a node
    of 64 cores. Columns are compared and added, which OpenBLAS has no part in. An environment that
    sets the variables itself keeps its values.
    """
    for name in _VARIABLES:
        os.environ.setdefault(name, "1")
