"""The pods and nodes of an openb trace, as the API would show them.

A trace is a folder with ``openb_node_list_gpu_node.csv`` (sn, cpu_milli, memory_mib, gpu, model)
and ``openb_pod_list_NAME.csv`` (name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec). It is
published with the FGD paper: github.com/hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plugins.examples.gpu_fragments import WHOLE, GpuShape
from tests.builders import node, pod, requirement, term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cache.objects import Node, Pod

GPU: Final = "scheduling.berth.dev/gpu-milli"
MODEL: Final = "nvidia.com/gpu.product"

_NODES: Final = "openb_node_list_gpu_node.csv"
_PODS: Final = "openb_pod_list_{}.csv"

_PODS_PER_NODE: Final = 1000
"""The trace has no such limit, and the published runs had none that mattered."""


@dataclass(frozen=True)
class TracedPod:
    """A line of a pod list."""

    shape: GpuShape
    memory_mib: int


@dataclass(frozen=True)
class Trace:
    """Nodes, and the pods that the workload is drawn from."""

    nodes: tuple[Node, ...]
    pods: tuple[TracedPod, ...]
    gpu_milli: int
    """All GPUs together, in thousandths."""


def names(folder: Path) -> list[str]:
    """Return the names of the pod lists in a folder."""
    prefix, suffix = _PODS.split("{}")
    found = folder.glob(_PODS.format("*"))
    return sorted(path.name.removeprefix(prefix).removesuffix(suffix) for path in found)


def read(folder: Path, name: str) -> Trace:
    """Read one pod list and the nodes.

    Raises
    ------
    OSError
        When a file is missing.
    KeyError, ValueError
        When one is no such list.
    """
    with (folder / _NODES).open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / _PODS.format(name)).open(newline="") as file:
        pods = tuple(_pod(row) for row in csv.DictReader(file))
    total = sum(int(row["gpu"]) for row in rows) * WHOLE
    return Trace(tuple(_node(row) for row in rows), pods, total)


def arrivals(trace: Trace, seed: int, demand: float) -> list[TracedPod]:
    """Return pods in the order in which they come, until they ask for ``demand`` of all GPUs.

    First those of the trace, shuffled, then random ones of them again.
    """
    rng = random.Random(seed)
    shuffled = list(trace.pods)
    rng.shuffle(shuffled)
    wanted = demand * trace.gpu_milli
    coming: list[TracedPod] = []
    asked = 0
    for each in _endlessly(shuffled, rng):
        if asked >= wanted:
            return coming
        coming.append(each)
        asked += each.shape.demand_milli
    return coming


def shares(pods: Sequence[TracedPod]) -> Counter[GpuShape]:
    """Return how many pods of each shape there are."""
    return Counter(each.shape for each in pods)


def as_pod(traced: TracedPod) -> Pod:
    """Return a pod of the API that is like one of the trace."""
    shape = traced.shape
    requests = {"cpu": f"{shape.cpu_milli}m", "memory": f"{traced.memory_mib}Mi"}
    if shape.gpus:
        requests[GPU] = str(shape.demand_milli)
    made = pod("like").request(requests)
    models = sorted(shape.models)
    if len(models) == 1:
        made = made.node_selector(MODEL, models[0])
    elif models:
        made = made.node_affinity(term(requirement(MODEL, "In", *models)))
    return made.build()


def _endlessly(pods: Sequence[TracedPod], rng: random.Random) -> Iterator[TracedPod]:
    yield from pods
    while any(each.shape.gpus for each in pods):
        yield rng.choice(pods)


def _node(row: dict[str, str]) -> Node:
    room = {
        "cpu": f"{row['cpu_milli']}m",
        "memory": f"{row['memory_mib']}Mi",
        "pods": str(_PODS_PER_NODE),
        GPU: str(int(row["gpu"]) * WHOLE),
    }
    return node(row["sn"]).capacity(room).label(MODEL, row["model"]).build()


def _pod(row: dict[str, str]) -> TracedPod:
    gpus = int(row["num_gpu"])
    models = frozenset(filter(None, (row.get("gpu_spec") or "").split("|")))
    milli = int(row["gpu_milli"]) if gpus else 0
    shape = GpuShape(int(row["cpu_milli"]), milli, gpus, models if gpus else frozenset())
    return TracedPod(shape, int(row["memory_mib"]))
