"""GpuFragmentation: prefers nodes on which the pod leaves GPUs usable for later pods.

Shares of GPUs leave remainders that fit no pod. Of all nodes this plugin prefers the one on which
the *fragment*, the idle GPU that the workload's typical pods cannot use, grows least: it walks
down the fragment's gradient. See :mod:`plugins.examples.gpu_fragments` for the measure and
docs/examples/gpu-fragmentation.md for how to use it.

Source of the idea: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent", Weng et al., USENIX ATC '23. The step from a cost to a score, with a scale of
one GPU, is the authors' own: github.com/hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

import berth
from plugins.examples.gpu_books import GpuBooks
from plugins.examples.gpu_costs import PACKED, KeptCosts, PackedStates, packed
from plugins.examples.gpu_fragments import (
    WHOLE,
    GpuShape,
    GpuStates,
    TypicalShapes,
    shape_of,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from berth import Node, Nodes, Pod
    from plugins.examples.gpu_fragments import BoolArray, FloatArray

_FIRST_GUESS: Final = GpuShape(0, WHOLE, 1)
"""The assumed request of pods before any pod is known: a whole GPU."""

_FEW_SLOTS: Final = 1024
"""Nodes that may come and go before their slots are assigned again."""

_AGE_AT: Final = 20_000
"""Pods after which all counts are halved, so that a changed workload is learned again."""

_LEARN_AFTER: Final = 50
"""New pods before the first typical shapes; later an eighth of the counted pods."""


class TypicalPod(berth.Args, frozen=True):
    """One shape of a workload: ``weight`` pods that request this much CPU and GPU.

    ``gpu_milli`` is the total request of a pod, ``models`` the models that it accepts (none: any).
    """

    gpu_milli: int
    cpu_milli: int = 0
    weight: float = 1.0
    models: tuple[str, ...] = ()


class GpuFragmentation:
    """Keeps idle GPUs usable: prefers nodes where a pod leaves the most usable GPU for others.

    Rejects nodes that have no single GPU for a share, or not enough unused ones.
    """

    class Args(berth.Args, frozen=True):
        """Arguments.

        ``resource`` counts thousandths of GPUs: a node with 8 has 8000, a pod asks for 460 (a
        share of one GPU) or 2000 (two whole ones). ``model_label`` is the node's label with the
        model of its GPUs. ``device_annotation`` of a pod tells which devices it has got.
        ``device`` chooses the GPU for a share: the one that costs least, or the tightest.
        Without ``typical_pods`` these are learned from the pods that run; the most frequent are
        taken until they make up ``popularity`` of all.
        """

        resource: str = "scheduling.berth.dev/gpu-milli"
        model_label: str = "nvidia.com/gpu.product"
        device_annotation: str = "scheduling.berth.dev/gpu-devices"
        device: Literal["fragmentation", "tightest"] = "fragmentation"
        typical_pods: tuple[TypicalPod, ...] = ()
        popularity: float = 0.95

        def problems(self) -> Iterator[berth.ArgsError]:
            """Yield the errors in the arguments."""
            if not 0 < self.popularity <= 1:
                yield berth.ArgsError("popularity", "must be above 0 and at most 1")
            for index, typical in enumerate(self.typical_pods):
                path = f"typicalPods[{index}]"
                if typical.gpu_milli < 0 or _shape(typical) is None:
                    why = "is neither a share of one GPU nor a number of whole ones"
                    yield berth.ArgsError(f"{path}.gpuMilli", f"{typical.gpu_milli} {why}")
                if typical.cpu_milli < 0:
                    yield berth.ArgsError(f"{path}.cpuMilli", "must not be negative")
                if not 0 < typical.weight < float("inf"):
                    yield berth.ArgsError(f"{path}.weight", "must be above 0")

    reason = "node(s) had no GPU with enough left"
    normalized = True

    def __init__(self, args: Args) -> None:
        for problem in args.problems():
            raise problem
        self.args = args
        self._books = GpuBooks(args.resource, args.device_annotation, self._device)
        self._counts: Counter[GpuShape] = Counter()
        self._new = 0
        self._version = 0
        self._models: list[str] = []
        self._slots: dict[str, int] = {}
        self._slots_key = 0
        self._slots_limit = _FEW_SLOTS
        self._parts = 1
        self._kept = KeptCosts(self._costs_on)
        given: Counter[GpuShape] = Counter()
        for typical in args.typical_pods:
            shape = _shape(typical)
            if shape is not None:
                given[shape] += typical.weight  # type: ignore[assignment] # weights add up as well
        self._typical = TypicalShapes(given or {_FIRST_GUESS: 1.0}, args.popularity)

    # --- called by the scheduler --------------------------------------------------------------

    def signature(self, pod: Pod) -> Hashable:
        """Return the pod's requests, and the typical shapes that it is judged by."""
        self._learn()
        return self._version, pod.requests(self.args.resource), self._shape_of(pod)

    def filter(self, pod: Pod, nodes: Nodes) -> BoolArray:
        """Return the nodes that have GPUs for the pod."""
        self._learn()
        if not pod.requests(self.args.resource):
            return np.ones(len(nodes), dtype=np.bool_)
        shape = self._shape_of(pod)
        if shape is None:
            return np.zeros(len(nodes), dtype=np.bool_)
        if shape.is_share:
            return self._columns(nodes).largest() >= shape.gpu_milli
        whole: BoolArray = nodes.per_node("whole", self._whole, of_pods=True) >= shape.gpus
        return whole

    def score(self, pod: Pod, nodes: Nodes) -> FloatArray:
        """Return whole numbers from 0 to 100: 50 where the fragment stays as it is.

        The steps are wide on purpose, 40 thousandths of a GPU at the middle: the cost is an
        estimate, and other scores decide between nodes that are nearly as good.
        """
        shape = self._shape_of(pod)
        if shape is None:
            return np.zeros(len(nodes))
        return _scores(self._costs(shape, nodes))

    def filter_one(self, pod: Pod, node: Node) -> bool:
        """Return whether one node has GPUs for the pod."""
        if not pod.requests(self.args.resource):
            return True
        shape = self._shape_of(pod)
        left = self._left(node)
        return shape is not None and sum(each >= shape.gpu_milli for each in left) >= shape.gpus

    def score_one(self, pod: Pod, node: Node) -> float:
        """Return the score of one node."""
        shape = self._shape_of(pod)
        if shape is None:
            return 0.0
        state = self._state(node, sorted(self._left(node), reverse=True), node.free("cpu"))
        costs, _ = self._typical.costs(state, shape)
        return float(_scores(costs)[0])

    # --- for people and measurements ------------------------------------------------------------

    @property
    def models(self) -> Sequence[str]:
        """The known models of GPU, in the order of their numbers."""
        return tuple(self._models)

    def states(self, nodes: Nodes) -> GpuStates:
        """Return the free resources of nodes: GPUs, the fullest last, CPU and models."""
        return self._columns(nodes).unpacked()

    # --- pods -----------------------------------------------------------------------------------

    def _shape_of(self, pod: Pod) -> GpuShape | None:
        demand = pod.requests(self.args.resource)
        return shape_of(pod.requests("cpu"), demand, self._of(pod) if demand else frozenset())

    def _of(self, pod: Pod) -> frozenset[str]:
        """Return the models that the pod may run on, if it names any; empty for all models."""
        label = self.args.model_label
        chosen = pod.node_selector.get(label)
        if chosen is not None:
            return frozenset({chosen})
        affinity = pod.spec.affinity
        node_affinity = None if affinity is None else affinity.node_affinity
        if node_affinity is None:
            return frozenset()
        selector = node_affinity.required_during_scheduling_ignored_during_execution
        models: set[str] = set()
        for term in () if selector is None else selector.node_selector_terms:
            named = [
                set(each.values)
                for each in term.match_expressions
                if each.key == label and each.operator == "In"
            ]
            if not named:
                return frozenset()
            models |= set.intersection(*named)
        return frozenset(models)

    # --- the workload ---------------------------------------------------------------------------

    def _learn(self) -> None:
        """Apply the counted shapes if the typical shapes change noticeably.

        Call it only between pods: all results for one pod use the same shapes.
        """
        total = self._counts.total()
        if self.args.typical_pods or self._new < max(_LEARN_AFTER, total // 8):
            return
        if total > _AGE_AT:
            halves = {shape: count // 2 for shape, count in self._counts.items()}
            self._counts = Counter({shape: count for shape, count in halves.items() if count})
        self._typical = TypicalShapes(self._counts, self.args.popularity)
        self._typical.allow(self._models)
        self._new = 0
        self._version += 1
        self._kept.clear()

    # --- nodes ----------------------------------------------------------------------------------

    def _costs(self, shape: GpuShape, nodes: Nodes) -> FloatArray:
        """Return the cost of a pod of a shape on each node, infinite where there is no GPU for it.

        *Cost*: a few vector operations, and some 100 us for the nodes that changed since the last
        pod of the shape.
        """
        everywhere = nodes.all_nodes
        if len(self._slots) > self._slots_limit:
            self._slots_limit = max(4 * len(everywhere), _FEW_SLOTS)
            self._slots_key += 1
            self._slots.clear()
            self._kept.clear()
        slots = nodes.per_node(("slot", self._slots_key), self._slot).astype(np.intp)
        return self._kept.of(shape, slots, len(self._slots), self._columns(nodes))

    def _costs_on(self, shape: GpuShape, states: GpuStates) -> FloatArray:
        return self._typical.costs(states, shape)[0]

    def _columns(self, nodes: Nodes) -> PackedStates:
        most = int(nodes.all_nodes.allocatable(self.args.resource).max(initial=0))
        self._parts = max(self._parts, -(-most // (WHOLE * PACKED)))
        gpus = [
            nodes.per_node(("left", part), partial(self._packed_left, part), of_pods=True)
            for part in range(self._parts)
        ]
        model = nodes.per_node("model", self._model)
        return PackedStates(nodes.free("cpu"), model, np.array(gpus))

    def _slot(self, node: Node) -> float:
        return self._slots.setdefault(node.name, len(self._slots))

    def _model(self, node: Node) -> float:
        name = node.label(self.args.model_label, "") or ""
        if name not in self._models:
            self._models.append(name)
            self._typical.allow(self._models)
        return self._models.index(name)

    def _packed_left(self, part: int, node: Node) -> float:
        """Return the free shares of five of a node's GPUs, as one number."""
        return packed(self._left(node), part)

    def _whole(self, node: Node) -> float:
        return self._left(node).count(WHOLE)

    def _left(self, node: Node) -> list[int]:
        left, new = self._books.left(node)
        for pod in new:
            shape = self._shape_of(pod)
            if shape is not None:
                self._counts[shape] += 1
                self._new += 1
        return left

    def _state(self, node: Node, left: Sequence[int], cpu_milli: int) -> GpuStates:
        model = int(self._model(node))
        gpus = np.array(left, dtype=np.int64).reshape(1, len(left))
        return GpuStates(np.array([cpu_milli]), gpus, np.array([model]))

    def _device(self, node: Node, pod: Pod, left: Sequence[int]) -> int:
        """Choose the GPU for a share; the pod is on the node already, its CPU is taken."""
        shape = self._shape_of(pod)
        assert shape is not None  # noqa: S101 - only shares of one GPU are asked about
        if self.args.device == "tightest":
            return min((amount, at) for at, amount in enumerate(left) if amount >= shape.gpu_milli)[
                1
            ]
        state = self._state(node, left, node.free("cpu") + shape.cpu_milli)
        _, chosen = self._typical.costs(state, shape)
        return left.index(int(chosen[0]))


def _scores(costs: FloatArray) -> FloatArray:
    gpus = np.clip(costs / WHOLE, -50.0, 50.0)
    scores: FloatArray = np.floor(100.0 / (1.0 + np.exp(gpus)))
    return scores


def _shape(typical: TypicalPod) -> GpuShape | None:
    return shape_of(typical.cpu_milli, typical.gpu_milli, frozenset(typical.models))
