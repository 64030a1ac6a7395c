"""Spreads the pods of one workload over racks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import berth

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from plugins.framework.results import BoolArray, IntArray


class RackSpread:
    """Prefers racks that have few pods of the same workload, and fills none beyond a limit.

    A topology spread constraint does the same if each pod contains one. This plugin needs no
    constraint: a label that the pods have anyway names their workload.

    Notes
    -----
    *Cost* at 5 000 nodes: some 90 us for a pod, 140 with a limit. There is no form
    for one node: the pods of a rack are known only from all of its nodes.
    """

    class Args(berth.Args, frozen=True):
        """The labels that define racks and workloads, and the limit.

        Parameters
        ----------
        rack_label
            The label of a node that names its rack.
        workload_label
            The label of a pod that names its workload; pods without it go anywhere.
        max_per_rack
            How many pods of one workload a rack may have; None for no limit. With one, a node
            that is in no rack gets none of them.
        """

        rack_label: str = "topology.kubernetes.io/rack"
        workload_label: str = "app.kubernetes.io/name"
        max_per_rack: int | None = None

        def problems(self) -> Iterator[berth.ArgsError]:
            """Yield the errors that the types do not rule out."""
            if self.max_per_rack is not None and self.max_per_rack < 1:
                yield berth.ArgsError("maxPerRack", f"must be at least 1, not {self.max_per_rack}")

    reason = "node(s) were in racks with enough pods of the workload"
    looks_at_other_nodes = True
    higher_is_better = False

    def __init__(self, args: Args) -> None:
        self.args = args

    def filter(self, pod: berth.Pod, nodes: berth.Nodes) -> BoolArray:
        """Return the nodes in racks below the limit, bool (n,)."""
        workload = pod.labels.get(self.args.workload_label)
        if self.args.max_per_rack is None or workload is None:
            return np.ones(len(nodes), dtype=np.bool_)
        room = self._pods_by_rack(pod, nodes, workload) < self.args.max_per_rack
        room[0] = False
        return room[self._racks(nodes)]

    def score(self, pod: berth.Pod, nodes: berth.Nodes) -> IntArray:
        """Return the number of pods of the workload in each node's rack, int64 (n,).

        Those on nodes that cannot run the pod count as well. A node without a rack counts as
        if it were in the fullest rack, because its location is unknown.
        """
        workload = pod.labels.get(self.args.workload_label)
        if workload is None:
            return np.zeros(len(nodes), dtype=np.int64)
        return self._pods_by_rack(pod, nodes, workload)[self._racks(nodes)]

    def _racks(self, nodes: berth.Nodes) -> npt.NDArray[np.int32]:
        """Return a number for each node's rack, 0 for none."""
        return nodes.label(self.args.rack_label).ids

    def _pods_by_rack(self, pod: berth.Pod, nodes: berth.Nodes, workload: str) -> IntArray:
        """Return the number of pods of the workload in each rack; "no rack" counts as the fullest.

        int64 (n_racks + 1,), by the numbers of :meth:`_racks`.
        """
        everywhere = nodes.all_nodes
        racks = everywhere.label(self.args.rack_label)
        pods = everywhere.matching_pods({self.args.workload_label: workload}, [pod.namespace])
        counts = np.bincount(racks.ids, weights=pods, minlength=racks.num_ids).astype(np.int64)
        counts[0] = counts[1:].max(initial=0)
        return counts
