"""Leaves a part of those nodes free on which other schedulers place pods, too."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the type of a field
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

import berth

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import numpy.typing as npt

_NODE_LOCAL: Final = frozenset({"DaemonSet", "Node"})
"""Kinds of owners whose pods run on every node, whoever else uses it."""


class SharedNodeReserve:
    """Keeps a share of each node free where pods of other schedulers run.

    Two schedulers that fill the same node collide. Where the last part of a node is left to the
    other one, both have room at the same time, and the kubelet rejects nobody.

    Notes
    -----
    *Cost* at 5 000 nodes: some 80 us for a pod and two resources, less after an
    alike pod.
    """

    class Args(berth.Args, frozen=True):
        """The size of the reserve, and the pods that make a node a shared one.

        Parameters
        ----------
        share
            The part of a node's allocatable amount that is kept, by resource, within 0 to 1.
        own
            The names of schedulers whose pods do not make a node a shared one, besides that of the
            pod itself.
        pods
            From how many pods of others on a node is a shared one, at least 1.
        """

        share: Mapping[str, float] = msgspec.field(
            default_factory=lambda: {"cpu": 0.1, "memory": 0.1}
        )
        own: tuple[str, ...] = ()
        pods: int = 1

        def problems(self) -> Iterator[berth.ArgsError]:
            """Yield the errors that the types do not rule out."""
            for resource, share in self.share.items():
                if not 0 <= share <= 1:
                    yield berth.ArgsError(
                        f"share[{resource}]", f"must be within 0 to 1, not {share}"
                    )
            if self.pods < 1:
                yield berth.ArgsError("pods", f"must be at least 1, not {self.pods}")

    def __init__(self, args: Args) -> None:
        self.args = args
        self.reason = "node(s) had only the reserve left that is kept for other schedulers"

    def filter(self, pod: berth.Pod, nodes: berth.Nodes) -> npt.NDArray[np.bool_]:
        """Return the nodes that keep their reserve with the pod, bool (n,)."""
        enough = np.ones(len(nodes), dtype=np.bool_)
        for resource, share in self.args.share.items():
            wanted = pod.requests(resource)
            if wanted:
                kept = np.ceil(nodes.allocatable(resource) * share)
                enough &= nodes.requested(resource) + wanted <= nodes.allocatable(resource) - kept
        if not enough.all():
            name = pod.scheduler_name
            foreign = nodes.per_node(name, lambda node: self._num_foreign(node, name), of_pods=True)
            enough |= foreign < self.args.pods
        return enough

    def filter_one(self, pod: berth.Pod, node: berth.Node) -> bool:
        """Return whether one node keeps its reserve with the pod."""
        if self._num_foreign(node, pod.scheduler_name) < self.args.pods:
            return True
        for resource, share in self.args.share.items():
            wanted = pod.requests(resource)
            kept = np.ceil(node.allocatable(resource) * share)
            if wanted and node.requested(resource) + wanted > node.allocatable(resource) - kept:
                return False
        return True

    def signature(self, pod: berth.Pod) -> Hashable:
        """Return the scheduler and the requests of the pod."""
        return pod.scheduler_name, tuple(pod.requests(resource) for resource in self.args.share)

    def _num_foreign(self, node: berth.Node, scheduler_name: str) -> int:
        own = {scheduler_name, *self.args.own}
        return sum(
            pod.scheduler_name not in own and pod.owner_kind not in _NODE_LOCAL for pod in node.pods
        )
