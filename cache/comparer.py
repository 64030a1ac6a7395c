"""Comparison of the cache with the API: names, and every sum that decisions use.

*Source* of the idea: pkg/scheduler/backend/cache/debugger/comparer.go (1.36), which compares names
and UIDs.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

from cache.image_states import ImageStates
from cache.node_info import NodeInfo
from cache.pod_info import PodInfo, is_terminal
from cache.resources import MalformedObjectError
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from cache.objects import Node, Pod
    from cache.scheduler_cache import CacheDump, CacheMark, SchedulerCache

_SORTED_AT_ONCE: Final = 200
"""Objects sorted by node within one step: some 50 us."""

_READ_AT_ONCE: Final = 4
"""Pods read within one step: some 100 us."""


class Mismatch(Value, frozen=True):
    """One difference between the cache and the API."""

    node: str
    fact: str
    """For example ``requested`` or ``used_ports``; ``node`` for the node object itself."""
    cached: object
    truth: object

    def __str__(self) -> str:
        return f"node {self.node}: {self.fact} is {self.cached!r}, the API says {self.truth!r}"


class Comparison(Value, frozen=True):
    """The result of a comparison in steps."""

    mismatches: tuple[Mismatch, ...]
    compared: int
    """Nodes that were compared."""
    passed_over: int
    """Nodes that have changed since the comparison began, and those that cannot be read."""


Steps: TypeAlias = "Generator[None, None, Comparison]"
"""A comparison that does a bit, about 0.1 ms, each time that it is asked to go on."""


def compare(dump: CacheDump, nodes: Iterable[Node], pods: Iterable[Pod]) -> list[Mismatch]:
    """Return all differences between the cache and one built anew.

    Parameters
    ----------
    dump
        The cache.
    nodes, pods
        All nodes and all pods of the cluster, as the API has them.

    Notes
    -----
    A pod that is assumed, and that the API does not show as assigned yet, is expected where it
    is assumed. Nothing is said of a node that cannot be read, or with a pod that cannot: the cache
    keeps what it knew of them before.

    *Cost*: that of reading all pods anew; meant for tests and for debugging.
    """
    steps = _steps(
        nodes,
        pods,
        dump.assumed,
        dump.nodes,
        lambda name: dump.nodes.get(name) or NodeInfo(name),
        count_images=True,
    )
    while True:
        try:
            next(steps)
        except StopIteration as end:
            comparison: Comparison = end.value
            return list(comparison.mismatches)


def compare_in_steps(
    cache: SchedulerCache, mark: CacheMark, nodes: Iterable[Node], pods: Iterable[Pod]
) -> Steps:
    """Compare a cache that keeps changing, in small steps.

    Parameters
    ----------
    mark
        Where the cache was when `nodes` and `pods` were what the API has. A node that changes
        later is skipped.

    Notes
    -----
    As :func:`compare`, but for the numbers of nodes that hold an image: they change without the
    node.

    *Cost*: at 5 000 nodes and 20 000 pods a third of a second in all, in steps of 0.1 ms; the
    cache's lock is held for one node at a time.
    """
    return _steps(
        nodes,
        pods,
        mark.assumed,
        mark.names,
        lambda name: cache.node_at(name, mark),
        count_images=False,
    )


def _steps(
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    assumed: Mapping[str, str],
    cached_names: Iterable[str],
    cached_node: Callable[[str], NodeInfo | None],
    *,
    count_images: bool,
) -> Steps:
    pods_on: defaultdict[str, list[Pod]] = defaultdict(list)
    for number, pod in enumerate(pods):
        if not number % _SORTED_AT_ONCE:
            yield
        if not is_terminal(pod):
            node_name = pod.spec.node_name or assumed.get(pod.metadata.uid)
            if node_name:
                pods_on[node_name].append(pod)
    node_named: dict[str, Node] = {}
    images = ImageStates()
    for node in nodes:
        node_named[node.metadata.name] = node
        if count_images:
            images.add_node(node.metadata.name, node.status.images)
    found: list[Mismatch] = []
    compared = passed_over = 0
    for name in sorted({*cached_names, *node_named, *pods_on}):
        yield
        expected = NodeInfo(name)
        try:
            if name in node_named:
                _set_node(expected, node_named[name], images if count_images else ImageStates())
            for number, pod in enumerate(pods_on.get(name, ())):
                if number % _READ_AT_ONCE == _READ_AT_ONCE - 1:
                    yield
                expected.add_pod(PodInfo(pod))
        except MalformedObjectError:
            passed_over += 1
            continue
        cached = cached_node(name)
        if cached is None:
            passed_over += 1
            continue
        compared += 1
        found += _differences(cached, expected, count_images=count_images)
    return Comparison(tuple(found), compared, passed_over)


def _set_node(info: NodeInfo, node: Node, images: ImageStates) -> None:
    info.set_node(node)
    images.add_node(info.name, node.status.images)
    info.image_states = images.node_images(info.name)


def _differences(
    cached: NodeInfo, expected: NodeInfo, *, count_images: bool
) -> Generator[Mismatch, None, None]:
    is_, should_be = cached.facts(), expected.facts()
    if not count_images:
        is_["image_states"] = set(cached.image_states)
        should_be["image_states"] = set(expected.image_states)
    for fact in is_:
        if is_[fact] != should_be[fact]:
            yield Mismatch(cached.name, fact, is_[fact], should_be[fact])
