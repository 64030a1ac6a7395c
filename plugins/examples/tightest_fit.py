"""Prefers the nodes with the least free resources after placing the pod: best fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

import berth

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


class TightestFit:
    """Prefers nodes with few free resources after the pod is placed.

    Unlike ``MostAllocated``, which compares the share of a node that is in use, it compares the
    amount that is left: a small node is preferred to a large one that is as full.

    Notes
    -----
    *Cost* at 5 000 nodes: some 60 us for a pod.
    """

    class Args(berth.Args, frozen=True):
        """The resources and their weights; amounts are relative to the largest node's."""

        resources: dict[str, float] = msgspec.field(
            default_factory=lambda: {"cpu": 1.0, "memory": 1.0}
        )

        def problems(self) -> Iterator[berth.ArgsError]:
            """Yield the errors that the types do not rule out."""
            if not self.resources:
                yield berth.ArgsError("resources", "must name at least one")
            for name, weight in self.resources.items():
                if not (math.isfinite(weight) and weight > 0):
                    yield berth.ArgsError(f"resources[{name}]", f"must be above 0, not {weight}")

    higher_is_better = False
    looks_at_other_nodes = True

    def __init__(self, args: Args) -> None:
        self.args = args

    def score(self, pod: berth.Pod, nodes: berth.Nodes) -> npt.NDArray[np.float64]:
        """Return the free share of each node: 1 is all of the largest node, float64 (n,)."""
        left = np.zeros(len(nodes))
        everywhere = nodes.all_nodes
        for resource, weight in self.args.resources.items():
            largest = max(int(everywhere.allocatable(resource).max(initial=0)), 1)
            left += (nodes.free(resource) - pod.requests(resource)) * (weight / largest)
        return left
