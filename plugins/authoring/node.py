"""One node as a user's plugin sees it."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

from cache.node_tree import zone_key
from cache.pod_table import PodQuery
from cache.resources import PODS
from plugins.authoring.pod import Pod
from plugins.authoring.view_readings import number_of, selector_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from cache.label_selectors import Selector
    from cache.node_info import NodeInfo
    from plugins.authoring.own_columns import OwnColumns


class Node:
    """A node and the pods on it; nothing of it can be changed.

    It answers the same questions as :class:`plugins.authoring.Nodes`, about one node.
    """

    __slots__ = ("_info", "_own")

    def __init__(self, info: NodeInfo, own: OwnColumns) -> None:
        self._info = info
        self._own = own

    @property
    def name(self) -> str:
        """Its name."""
        return self._info.name

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return MappingProxyType(self._info.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations, as far as they are kept: see docs/plugins.md."""
        node = self._info.node
        return MappingProxyType({} if node is None else node.metadata.annotations)

    def allocatable(self, resource: str) -> int:
        """Return what it has for pods: milli-CPU for ``cpu``, bytes or counts for all others."""
        return self._info.allocatable.get(resource, 0)

    def requested(self, resource: str) -> int:
        """Return what its pods have asked for; of ``pods`` their number."""
        info = self._info
        return len(info.pods) if resource == PODS else info.requested.get(resource, 0)

    def free(self, resource: str) -> int:
        """Return what is left: negative on an overcommitted node."""
        return self.allocatable(resource) - self.requested(resource)

    def label(self, key: str, default: str | None = None) -> str | None:
        """Return the value of a label."""
        return self._info.labels.get(key, default)

    def label_number(self, key: str, default: float = math.nan) -> float:
        """Return the value of a label as a number; ``default`` when it is absent or none."""
        return number_of(self._info.labels.get(key), default)

    def annotation_number(self, key: str, default: float = math.nan) -> float:
        """Return the value of an annotation as a number; ``default`` when absent or none."""
        return number_of(self.annotations.get(key), default)

    def has_taint(self, key: str, value: str | None = None, effect: str | None = None) -> bool:
        """Tell whether it has a taint; None stands for every value and every effect."""
        node = self._info.node
        return node is not None and any(
            taint.key == key and value in (None, taint.value) and effect in (None, taint.effect)
            for taint in node.spec.taints
        )

    @property
    def unschedulable(self) -> bool:
        """Whether it is cordoned."""
        node = self._info.node
        return node is not None and node.spec.unschedulable

    @property
    def zone(self) -> str:
        """Its region and zone in one text, another for each; empty for a node without."""
        return zone_key(self._info.labels)

    def matching_pods(
        self,
        selector: Mapping[str, str] | Selector,
        namespaces: Collection[str] | None = None,
    ) -> int:
        """Return how many of its pods have all of these labels; see ``Nodes.matching_pods``."""
        within = None if namespaces is None else frozenset(namespaces)
        query = PodQuery(within, selector_of(selector))
        return sum(query.matches(info.pod) for info in self._info.pods.values())

    @property
    def pods(self) -> Iterator[Pod]:
        """Its pods, those included that are on their way to it."""
        return (Pod(info) for info in self._info.pods.values())

    def metric(self, name: str) -> float:
        """Return a measured metric; NaN where it is unknown or too old."""
        return self._own.metric_of(name, self._info.name)

    def __repr__(self) -> str:
        return f"Node({self._info.name})"
