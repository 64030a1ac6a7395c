"""Users' classes of every form, as people would write them."""

from __future__ import annotations

import numpy as np

from berth import Args, Node, Nodes, Pod
from cache.resources import CPU


class CheapNodesFirst:
    """Prefers nodes that cost little."""

    class Args(Args):
        label: str = "example.com/cost"
        unknown: float = 9.0

    higher_is_better = False

    def __init__(self, args: CheapNodesFirst.Args) -> None:
        self.args = args

    def score(self, pod: Pod, nodes: Nodes):
        return nodes.label_number(self.args.label, default=self.args.unknown)

    def score_one(self, pod: Pod, node: Node):
        return node.label_number(self.args.label, default=self.args.unknown)


class RoomyVector:
    """Half of the CPU stays free, and the freest node wins."""

    reason = "node(s) were half full"

    def filter(self, pod: Pod, nodes: Nodes):
        left = nodes.free(CPU) - pod.requests(CPU)
        return (left * 2 >= nodes.allocatable(CPU)) & (nodes.label("tier") != "b")

    def score(self, pod: Pod, nodes: Nodes):
        return nodes.free(CPU)

    def signature(self, pod: Pod):
        return pod.requests(CPU)


class RoomyScalar:
    """The same in the other form, with reasons of its own."""

    reason = "node(s) were half full"

    def filter_one(self, pod: Pod, node: Node):
        if node.label("tier") == "b":
            return "node(s) were of tier b"
        return (node.free(CPU) - pod.requests(CPU)) * 2 >= node.allocatable(CPU)

    def score_one(self, pod: Pod, node: Node):
        return node.free(CPU)


class RoomyBoth(RoomyScalar):
    """Both forms."""

    def filter_one(self, pod: Pod, node: Node):
        return node.label("tier") != "b" and super().filter_one(pod, node)

    def filter(self, pod: Pod, nodes: Nodes):
        return RoomyVector().filter(pod, nodes)


class Percent:
    """Scores that are on the scale already."""

    normalized = True

    def score(self, pod: Pod, nodes: Nodes):
        with np.errstate(divide="ignore", invalid="ignore"):
            share = nodes.free(CPU) / nodes.allocatable(CPU)
        return np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0) * 100


class FewestInZone:
    """Prefers the zone with the fewest pods: what is said of one node depends on others."""

    looks_at_other_nodes = True
    higher_is_better = False

    def filter(self, pod: Pod, nodes: Nodes):
        return self.in_zone(nodes) <= 3

    def score(self, pod: Pod, nodes: Nodes):
        return self.in_zone(nodes)

    def in_zone(self, nodes: Nodes):
        every = nodes.all_nodes
        counts = np.bincount(every.zones(), weights=every.requested("pods"))
        return counts[nodes.zones()]


ALL = (CheapNodesFirst, RoomyVector, RoomyScalar, RoomyBoth, Percent, FewestInZone)
