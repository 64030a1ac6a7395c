"""The cluster of a trial: fixed nodes and pods, for which the plugin is called."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

import msgspec

from cache.disruption_budgets import DisruptionBudgets
from cache.namespaces import Namespaces
from cache.objects import Node, Pod
from cache.pod_groups import PodGroups
from cache.pod_info import PodInfo
from cache.resources import MalformedObjectError
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from cache.storage import Storage
from cache.workloads import Workloads
from plugins.framework.node_metrics import MetricReading, NoMetrics
from scheduler.client.codec import Decoder
from scheduler.user_plugins.plugin_trial import sample_cluster as made_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cache.columns import NodesView
    from plugins.framework.handle import Handle
    from plugins.framework.node_metrics import NodeMetrics

S = TypeVar("S", bound=msgspec.Struct)

Json: TypeAlias = bytes | msgspec.Raw

_KNOWN: Final = 0.9
"""The share of nodes that have a metric value."""

_NODES: Final = Decoder(Node)
_PODS: Final = Decoder(Pod)


class MadeUpMetrics:
    """Node metrics that have a value of any name for most nodes."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._readings: dict[str, MetricReading] = {}

    def latest(self, name: str) -> MetricReading:
        """Return numbers between 0 and 1, which depend only on the node itself."""
        reading = self._readings.get(name)
        if reading is None:
            shares = {each: random.Random(f"{name}/{each}").random() for each in self._names}
            known = {each: share for each, share in shares.items() if share < _KNOWN}
            reading = self._readings[name] = MetricReading(known, 1)
        return reading


class TrialHandle:
    """The handle of plugins in a trial: it has no methods that change anything."""

    def __init__(self, metrics: NodeMetrics) -> None:
        self.node_metrics = metrics
        self.namespaces = Namespaces()
        self.workloads = Workloads()
        self.storage = Storage()
        self.disruption_budgets = DisruptionBudgets()
        self.pod_groups = PodGroups()


class World:
    """Nodes with their pods, and pending pods.

    Parameters
    ----------
    name
        The name in messages, as in "failed with NAME".
    nodes, pods
        Nodes and running pods as JSON; other pods and undecodable objects are ignored.
    newcomers
        The pending pods as JSON.
    """

    def __init__(
        self, name: str, nodes: Iterable[Json], pods: Iterable[Json], newcomers: Iterable[Json]
    ) -> None:
        self.name = name
        self.nodes = _readable(_NODES, nodes)
        self.pods = [
            pod
            for pod in _readable(_PODS, pods)
            if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed")
        ]
        self._newcomers = _readable(_PODS, newcomers)

    @classmethod
    def made_up(cls, num_nodes: int, pods_per_node: int = 3) -> World:
        """Return a generated world, equal in every call."""
        what = "no node" if not num_nodes else f"{num_nodes} generated node"
        return cls(
            what if num_nodes < 2 else f"{what}s",
            made_up.nodes(num_nodes),
            made_up.bound_pods(num_nodes, pods_per_node),
            made_up.waiting_pods(),
        )

    @property
    def newcomers(self) -> tuple[PodInfo, ...]:
        """The pending pods, decoded anew each time, because a plugin may have modified others."""
        return tuple(map(PodInfo, self._newcomers))

    def cache(self) -> SchedulerCache:
        """Return a cache with the world's nodes and running pods."""
        cache = SchedulerCache()
        for node in self.nodes:
            cache.add_node(node)
        for pod in self.pods:
            cache.add_pod(PodInfo(pod))
        return cache

    def view(self) -> NodesView:
        """Return a view of all nodes in a new snapshot."""
        snapshot = Snapshot()
        self.cache().update_snapshot(snapshot)
        return snapshot.all_nodes()

    def backwards(self) -> World:
        """Return the same world with its nodes in reverse order."""
        world = World(self.name, (), (), ())
        world.nodes, world.pods = self.nodes[::-1], self.pods[::-1]
        world._newcomers = self._newcomers
        return world

    def handle(self, *, with_metrics: bool) -> Handle:
        """Return the handle for a plugin in this world."""
        names = [node.metadata.name for node in self.nodes]
        metrics: NodeMetrics = MadeUpMetrics(names) if with_metrics else NoMetrics()
        return cast("Handle", TrialHandle(metrics))


def _readable(decoder: Decoder[S], raws: Iterable[Json]) -> list[S]:
    found = []
    for raw in raws:
        try:
            found.append(decoder.decode(raw))
        except MalformedObjectError:
            continue
    return found
