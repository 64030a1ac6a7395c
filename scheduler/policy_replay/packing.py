"""How full the nodes of a cluster are: nodes in use, shares requested, fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from cache.resources import CPU, MEMORY
from scheduler.offline.fragmentation import PODS, fragmentation, usual_requests
from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.node_info import NodeInfo

MAX_RESOURCES: Final = 8
MAX_SAMPLES: Final = 64

_OF_NODE: Final = (DrainKind.DAEMON_SET, DrainKind.MIRROR)


class Packing(msgspec.Struct, frozen=True, rename="camel"):
    """The nodes of a cluster, at one moment or on average over time.

    Attributes
    ----------
    nodes
        All nodes.
    used
        Those with a pod that is neither of a DaemonSet nor static.
    requested
        The share that pods request of what the used nodes have, by resource, in 0..1.
    fragmented
        The share of all nodes' resources that is free and cannot be used by the usual requests, in
        0..1, by resource.
    """

    nodes: float = 0.0
    used: float = 0.0
    requested: dict[str, float] = {}
    fragmented: dict[str, float] = {}


def packing_of(infos: Iterable[NodeInfo]) -> Packing:
    """Return the packing of some nodes.

    *Cost*: proportional to nodes and pods.
    """
    nodes = [info for info in infos if info.node is not None]
    if not nodes:
        return Packing()
    used = np.array([_is_used(info) for info in nodes], dtype=bool)
    names = _resources(nodes)
    allocatable = {name: _column(info.allocatable.get(name, 0) for info in nodes) for name in names}
    requested = {
        name: _column(
            len(info.pods) if name == PODS else info.requested.get(name, 0) for info in nodes
        )
        for name in names
    }
    free = {name: np.maximum(allocatable[name] - requested[name], 0) for name in names}
    fragmented = fragmentation(free, usual_requests(nodes, ()))
    return Packing(
        len(nodes),
        int(used.sum()),
        {name: _share(requested[name][used], allocatable[name][used]) for name in names},
        {name: _share(fragmented[name], allocatable[name]) for name in names if name != PODS},
    )


def _is_used(info: NodeInfo) -> bool:
    return any(drain_kind(pod.pod) not in _OF_NODE for pod in info.pods.values())


def _resources(nodes: Sequence[NodeInfo]) -> list[str]:
    """Return CPU, memory, pods, and the others that pods ask for."""
    asked = {name for info in nodes for name, amount in info.requested.items() if amount}
    usual = [CPU, MEMORY, PODS]
    return usual + sorted(asked - set(usual))[: MAX_RESOURCES - len(usual)]


def _column(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    # An amount may be beyond 64 bits.
    return np.array([float(value) for value in values], dtype=np.float64)


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    total = float(whole.sum())
    return float(part.sum()) / total if total else 0.0


class PackingOverTime:
    """The packing of two clusters over time, from samples.

    The time between two samples grows with the journal, so that there are at most
    ``2 * MAX_SAMPLES`` of them.

    Attributes
    ----------
    samples
        How many moments were looked at.
    """

    def __init__(self) -> None:
        self.samples = 0
        self._every_s = 1.0
        self._since = 0
        self._last_s: float | None = None
        self._weight_s = 0.0
        self._sums: tuple[dict[str, float], dict[str, float]] = ({}, {})

    def is_due(self, now_s: float) -> bool:
        """Return whether a sample is to be taken."""
        return self._last_s is None or now_s - self._last_s >= self._every_s

    def add(self, now_s: float, then: Packing, now: Packing) -> None:
        """Add a sample: it counts for the time since the one before."""
        passed_s = 0.0 if self._last_s is None else now_s - self._last_s
        self._last_s = now_s
        self.samples += 1
        self._since += 1
        if self._since >= MAX_SAMPLES:
            self._since, self._every_s = self._since // 2, self._every_s * 2
        if passed_s <= 0:
            return
        self._weight_s += passed_s
        for sums, packing in zip(self._sums, (then, now), strict=True):
            for name, value in _values(packing):
                sums[name] = sums.get(name, 0.0) + value * passed_s

    def means(self) -> tuple[Packing, Packing] | None:
        """Return the averages over time; None when no time has passed."""
        if not self._weight_s:
            return None
        then, now = (
            {name: total / self._weight_s for name, total in sums.items()} for sums in self._sums
        )
        return _packing(then), _packing(now)


def _values(packing: Packing) -> list[tuple[str, float]]:
    values = [("nodes", packing.nodes), ("used", packing.used)]
    values += [(f"requested/{name}", share) for name, share in packing.requested.items()]
    return values + [(f"fragmented/{name}", share) for name, share in packing.fragmented.items()]


def _packing(values: Mapping[str, float]) -> Packing:
    def part(kind: str) -> dict[str, float]:
        start = f"{kind}/"
        return {
            name.removeprefix(start): value
            for name, value in values.items()
            if name.startswith(start)
        }

    return Packing(values["nodes"], values["used"], part("requested"), part("fragmented"))
