"""The read-only view of one node that a user's plugin receives."""

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
    """A node and the pods on it, read-only.

    It has the methods of :class:`plugins.authoring.Nodes`, for one node.
    """

    __slots__ = ("_info", "_own")

    def __init__(self, info: NodeInfo, own: OwnColumns) -> None:
        self._info = info
        self._own = own

    @property
    def name(self) -> str:
        """The name of the node."""
        return self._info.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the node."""
        return MappingProxyType(self._info.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the node that Berth stores: see docs/plugins.md."""
        node = self._info.node
        return MappingProxyType({} if node is None else node.metadata.annotations)

    def allocatable(self, resource: str) -> int:
        """Return the allocatable amount: milli-CPU for ``cpu``, bytes or counts for all others."""
        return self._info.allocatable.get(resource, 0)

    def requested(self, resource: str) -> int:
        """Return the sum of the requests of its pods; for ``pods``, their number."""
        info = self._info
        return len(info.pods) if resource == PODS else info.requested.get(resource, 0)

    def free(self, resource: str) -> int:
        """Return the allocatable amount that is not requested; negative if overcommitted."""
        return self.allocatable(resource) - self.requested(resource)

    def label(self, key: str, default: str | None = None) -> str | None:
        """Return the value of a label; ``default`` if the node does not have it."""
        return self._info.labels.get(key, default)

    def label_number(self, key: str, default: float = math.nan) -> float:
        """Return the value of a label as a number; ``default`` if absent or not a number."""
        return number_of(self._info.labels.get(key), default)

    def annotation_number(self, key: str, default: float = math.nan) -> float:
        """Return the value of an annotation as a number; ``default`` if absent or not a number."""
        return number_of(self.annotations.get(key), default)

    def has_taint(self, key: str, value: str | None = None, effect: str | None = None) -> bool:
        """Return whether the node has a taint; None matches every value and every effect."""
        node = self._info.node
        return node is not None and any(
            taint.key == key and value in (None, taint.value) and effect in (None, taint.effect)
            for taint in node.spec.taints
        )

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        node = self._info.node
        return node is not None and node.spec.unschedulable

    @property
    def zone(self) -> str:
        """The region and zone of the node as one unique string; empty for a node without them."""
        return zone_key(self._info.labels)

    def matching_pods(
        self,
        selector: Mapping[str, str] | Selector,
        namespaces: Collection[str] | None = None,
    ) -> int:
        """Return the number of its pods that have all these labels; see ``Nodes.matching_pods``."""
        within = None if namespaces is None else frozenset(namespaces)
        query = PodQuery(within, selector_of(selector))
        return sum(query.matches(info.pod) for info in self._info.pods.values())

    @property
    def pods(self) -> Iterator[Pod]:
        """The pods of the node, including assumed pods."""
        return (Pod(info) for info in self._info.pods.values())

    def metric(self, name: str) -> float:
        """Return the value of a node metric; NaN if it is unknown or too old."""
        return self._own.metric_of(name, self._info.name)

    def __repr__(self) -> str:
        return f"Node({self._info.name})"
