"""What is free on nodes, and cannot be used by the requests that are usual in the cluster."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.pod_info import readable_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cache.node_info import NodeInfo
    from cache.objects import Pod

PODS: Final = "pods"
MAX_SHAPES: Final = 64
"""How many of the most frequent requests count for fragmentation."""


def usual_requests(
    infos: Iterable[NodeInfo], waiting: Iterable[Pod]
) -> list[tuple[Mapping[str, int], int]]:
    """Return the most frequent requests of the pods that run or wait, with their numbers."""
    counts: Counter[tuple[tuple[str, int], ...]] = Counter()
    for info in infos:
        counts.update(_shape(pod.requests) for pod in info.pods.values())
    counts.update(_shape(readable_info(pod).requests) for pod in waiting)
    counts.pop((), None)
    return [(dict(shape), count) for shape, count in counts.most_common(MAX_SHAPES)]


def _shape(requests: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, amount) for name, amount in requests.items() if amount))


def fragmentation(
    free: Mapping[str, npt.NDArray[np.int64]], shapes: Sequence[tuple[Mapping[str, int], int]]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return what is free of each resource and cannot be used by the usual requests.

    Of a node's free amount counts the share of requests, by their number, that ask for the
    resource and do not fit on the node.

    Parameters
    ----------
    free
        int64, shape (n_nodes,), by resource.
    shapes
        Requests by resource name, and how many pods have them.

    *Source* of the idea: Weng et al., Beware of Fragmentation (USENIX ATC 2023), for GPUs.
    """
    fragmented: dict[str, npt.NDArray[np.float64]] = {}
    fits = [_fitting(free, shape) for shape, _ in shapes]
    for name, amounts in free.items():
        asking = [
            (fit, count)
            for fit, (shape, count) in zip(fits, shapes, strict=True)
            if shape.get(name, 0) or name == PODS
        ]
        whole = sum(count for _, count in asking)
        share = np.zeros(len(amounts), dtype=np.float64)
        for fit, count in asking:
            share += ~fit * (count / whole)
        fragmented[name] = amounts * share
    return fragmented


def _fitting(
    free: Mapping[str, npt.NDArray[np.int64]], shape: Mapping[str, int]
) -> npt.NDArray[np.bool_]:
    fit = free[PODS] >= 1
    for name, amount in shape.items():
        fit = fit & (free[name] >= amount) if name in free else np.zeros_like(fit)
    return fit
