"""Normalization of scores to the common scale of 0 to 100.

*Source*: pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from plugins.framework.results import IntArray

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100


def default_normalize(scores: IntArray, *, reverse: bool = False) -> IntArray:
    """Stretch scores so that the largest becomes 100, truncating as Go's integers do.

    Parameters
    ----------
    scores
        int64, shape (n_nodes,), not negative. Not changed.
    reverse
        Whether a low raw score is a good one: then the result is 100 minus the stretched score.

    Returns
    -------
    int64, shape (n_nodes,), within 0..100. With a largest score of 0 it is 0 everywhere, or
    100 everywhere when reversed.
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full(len(scores), MAX_NODE_SCORE if reverse else MIN_NODE_SCORE, dtype=np.int64)
    stretched = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - stretched if reverse else stretched
