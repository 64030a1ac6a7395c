"""Places pods by the measured use of nodes, where measurements are available.

The idea is that of Trimaran's TargetLoadPacking (kubernetes-sigs/scheduler-plugins): requests state
what pods may need, measurements what they use. Nodes are filled up to a target, which leaves other
nodes empty; beyond the target, pods are spread.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

import berth

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

_CPU = "cpu"

_FEW_SLOTS = 1024
"""Nodes that may come and go before their slots are assigned again."""


class LoadAware:
    """Prefers nodes whose measured CPU utilization comes nearest to a target, from below.

    A node without a recent measurement is judged by the requests of its pods, as if they used all
    of them.

    Notes
    -----
    A measurement does not include the pods that were placed after it. Without a correction all
    pods between two measurements would go to the same node, so the requests since the last
    measurement are added to it.

    *Cost* at 5 000 nodes: some 110 us for a pod.
    """

    class Args(berth.Args, frozen=True):
        """The metric, the target, and the expected use of requests.

        Parameters
        ----------
        metric
            The node metric that has the CPU utilization, 0 for idle and 1 for busy.
        target
            The utilization up to which nodes are filled, within 0 to 1.
        usage_of_request
            The share of its request that a pod is expected to use.
        default_milli_cpu
            The CPU that a pod without a request is expected to use.
        """

        metric: str = "cpu_utilization"
        target: float = 0.4
        usage_of_request: float = 1.0
        default_milli_cpu: int = 200

        def problems(self) -> Iterator[berth.ArgsError]:
            """Yield the errors that the types do not rule out."""
            if not 0 < self.target < 1:
                yield berth.ArgsError(
                    "target", f"must be more than 0 and less than 1, not {self.target}"
                )
            if not (math.isfinite(self.usage_of_request) and self.usage_of_request >= 0):
                yield berth.ArgsError(
                    "usageOfRequest", f"must be a share, not {self.usage_of_request}"
                )
            if self.default_milli_cpu < 0:
                yield berth.ArgsError("defaultMilliCpu", f"must not be {self.default_milli_cpu}")

    normalized = True

    def __init__(self, args: Args) -> None:
        self.args = args
        self._slots: dict[str, int] = {}
        """By node: its slot in the arrays below."""
        self._round = 0
        """Grows when slots are assigned again."""
        self._seen: FloatArray | None = None
        self._measured: FloatArray = np.zeros(0)
        self._requested: FloatArray = np.zeros(0)
        """The requested amounts when a measurement was first seen."""

    def score(self, pod: berth.Pod, nodes: berth.Nodes) -> FloatArray:
        """Return 0 to 100, float64 (n,)."""
        self._follow(nodes.all_nodes)
        requested, cpus = nodes.requested(_CPU), np.maximum(nodes.allocatable(_CPU), 1)
        before = self._requested[self._slots_of(nodes)]
        since = np.maximum(requested - before, 0.0) * self.args.usage_of_request
        known = nodes.metric(self.args.metric) * cpus + since
        used = np.where(np.isnan(known), requested, known)
        share = (used + self._usage_of(pod)) / cpus
        target = self.args.target
        below = 100 * target + (100 - 100 * target) * (share / target)
        above = 100 * target * (1 - share) / (1 - target)
        return np.maximum(np.where(share <= target, below, above), 0.0)

    def score_one(self, pod: berth.Pod, node: berth.Node) -> float:
        """Return the score of one node."""
        requested, cpus = node.requested(_CPU), max(node.allocatable(_CPU), 1)
        slot = self._slots.get(node.name, len(self._requested))
        before = self._requested[slot] if slot < len(self._requested) else requested
        since = max(requested - before, 0.0) * self.args.usage_of_request
        known = node.metric(self.args.metric) * cpus + since
        used = requested if math.isnan(known) else known
        share = (used + self._usage_of(pod)) / cpus
        target = self.args.target
        if share <= target:
            return float(100 * target + (100 - 100 * target) * (share / target))
        return float(max(100 * target * (1 - share) / (1 - target), 0.0))

    def _usage_of(self, pod: berth.Pod) -> float:
        requests = pod.requests(_CPU)
        if not requests:
            return self.args.default_milli_cpu
        return requests * self.args.usage_of_request

    def _follow(self, everywhere: berth.Nodes) -> None:
        """Store the requested amounts whenever there are new measurements."""
        measured = everywhere.metric(self.args.metric)
        if measured is self._seen:
            return
        self._seen = measured
        if len(self._slots) > 2 * len(everywhere) + _FEW_SLOTS:
            self._slots, self._round = {}, self._round + 1
            self._measured = self._requested = np.zeros(0)
        slots = self._slots_of(everywhere)
        missing = len(self._slots) - len(self._measured)
        self._measured = np.append(self._measured, np.full(missing, math.nan))
        self._requested = np.append(self._requested, np.zeros(missing))
        before = self._measured[slots]
        was_known = ~np.isnan(before)
        # The same numbers in another order are not a new measurement: the nodes have changed.
        is_new = bool((measured[was_known] != before[was_known]).any())
        noted = slots if is_new else slots[~was_known]
        requested = everywhere.requested(_CPU)
        self._requested[noted] = requested if is_new else requested[~was_known]
        self._measured[slots] = measured

    def _slots_of(self, nodes: berth.Nodes) -> npt.NDArray[np.intp]:
        slots = self._slots
        return nodes.per_node(
            ("slot", self._round), lambda node: slots.setdefault(node.name, len(slots))
        ).astype(np.intp)
