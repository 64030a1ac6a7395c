"""Names of nodes grouped by zone and returned round robin across zones.

Visiting the nodes in this order distributes the first nodes that are used over the zones.

*Source*: kube-scheduler 1.36, pkg/scheduler/backend/cache/node_tree.go; k8s.io/component-helpers
node/topology/helpers.go (GetZoneKey).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LABEL_ZONE = "topology.kubernetes.io/zone"
LABEL_REGION = "topology.kubernetes.io/region"
LABEL_ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
LABEL_REGION_BETA = "failure-domain.beta.kubernetes.io/region"


def zone_key(labels: Mapping[str, str]) -> str:
    """Return a text that identifies the node's zone; empty if it has none.

    A zone is known by region and zone together. The deprecated ``failure-domain.beta`` labels
    win where they are present, even when empty.
    """
    zone = labels.get(LABEL_ZONE_BETA)
    if zone is None:
        zone = labels.get(LABEL_ZONE, "")
    region = labels.get(LABEL_REGION_BETA)
    if region is None:
        region = labels.get(LABEL_REGION, "")
    # No label value holds a null character, so region and zone cannot run into each other.
    return f"{region}:\0:{zone}" if region or zone else ""


class _Zone:
    """The nodes of one zone in order of arrival, and the number of them already returned."""

    __slots__ = ("handed_out", "key", "names")

    def __init__(self, key: str) -> None:
        self.key = key
        self.names: list[str] = []
        self.handed_out = 0


class NodeTree:
    """The nodes of the cluster by zone.

    The tree remembers the zone in which it put each node, so a node leaves the right zone even
    when the labels that come with its removal are not those it was added with.

    *Concurrency*: not thread-safe; guarded by the owner's lock.
    """

    __slots__ = ("_cursor", "_zone_of", "_zones")

    def __init__(self) -> None:
        self._zones: list[_Zone] = []
        self._zone_of: dict[str, _Zone] = {}
        self._cursor = 0

    @property
    def num_nodes(self) -> int:
        """The number of nodes in the tree."""
        return len(self._zone_of)

    def add_node(self, name: str, labels: Mapping[str, str]) -> None:
        """Put the node last in its zone; a node already there keeps its place.

        A node that is already in another zone is moved.
        """
        key = zone_key(labels)
        current = self._zone_of.get(name)
        if current is not None:
            if current.key == key:
                return
            self._take_out(name, current)
        for zone in self._zones:
            if zone.key == key:
                break
        else:
            zone = _Zone(key)
            self._zones.append(zone)
        zone.names.append(name)
        self._zone_of[name] = zone

    def remove_node(self, name: str) -> None:
        """Remove the node, and its zone if it was the last node there.

        Raises
        ------
        KeyError
            If the node is not in the tree.

        Notes
        -----
        *Cost*: proportional to the number of nodes in the zone.
        """
        zone = self._zone_of.get(name)
        if zone is None:
            raise KeyError(f"node {name!r} is not in the node tree")
        self._take_out(name, zone)

    def update_node(self, name: str, labels: Mapping[str, str]) -> None:
        """Move the node to the zone of ``labels``; one that was not in the tree is added."""
        self.add_node(name, labels)

    def names(self) -> list[str]:
        """Return all names: the first of every zone, then the second of every zone, and so on.

        Notes
        -----
        *Cost*: proportional to the number of nodes.
        """
        if len(self._zones) == 1:
            return self._zones[0].names.copy()
        found: list[str] = []
        remaining = [zone.names for zone in self._zones]
        index = 0
        while remaining:
            found += [names[index] for names in remaining]
            index += 1
            remaining = [names for names in remaining if len(names) > index]
        return found

    def next(self) -> str:
        """Return the next name, round robin across zones, passing over exhausted ones.

        Every node comes once before any comes again: when all zones are exhausted the round
        starts anew. A node that arrives in an exhausted zone still comes in this round.

        Raises
        ------
        LookupError
            If the tree is empty.
        """
        if not self._zones:
            raise LookupError("the node tree is empty, so there is no next node")
        while True:
            for _ in range(len(self._zones)):
                if self._cursor >= len(self._zones):
                    self._cursor = 0
                zone = self._zones[self._cursor]
                self._cursor += 1
                if zone.handed_out < len(zone.names):
                    zone.handed_out += 1
                    return zone.names[zone.handed_out - 1]
            self.reset_exhausted()

    def reset_exhausted(self) -> None:
        """Start a new round: :meth:`next` returns names in the order of :meth:`names` again."""
        self._cursor = 0
        for zone in self._zones:
            zone.handed_out = 0

    def _take_out(self, name: str, zone: _Zone) -> None:
        index = zone.names.index(name)
        del zone.names[index]
        del self._zone_of[name]
        if index < zone.handed_out:
            zone.handed_out -= 1
        if not zone.names:
            position = self._zones.index(zone)
            del self._zones[position]
            if position < self._cursor:
                self._cursor -= 1
