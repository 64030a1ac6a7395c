"""Fragments: idle GPU that the pods of a workload cannot use where it lies.

The measure is that of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
Fragmentation Gradient Descent" (Weng et al., USENIX ATC '23, section 3). A node's *fragment*,
for one shape of pod, is

- all of its idle GPU, if no pod of that shape can start there: the GPU that is left lacks whole
  devices, or the CPU is used up, or the model is another one, or the shape needs no GPU;
- otherwise the sum over those GPUs that have less left than the shape needs of one.

The fragment of a node is the mean over the typical shapes, each weighted with its share of the
workload. What a pod *costs* on a node is how much the fragment grows by it: it may be negative,
when a pod takes GPU that no other pod could have used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

WHOLE: Final = 1000
"""One GPU, in thousandths."""

_ANY_MODEL: Final[frozenset[str]] = frozenset()

_CHUNK: Final = 1024
"""Nodes that are computed at once: a few MB of intermediate arrays."""


class GpuShape(NamedTuple):
    """The requests of a pod that matter for fragments: pods of one shape are alike.

    ``gpu_milli`` is the need of each of ``gpus`` devices: less than 1000 only for a share of a
    single device. ``models`` are the models of GPU that are accepted; none named means any.
    """

    cpu_milli: int
    gpu_milli: int = 0
    gpus: int = 0
    models: frozenset[str] = _ANY_MODEL

    @property
    def demand_milli(self) -> int:
        """The need of all devices together, in thousandths of a GPU."""
        return self.gpu_milli * self.gpus

    @property
    def is_share(self) -> bool:
        """Whether it needs a part of one GPU."""
        return 0 < self.gpu_milli < WHOLE


def shape_of(
    cpu_milli: int, demand_milli: int, models: frozenset[str] = _ANY_MODEL
) -> GpuShape | None:
    """Return the shape of a pod that requests ``demand_milli`` of GPU in total.

    None if there is no such shape: more than one GPU must be a number of whole GPUs.
    """
    if demand_milli == 0:
        return GpuShape(cpu_milli, models=models)
    if demand_milli < WHOLE:
        return GpuShape(cpu_milli, demand_milli, 1, models)
    if demand_milli % WHOLE:
        return None
    return GpuShape(cpu_milli, WHOLE, demand_milli // WHOLE, models)


class GpuStates(NamedTuple):
    """The free resources of nodes.

    Parameters
    ----------
    cpu_milli
        int64, shape (n,): the free CPU.
    gpu_milli
        int64, shape (n, width): the free share of each GPU; 0 where a node has fewer GPUs.
    model
        int64, shape (n,): the node's model of GPU, an index into the models' names.
    """

    cpu_milli: IntArray
    gpu_milli: IntArray
    model: IntArray

    def take(self, rows: npt.NDArray[np.intp]) -> GpuStates:
        """Return some of the nodes."""
        return GpuStates(self.cpu_milli[rows], self.gpu_milli[rows], self.model[rows])


class TypicalShapes:
    """The shapes of a workload's pods, and the share of each shape.

    Parameters
    ----------
    counts
        How many pods of each shape there are, or any other weights. At least one is positive.
    popularity
        The most frequent shapes are taken until they make up this share of the pods.

    Notes
    -----
    *Concurrency*: immutable. *Source*: the paper's section 5.1 takes the shapes of 95 % of the
    tasks; rare ones would cost time and have little influence.
    """

    def __init__(self, counts: Mapping[GpuShape, float], popularity: float = 1.0) -> None:
        wanted = popularity * sum(counts.values())
        chosen: list[tuple[GpuShape, float]] = []
        reached = 0.0
        # The order among equals is that of the shapes, not that of arrival.
        for shape, count in sorted(counts.items(), key=_most_frequent_first):
            if chosen and reached >= wanted:
                break
            chosen.append((shape, count))
            reached += count
        if reached <= 0:
            raise ValueError("a workload has at least one pod")
        self.shares: dict[GpuShape, float] = {shape: n / reached for shape, n in chosen}
        """The share of each shape; they sum up to 1."""
        shapes = list(self.shares)
        self._models = [shape.models for shape in shapes]
        self._share = np.array(list(self.shares.values()))
        self._cpu = np.array([shape.cpu_milli for shape in shapes], dtype=np.int64)
        self._gpus = np.array([shape.gpus for shape in shapes], dtype=np.int64)
        needs = sorted({shape.gpu_milli for shape in shapes})
        self._needs = np.array(needs, dtype=np.int64)
        self._need_of = np.array([needs.index(shape.gpu_milli) for shape in shapes], dtype=np.intp)
        self._allowed: BoolArray = np.zeros((0, len(shapes)), dtype=np.bool_)

    def allow(self, models: Sequence[str]) -> None:
        """Set the names of all models; known models must keep their index."""
        self._allowed = np.array(
            [[not allowed or name in allowed for allowed in self._models] for name in models],
            dtype=np.bool_,
        ).reshape(len(models), len(self._models))

    def fragments(self, states: GpuStates) -> FloatArray:
        """Return the fragment of each node in thousandths of a GPU, float64 of shape (n,).

        *Cost*: some 2 us a node for 36 shapes and 10 GPUs, and 30 us a call.
        """
        n = len(states.cpu_milli)
        result = np.empty(n)
        for begin in range(0, n, _CHUNK):
            part = slice(begin, begin + _CHUNK)
            result[part] = self._fragments(GpuStates(*(array[part] for array in states)))
        return result

    def _fragments(self, states: GpuStates) -> FloatArray:
        left = states.gpu_milli[:, :, np.newaxis]
        enough = left >= np.maximum(self._needs, 1)
        count = enough.sum(axis=1)
        total = states.gpu_milli.sum(axis=1)[:, np.newaxis]
        too_small = total - np.where(enough, left, 0).sum(axis=1)
        can_start = states.cpu_milli[:, np.newaxis] >= self._cpu
        can_start &= count[:, self._need_of] >= self._gpus
        can_start &= self._allowed[states.model]
        can_start &= self._gpus > 0
        lost: FloatArray = np.where(can_start, too_small[:, self._need_of], total) @ self._share
        return lost

    def costs(self, states: GpuStates, shape: GpuShape) -> tuple[FloatArray, IntArray]:
        """Return the cost of a pod of a shape on each node, with the best GPU for it.

        Returns
        -------
        costs
            float64 (n,): by how much the fragment grows, in thousandths of a GPU; infinite where
            the node has no GPU for the pod. CPU and models are not checked; other filters do so.
        left
            int64 (n,): the free share of the GPU that a share is taken from, before it is taken; 0
            for all other shapes.

        *Cost*: as :meth:`fragments`, for each node as many times as it has GPUs with different
        amounts left.
        """
        n, width = states.gpu_milli.shape
        costs = np.full(n, np.inf)
        left = np.zeros(n, dtype=np.int64)
        cpu = states.cpu_milli - shape.cpu_milli
        if not shape.is_share:
            fit = np.flatnonzero((states.gpu_milli == WHOLE).sum(axis=1) >= shape.gpus)
            before = states.take(fit)
            whole = before.gpu_milli == WHOLE
            taken = whole & (np.cumsum(whole, axis=1) <= shape.gpus)
            after = GpuStates(cpu[fit], np.where(taken, 0, before.gpu_milli), before.model)
            costs[fit] = self.fragments(after) - self.fragments(before)
            return costs, left
        possible = states.gpu_milli >= shape.gpu_milli
        # GPUs of one node with the same free share are equivalent.
        for later in range(1, width):
            same = states.gpu_milli[:, :later] == states.gpu_milli[:, later : later + 1]
            possible[:, later] &= ~same.any(axis=1)
        node, device = np.nonzero(possible)
        gpus = states.gpu_milli[node]
        each = np.arange(len(node))
        before_cut = gpus[each, device]
        gpus[each, device] -= shape.gpu_milli
        then = self.fragments(GpuStates(cpu[node], gpus, states.model[node]))
        # Best first, and of equals the tightest GPU: the first of each node is its choice.
        order = np.lexsort((before_cut, then, node))
        nodes, first = np.unique(node[order], return_index=True)
        best = order[first]
        costs[nodes] = then[best] - self.fragments(states.take(nodes))
        left[nodes] = before_cut[best]
        return costs, left


def _most_frequent_first(item: tuple[GpuShape, float]) -> tuple[float, tuple[object, ...]]:
    shape, count = item
    return -count, (shape.gpus, shape.gpu_milli, shape.cpu_milli, sorted(shape.models))
