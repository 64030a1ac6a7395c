"""Validation of the values that a user's plugin returns, before the framework uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plugins.framework.normalize import MAX_NODE_SCORE, MIN_NODE_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy.typing as npt

    from plugins.framework.results import BoolArray, IntArray


class PolicyAnswerError(ValueError):
    """A plugin returned an invalid value; the message has the value and, if possible, the node.

    Parameters
    ----------
    kind
        ``shape``, ``dtype``, ``nan`` or ``range``, for metrics.
    why
        A sentence for people.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def checked_mask(result: object, count: int) -> BoolArray:
    """Return the result of ``filter`` as bool (count,).

    Raises
    ------
    PolicyAnswerError
        When the result is not an array of bools, one for each node.
    """
    array = _array(result, "filter", "bool", count)
    if array.dtype != np.bool_:
        raise PolicyAnswerError(
            "dtype",
            f"filter returned {array.dtype}, it must return bool: True for each node that passes",
        )
    return array


def checked_verdict(result: object, reason: str) -> str | None:
    """Return None if ``filter_one`` accepted the node, else the reason.

    Raises
    ------
    PolicyAnswerError
        When the result is neither a bool nor a string.
    """
    if isinstance(result, (bool, np.bool_)):
        return None if result else reason
    if isinstance(result, str):
        return result or reason
    raise PolicyAnswerError(
        "dtype",
        f"filter_one returned {_described(result)}, it must return True, or False or a reason",
    )


def checked_scores(
    result: object, count: int, name_of: Callable[[int], str], *, normalized: bool
) -> npt.NDArray[np.float64]:
    """Return the result of ``score`` as float64 (count,), in a new array.

    Parameters
    ----------
    count
        The number of nodes.
    name_of
        Returns the name of the node at an index, for messages.
    normalized
        Whether the scores must be within 0..100 already.

    Raises
    ------
    PolicyAnswerError
        When the result is not one finite number for each node, or a number is out of range.
    """
    array = _array(result, "score", "numbers", count)
    if array.dtype.kind not in "iufb":
        raise PolicyAnswerError("dtype", f"score returned {array.dtype}, it must return numbers")
    # Adding zero turns -0.0 into 0.0, so that equal scores have equal bits, and copies the array.
    scores: npt.NDArray[np.float64] = array.astype(np.float64) + 0.0
    finite = np.isfinite(scores)
    if not finite.all():
        at = int(np.argmin(finite))
        raise PolicyAnswerError("nan", f"score returned {scores[at]} for node {name_of(at)}")
    if normalized and len(scores):
        low, high = float(scores.min()), float(scores.max())
        if low < MIN_NODE_SCORE or high > MAX_NODE_SCORE:
            at = int(np.argmin(scores) if low < MIN_NODE_SCORE else np.argmax(scores))
            raise _out_of_range(float(scores[at]), name_of(at))
    return scores


def checked_score(result: object, name: str, *, normalized: bool) -> float:
    """Return the result of ``score_one`` for one node as a finite float.

    Raises
    ------
    PolicyAnswerError
        When the result is not a finite number, or is out of range.
    """
    if not isinstance(result, (int, float, np.integer, np.floating, np.bool_)):
        raise PolicyAnswerError(
            "dtype", f"score_one returned {_described(result)}, it must return a number"
        )
    try:
        score = float(result) + 0.0
    except OverflowError:
        score = float("inf")
    if not np.isfinite(score):
        raise PolicyAnswerError("nan", f"score_one returned {score} for node {name}")
    if normalized and not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
        raise _out_of_range(score, name)
    return score


def to_scale(raw: npt.NDArray[np.float64], *, higher_is_better: bool) -> IntArray:
    """Return raw scores, scaled so that the worst becomes 0 and the best 100.

    Parameters
    ----------
    raw
        float64 (n,), finite. It is not modified.

    Returns
    -------
    int64 (n,), within 0..100, rounded; 100 for every node if all scores are equal. Nodes with equal
    raw scores get equal scores, independent of the number and order of the other nodes.
    """
    if not len(raw):
        return np.zeros(0, dtype=np.int64)
    low, high = float(raw.min()), float(raw.max())
    if low == high:
        return np.full(len(raw), MAX_NODE_SCORE, dtype=np.int64)
    if high - low == np.inf:
        raw, low, high = raw / 2.0, low / 2.0, high / 2.0
    share = (raw - low) if higher_is_better else (high - raw)
    share /= high - low
    share *= MAX_NODE_SCORE
    return np.rint(share, out=share).astype(np.int64)


def _array(result: object, method: str, what: str, count: int) -> npt.NDArray[Any]:
    if not isinstance(result, np.ndarray):
        raise PolicyAnswerError(
            "shape",
            f"{method} returned {_described(result)}, it must return an array of {what}, "
            f"one for each of the {count} nodes",
        )
    if result.shape != (count,):
        raise PolicyAnswerError(
            "shape",
            f"{method} returned an array of shape {result.shape}, it must be ({count},): "
            "one for each node",
        )
    return result


def _described(result: object) -> str:
    return "None" if result is None else type(result).__name__


def _out_of_range(score: float, name: str) -> PolicyAnswerError:
    return PolicyAnswerError(
        "range",
        f"{score:g} for node {name} is not within {MIN_NODE_SCORE} to {MAX_NODE_SCORE}, "
        "as `normalized = True` promises",
    )
