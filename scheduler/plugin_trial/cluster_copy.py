"""Part of the cluster, for plugins to be tried in."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.plugin_trial.trial import ClusterCopy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.objects import Node, Pod

MAX_NODES: Final = 300
MAX_PODS: Final = 1500
"""Enough to meet every kind of node that there is, and quick to copy."""

_encode: Final = msgspec.json.Encoder().encode


def copy_of(nodes: Iterable[Node], pods: Iterable[Pod]) -> ClusterCopy:
    """Return a copy of some nodes, and of some of the pods on them.

    *Cost*: some 10 us for each object that is copied, and a look at every other.
    """
    some = list(islice(nodes, MAX_NODES))
    names = {node.metadata.name for node in some}
    on_them = (pod for pod in pods if pod.spec.node_name in names)
    return ClusterCopy(
        tuple(map(_encode, some)), tuple(_encode(pod) for pod in islice(on_them, MAX_PODS))
    )
