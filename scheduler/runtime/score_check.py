"""What a Score plugin returns, checked before it is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plugins.framework.normalize import MAX_NODE_SCORE, MIN_NODE_SCORE
from plugins.framework.status import Code, Status
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from plugins.framework.interfaces import ScorePlugin


def check_scores(plugin: ScorePlugin, scores: object, count: int) -> None:
    """Check normalised scores of `count` nodes.

    Raises
    ------
    PluginError
        They are not int64 of shape (count,), or not within 0..100.
    """
    if not isinstance(scores, np.ndarray) or scores.shape != (count,) or (scores.dtype != np.int64):
        why = f"returned {_shape(scores)}, it must return int64 of shape ({count},)"
    elif count and scores.view(np.uint64).max() > MAX_NODE_SCORE:
        # Read as unsigned, a negative score is a huge one: one pass instead of two.
        worst = scores.max() if scores.max() > MAX_NODE_SCORE else scores.min()
        why = (
            f"returns an invalid score {worst}, it should in the range of "
            f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
        )
    else:
        return
    raise PluginError(Status(Code.ERROR, (f'plugin "{plugin.name}" {why}',), plugin.name))


def _shape(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
