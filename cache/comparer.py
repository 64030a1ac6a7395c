"""The cache held against the API's truth: not only names, but every sum that decisions use.

Source of the idea: pkg/scheduler/backend/cache/debugger/comparer.go (1.36), which compares names
and UIDs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cache.node_info import NodeInfo
from cache.pod_info import PodInfo, is_terminal
from cache.scheduler_cache import rebuild

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.objects import Node, Pod
    from cache.scheduler_cache import CacheDump


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One fact that the cache has wrong."""

    node: str
    fact: str
    """For example ``requested`` or ``used_ports``; ``node`` for the node object itself."""
    cached: object
    truth: object

    def __str__(self) -> str:
        return f"node {self.node}: {self.fact} is {self.cached!r}, the API says {self.truth!r}"


def compare(dump: CacheDump, nodes: Iterable[Node], pods: Iterable[Pod]) -> list[Mismatch]:
    """Return everything in which the cache differs from one built anew.

    Parameters
    ----------
    dump
        The cache.
    nodes, pods
        All nodes and all pods of the cluster, as the API has them.

    Notes
    -----
    A pod that is assumed, and that the API does not show as assigned yet, is expected where it
    is assumed. A pod or node that cannot be read counts as absent on both sides.

    *Cost*: that of building a cache; meant for tests, for debugging and for a slow audit.
    """
    assigned: list[PodInfo] = []
    assumed: list[tuple[PodInfo, str]] = []
    for pod in pods:
        uid = pod.metadata.uid
        if is_terminal(pod):
            continue
        if pod.spec.node_name:
            assigned.append(PodInfo(pod))
        elif uid in dump.assumed:
            assumed.append((PodInfo(pod), dump.assumed[uid]))
    twin = rebuild(nodes, assigned)
    for info, node_name in assumed:
        twin.assume_pod(info, node_name)
    expected = twin.dump().nodes
    found: list[Mismatch] = []
    for name in sorted(dump.nodes.keys() | expected.keys()):
        cached = dump.nodes.get(name) or NodeInfo(name)
        wanted = expected.get(name) or NodeInfo(name)
        cached_facts, wanted_facts = cached.facts(), wanted.facts()
        found += [
            Mismatch(name, fact, cached_facts[fact], wanted_facts[fact])
            for fact in cached_facts
            if cached_facts[fact] != wanted_facts[fact]
        ]
    return found
