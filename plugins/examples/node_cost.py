"""Prefers nodes with a low cost per hour, which a label states."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

import berth

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import numpy.typing as npt

_GIB = 1 << 30


class NodeCost:
    """Prefers nodes with a low cost.

    The system that creates nodes can write their price into a label: ``0.384`` for 38.4 cents an
    hour. Any currency can be used, as long as all nodes use the same one.

    Notes
    -----
    *Cost* at 5 000 nodes: 30 to 50 us for a pod, less after an alike pod.
    """

    class Args(berth.Args, frozen=True):
        """The label with the cost, and the unit that costs are compared for.

        Parameters
        ----------
        label
            The label of a node with its cost.
        per
            ``node`` to compare whole nodes, which favours small ones; ``cpu`` or ``memory`` to
            compare the cost of one CPU or one GiB.
        unpriced
            The assumed cost of a node without the label.
        """

        label: str = "example.com/cost-per-hour"
        per: Literal["node", "cpu", "memory"] = "node"
        unpriced: float = 1.0

        def problems(self) -> Iterator[berth.ArgsError]:
            """Yield the errors that the types do not rule out."""
            if not (math.isfinite(self.unpriced) and self.unpriced >= 0):
                yield berth.ArgsError("unpriced", f"must be a cost, not {self.unpriced}")

    higher_is_better = False

    def __init__(self, args: Args) -> None:
        self.args = args

    def score(self, pod: berth.Pod, nodes: berth.Nodes) -> npt.NDArray[np.float64]:
        """Return the cost of each node, or of each CPU or GiB of it, float64 (n,)."""
        cost = nodes.label_number(self.args.label, self.args.unpriced)
        if self.args.per == "node":
            return cost
        unit = 1000 if self.args.per == "cpu" else _GIB
        return cost / (np.maximum(nodes.allocatable(self.args.per), 1) / unit)

    def score_one(self, pod: berth.Pod, node: berth.Node) -> float:
        """Return the cost of one node."""
        cost = node.label_number(self.args.label, self.args.unpriced)
        if self.args.per == "node":
            return cost
        unit = 1000 if self.args.per == "cpu" else _GIB
        return cost / (max(node.allocatable(self.args.per), 1) / unit)

    def signature(self, pod: berth.Pod) -> Hashable:
        """Return one signature for all pods: the cost does not depend on the pod."""
        return ()
