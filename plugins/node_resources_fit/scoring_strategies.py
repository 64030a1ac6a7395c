"""The three scoring strategies, each for many nodes and for one.

All three compute the percentage of a resource that would be in use with the pod on the node, at
most 100, and take the weighted mean over the resources. With ``used`` and ``capacity`` of one
resource, kube-scheduler's integer divisions are equal to

- LeastAllocated: ``(capacity - used) * 100 / capacity``, which is 100 minus the percentage
  rounded up, and 0 where more is used than there is;
- MostAllocated: the percentage rounded down;
- RequestedToCapacityRatio: a shape's value at the percentage rounded down.

Percentages and means are computed in float64, several times faster than in int64. That is exact:
for integers ``a >= 0`` and ``b > 0`` with ``a + b < 2**53`` the rounded quotient never crosses
an integer, because the distance of ``a / b`` from the next integer, at least ``1 / b``, is more
than half a step of float64 there.

*Source*: kube-scheduler 1.36, plugins/noderesources/{least_allocated,most_allocated,
requested_to_capacity_ratio}.go, plugins/helper/shape_score.go.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from plugins.framework.normalize import MAX_NODE_SCORE
from plugins.node_resources_fit.args import (
    LEAST_ALLOCATED,
    MAX_SHAPE_SCORE,
    MAX_UTILIZATION,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    ScoringStrategy,
    UtilizationShapePoint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plugins.framework.results import BoolArray, IntArray
    from plugins.resource_scorer import Amounts, NodeAmounts

FloatArray: TypeAlias = npt.NDArray[np.float64]

_FLOAT_EXACT_BELOW = 2**46
"""Capacities below this (64 TiB in bytes) keep ``101 * capacity`` below 2**53."""

_INT_EXACT_BELOW = 2**56
"""Capacities below this keep ``100 * capacity`` within int64."""


class Strategy(Protocol):
    """Scores from 0 to 100; a node that has none of the resources gets 0."""

    def score(self, amounts: Amounts) -> IntArray:
        """Return int64 of shape (n_nodes,)."""
        ...

    def score_one(self, amounts: Sequence[NodeAmounts]) -> int:
        """Return the score of one node."""
        ...


class LeastAllocated:
    """Prefers nodes with a large free share."""

    def score(self, amounts: Amounts) -> IntArray:
        """Return int64 of shape (n_nodes,)."""
        present = _present(amounts)
        used = _weighted_mean(
            _percent_used(amounts, present, round_up=True), present, amounts.weights
        )
        np.subtract(float(MAX_NODE_SCORE), used, out=used)
        if present is not None:
            used[~present.any(axis=0)] = 0.0
        return used.astype(np.int64)

    def score_one(self, amounts: Sequence[NodeAmounts]) -> int:
        """Return the score of one node."""
        total = weights = 0
        for weight, requested, _, allocatable in amounts:
            if requested < allocatable:
                total += weight * ((allocatable - requested) * MAX_NODE_SCORE // allocatable)
            weights += weight
        return total // weights if weights else 0


class MostAllocated:
    """Prefers nodes that are nearly full."""

    def score(self, amounts: Amounts) -> IntArray:
        """Return int64 of shape (n_nodes,)."""
        present = _present(amounts)
        used = _percent_used(amounts, present, round_up=False)
        return _weighted_mean(used, present, amounts.weights).astype(np.int64)

    def score_one(self, amounts: Sequence[NodeAmounts]) -> int:
        """Return the score of one node."""
        total = weights = 0
        for weight, requested, _, allocatable in amounts:
            total += weight * (min(requested, allocatable) * MAX_NODE_SCORE // allocatable)
            weights += weight
        return total // weights if weights else 0


class RequestedToCapacityRatio:
    """Prefers nodes by a shape over utilization; a resource that scores 0 is left out.

    Parameters
    ----------
    shape
        Points by growing utilization, at least one.
    """

    __slots__ = ("_value_at",)

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._value_at = np.array(
            [broken_linear(shape, percent) for percent in range(MAX_UTILIZATION + 1)],
            dtype=np.float64,
        )
        """float64, shape (101,): the score at each whole percentage."""

    def score(self, amounts: Amounts) -> IntArray:
        """Return int64 of shape (n_nodes,)."""
        present = _present(amounts)
        used = _percent_used(amounts, present, round_up=False)
        values = np.take(self._value_at, used.astype(np.intp), mode="clip")
        counted = values > 0.0
        if present is not None:
            counted &= present
        mean = _weighted_mean(values, counted, amounts.weights)
        # Half a point goes up. A mean of integers by integer weights is either exactly half a
        # point or far from it, so adding 0.5 cannot be rounded across.
        mean += 0.5
        return mean.astype(np.int64)

    def score_one(self, amounts: Sequence[NodeAmounts]) -> int:
        """Return the score of one node."""
        total = weights = 0
        for weight, requested, _, allocatable in amounts:
            percent = min(requested, allocatable) * MAX_UTILIZATION // allocatable
            value = int(self._value_at[max(percent, 0)])
            if value > 0:
                total += weight * value
                weights += weight
        return (2 * total + weights) // (2 * weights) if weights else 0


def strategy_of(config: ScoringStrategy) -> Strategy:
    """Return the strategy of checked and defaulted arguments."""
    if config.type == LEAST_ALLOCATED:
        return LeastAllocated()
    if config.type == MOST_ALLOCATED:
        return MostAllocated()
    ratio = config.requested_to_capacity_ratio
    return RequestedToCapacityRatio((ratio.shape if ratio is not None else None) or ())


def prefers_full_nodes(config: ScoringStrategy) -> bool:
    """Return whether a full node gets a higher score than an empty one."""
    ratio = config.requested_to_capacity_ratio
    if config.type == REQUESTED_TO_CAPACITY_RATIO and ratio is not None and ratio.shape:
        return ratio.shape[-1].score > ratio.shape[0].score
    return config.type == MOST_ALLOCATED


def broken_linear(shape: Sequence[UtilizationShapePoint], percent: int) -> int:
    """Return the shape's value at a utilization: straight between points, constant outside them.

    Scores of the shape are scaled from 0..10 to 0..100 first; what lies between two points
    is truncated towards zero from the left point, as Go divides.
    """
    stretch = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    for left, right in pairwise(shape):
        if percent <= left.utilization:
            return left.score * stretch
        if percent <= right.utilization:
            rise = (right.score - left.score) * stretch * (percent - left.utilization)
            run = right.utilization - left.utilization
            towards_zero = rise // run if rise >= 0 else -(-rise // run)
            return left.score * stretch + towards_zero
    return shape[-1].score * stretch


def _present(amounts: Amounts) -> BoolArray | None:
    """Return the resources that each node has, bool (n_resources, n_nodes).

    None if there is a resource and every node has every one: then it need not be looked at.
    """
    capacity = amounts.allocatable
    if len(capacity) > 0 and amounts.are_all_present():
        return None
    return capacity > 0


def _percent_used(amounts: Amounts, present: BoolArray | None, *, round_up: bool) -> FloatArray:
    """Return whole percentages in use, 0..100: float64 (n_resources, n_nodes), the caller's own.

    Where a node lacks a resource the value has no meaning.
    """
    capacity = amounts.allocatable
    if present is not None:
        capacity = np.where(present, capacity, 1)
    highest = amounts.highest()
    if highest < _FLOAT_EXACT_BELOW:
        # Use beyond float64's exact integers exceeds every capacity anyway.
        used = amounts.allocated.astype(np.float64)
        used += amounts.pod.astype(np.float64)
        used *= 100.0
        used /= capacity
        np.minimum(used, 100.0, out=used)
        return np.ceil(used, out=used) if round_up else np.floor(used, out=used)
    within = np.minimum(amounts.requested(), capacity)
    if highest >= _INT_EXACT_BELOW:
        within = within.astype(np.object_)
    hundredfold = within * 100
    whole = -(-hundredfold // capacity) if round_up else hundredfold // capacity
    return whole.astype(np.float64)


def _weighted_mean(
    values: FloatArray, counted: BoolArray | None, weights: Sequence[int]
) -> FloatArray:
    """Return the mean over resources of whole numbers: float64 (n_nodes,), the caller's own.

    Only ``counted`` values count; without any, the mean is 0. ``values`` is overwritten.
    """
    if len(values) == 0:
        return np.zeros(values.shape[1])
    divisor: FloatArray | float
    if counted is None:
        divisor = float(sum(weights))
    else:
        divisor = np.zeros(values.shape[1])
        for value, is_counted, weight in zip(values, counted, weights, strict=True):
            value *= is_counted
            divisor += is_counted * float(weight)
        np.maximum(divisor, 1.0, out=divisor)
    total: FloatArray = values[0]
    if weights[0] != 1:
        total *= weights[0]
    for value, weight in zip(values[1:], weights[1:], strict=True):
        if weight != 1:
            value *= weight
        total += value
    total /= divisor
    return total
