"""NodeResourcesBalancedAllocation: prefers nodes whose resources are used evenly.

The balance of a node is 100 minus the standard deviation (in percent) of the used fractions of
its resources. The score says how much the pod would improve it: 75 for no change, up to 100 for an
improvement, down to 50 for a deterioration.

# Differs: upstream also counts devices of a DeviceClass that provides an extended resource; here
# such a resource counts only where the node reports it in ``status.allocatable``.

*Source*: kube-scheduler 1.36, plugins/noderesources/balanced_allocation.go, and for the arguments
pkg/scheduler/apis/config/{v1/defaults.go, validation/validation_pluginargs.go}.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from plugins.bit_patterns import distinct_patterns
from plugins.framework.args import ArgsError, PluginArgs
from plugins.framework.cycle_state import CycleState, StateKey
from plugins.framework.interfaces import PreScorePlugin, ScorePlugin
from plugins.framework.status import SKIP, SUCCESS, Status
from plugins.resource_scorer import Amounts, ResourceScorer, ResourceSpec, defaulted_resources

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.handle import Handle
    from plugins.framework.interfaces import Judged
    from plugins.framework.results import IntArray

FloatArray: TypeAlias = npt.NDArray[np.float64]

_REQUESTS: StateKey[tuple[int, ...]] = StateKey("PreScoreNodeResourcesBalancedAllocation")

_SUM_IN_FLOAT_BELOW = 2**52
"""Below such capacities a sum of uses is exact in float64, or more than twice the capacity."""


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    """``NodeResourcesBalancedAllocationArgs`` as in a configuration file."""

    resources: tuple[ResourceSpec, ...] | None = None

    def defaulted(self) -> NodeResourcesBalancedAllocationArgs:
        """Return the arguments with every default filled in; nothing is checked."""
        return msgspec.structs.replace(self, resources=defaulted_resources(self.resources))

    def validate(self) -> None:
        """Check the arguments after :meth:`defaulted`.

        Raises
        ------
        ArgsError
            For the first error.
        """
        seen: set[str] = set()
        for index, spec in enumerate(self.resources or ()):
            if spec.name in seen:
                raise ArgsError(f"resources[{index}].name", f"{spec.name!r} stands there twice")
            seen.add(spec.name)
            if spec.weight != 1:
                raise ArgsError(f"resources[{index}].weight", f"must be 1, not {spec.weight}")


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Prefers nodes whose balance the pod improves.

    Notes
    -----
    *Cost*: some 60 us for 5 000 nodes and the default resources.
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    args_type: ClassVar[type[msgspec.Struct] | None] = NodeResourcesBalancedAllocationArgs

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args = NodeResourcesBalancedAllocationArgs.checked(args).defaulted()
        """The effective arguments."""
        self.args.validate()
        self._scorer = ResourceScorer(defaulted_resources(self.args.resources), use_requested=True)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return nothing: the plugin rejects no pod."""
        return ()

    def signature(self, info: PodInfo) -> Hashable:
        """Return the requests."""
        return self._scorer.pod_requests(info.requests)

    def pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> Status:
        """Skip a pod that requests none of the resources: such pods would accumulate on a node."""
        requests = self._scorer.pod_requests(info.requests)
        if not any(requests):
            return SKIP
        state.write(_REQUESTS, requests)
        return SUCCESS

    def _requests(self, state: CycleState, info: PodInfo) -> tuple[int, ...]:
        requests = state.get(_REQUESTS)
        return self._scorer.pod_requests(info.requests) if requests is None else requests

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return scores 50..100, int64 of shape (len(nodes),); 0 for a pod without requests."""
        requests = self._requests(state, info)
        if not any(requests):
            return np.zeros(len(nodes), dtype=np.int64)
        return self._scorer.score(nodes, requests, _improvement)

    def score_jointly(self, pods: Sequence[Judged], nodes: NodesView) -> IntArray | None:
        """Return scores 50..100, int64 of shape (len(pods), len(nodes))."""
        requests = [self._requests(*each) for each in pods]
        return self._scorer.score_jointly(nodes, requests, _improvement)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the score of one node."""
        requests = self._requests(state, info)
        if not any(requests):
            return 0
        after, before = [], []
        for _, requested, allocated, allocatable in self._scorer.node_amounts(node_info, requests):
            capacity = float(allocatable)
            used = float(requested) / capacity
            after.append(used if used < 1.0 else 1.0)  # noqa: FURB136 - quicker than a call
            used = float(allocated) / capacity
            before.append(used if used < 1.0 else 1.0)  # noqa: FURB136 - quicker than a call
        return 50 + (50 + _balance_one(after) - _balance_one(before)) // 2


def _improvement(amounts: Amounts) -> IntArray:
    if amounts.are_all_present():
        return _improvement_of_present(amounts)
    # The formula depends on how many resources a node has, so nodes are grouped by resources.
    patterns, which = distinct_patterns(amounts.allocatable > 0)
    scores = np.zeros(len(which), dtype=np.int64)
    for index, pattern in enumerate(patterns):
        nodes = which == index
        scores[nodes] = _improvement_of_present(amounts.of(pattern, nodes))
    return scores


def _improvement_of_present(amounts: Amounts) -> IntArray:
    """Score nodes that have all of the resources."""
    capacity = amounts.allocatable
    # Axis 1 is: with the pod, without it.
    used: FloatArray = np.empty((len(capacity), 2, capacity.shape[1]))
    used[:, 1] = amounts.allocated
    if amounts.highest() < _SUM_IN_FLOAT_BELOW:
        np.add(used[:, 1], amounts.pod.astype(np.float64), out=used[:, 0])
    else:
        used[:, 0] = amounts.requested()
    used /= capacity.astype(np.float64)[:, np.newaxis]
    np.minimum(used, 1.0, out=used)
    balances = _balance(used)
    # Both are whole and within 50..100, so this is Go's 50 + (50 + with - without) / 2.
    improvement: FloatArray = balances[0]
    improvement -= balances[1]
    improvement += 150.0
    improvement *= 0.5
    scores: IntArray = improvement.astype(np.int64)
    return scores


def _balance(fractions: FloatArray) -> FloatArray:
    """Return whole balances, float64 (2, n_nodes), of (n_resources, 2, n_nodes), used up.

    The steps are those of :func:`_balance_one` in the same order.
    """
    count = len(fractions)
    deviation: FloatArray
    if count == 2:
        deviation = fractions[0]
        deviation -= fractions[1]
        np.abs(deviation, out=deviation)
        deviation *= -0.5
    elif count > 2:
        mean = np.zeros(fractions.shape[1:])
        for fraction in fractions:
            mean += fraction
        mean /= count
        fractions -= mean
        fractions *= fractions
        deviation = np.zeros(fractions.shape[1:])
        for square in fractions:
            deviation += square
        deviation /= count
        np.sqrt(deviation, out=deviation)
        np.negative(deviation, out=deviation)
    else:
        deviation = np.zeros(fractions.shape[1:])
    deviation += 1.0
    deviation *= 100.0
    return np.trunc(deviation, out=deviation)


def _balance_one(fractions: Sequence[float]) -> int:
    count = len(fractions)
    deviation = 0.0
    if count == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif count > 2:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / count
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = sqrt(squares / count)
    return int((1 - deviation) * 100.0)
