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

    What creates nodes knows what it pays, and can write it into a label: ``0.384`` for 38.4 cents
    an hour. Whose unit of money it is does not matter, as long as it is one.

    Notes
    -----
    *Cost* at 5 000 nodes: 30 to 50 us for a pod, less for one whose like was there before.
    """

    class Args(berth.Args, frozen=True):
        """Where the cost stands, and what it is the cost of.

        Parameters
        ----------
        label
            The label of a node that says what it costs.
        per
            ``node`` to compare whole nodes, which favours small ones; ``cpu`` or ``memory`` to
            compare what one CPU or one GiB costs on them.
        unpriced
            What a node is taken to cost that does not say so.
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
        """Return the same of one node."""
        cost = node.label_number(self.args.label, self.args.unpriced)
        if self.args.per == "node":
            return cost
        unit = 1000 if self.args.per == "cpu" else _GIB
        return cost / (max(node.allocatable(self.args.per), 1) / unit)

    def signature(self, pod: berth.Pod) -> Hashable:
        """Return the same for all pods: a node costs what it costs."""
        return ()
