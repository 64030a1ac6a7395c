"""Random small clusters with a gang, for comparison with an exhaustive search."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cache.pod_group_objects import GroupKey, GroupRules, GroupSource
from tests.builders import node, pod

if TYPE_CHECKING:
    from cache.node_info import NodeInfo
    from tests.builders import NodeBuilder, PodBuilder

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
RACK = "rack"
MAX_NODES = 6
MAX_MEMBERS = 5
_APPS = ("x", "y")


@dataclass(frozen=True)
class Case:
    """A cluster, the members of a gang in the order of their creation, and its rules."""

    nodes: tuple[NodeBuilder, ...]
    running: tuple[tuple[PodBuilder, ...], ...]
    members: tuple[PodBuilder, ...]
    rules: GroupRules
    notes: tuple[str, ...] = field(default=())
    """What is in it, for the statistics."""

    def infos(self) -> list[NodeInfo]:
        """Return the nodes with the pods that run on them."""
        return [each.info(*pods) for each, pods in zip(self.nodes, self.running, strict=True)]


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    draw = random.Random(seed)
    notes: set[str] = set()
    # Larger ones are more often undecided at first sight.
    count = max(draw.randint(1, MAX_NODES), draw.randint(1, MAX_NODES))
    nodes = tuple(_node(draw, index) for index in range(count))
    running = tuple(_running(draw, index) for index in range(count))
    style = draw.choice(("mixed", "mixed", "tight", "related"))
    notes.add(style)
    if style == "tight":
        nodes = tuple(each.capacity(cpu=draw.choice("3456")) for each in nodes[:4])
        running = tuple(() for _ in nodes)
        templates = [_sized(draw) for _ in range(MAX_MEMBERS)]
    elif style == "related":
        nodes = tuple(each.capacity(cpu=draw.choice("12")) for each in nodes)
        templates = [_related(draw) for _ in range(draw.choice((2, 3)))]
    else:
        templates = [_template(draw, notes) for _ in range(draw.choice((1, 1, 2, 2, 3)))]
    size = max(draw.randint(2, MAX_MEMBERS), draw.randint(2, MAX_MEMBERS))
    members = [draw.choice(templates).named(f"m{index}") for index in range(size)]
    needed = size if draw.random() < 0.75 else draw.randint(1, size)
    if needed < size:
        notes.add("fewer needed")
    rules = _rules(draw, needed, notes)
    return Case(nodes, running, tuple(members), rules, tuple(sorted(notes)))


def _rules(draw: random.Random, needed: int, notes: set[str]) -> GroupRules:
    required = preferred = ""
    if draw.random() < 0.25:
        required = draw.choice((ZONE, RACK))
        notes.add("topology")
    if draw.random() < 0.15:
        preferred = draw.choice((ZONE, RACK, HOST))
        notes.add("preferred topology")
    key = GroupKey("default", "gang", GroupSource.LABEL)
    return GroupRules(key, "uid", needed, topology_key=required, preferred_topology_key=preferred)


def _node(draw: random.Random, index: int) -> NodeBuilder:
    cpu = draw.choice(("1", "2", "2", "3", "4"))
    pods = draw.choice(("110", "110", "110", "2"))
    made = node(f"n{index}").capacity(cpu=cpu, memory="8Gi", pods=pods).label(HOST, f"n{index}")
    if draw.random() < 0.9:
        made = made.label(ZONE, draw.choice("abc"))
    if draw.random() < 0.85:
        made = made.label(RACK, draw.choice(("r0", "r1")))
    if draw.random() < 0.1:
        made = made.taint("dedicated", effect="NoSchedule")
    if draw.random() < 0.3:
        made = made.label("disk", "ssd")
    return made


def _running(draw: random.Random, index: int) -> tuple[PodBuilder, ...]:
    pods = []
    for number in range(draw.choice((0, 0, 0, 1, 2))):
        made = pod(f"old-{index}-{number}").label("app", draw.choice(_APPS))
        if draw.random() < 0.5:
            made = made.request(cpu=draw.choice(("500m", "1")))
        if draw.random() < 0.2:
            made = made.pod_anti_affinity(draw.choice((ZONE, HOST)), app=draw.choice(_APPS))
        if draw.random() < 0.1:
            made = made.host_port(80)
        pods.append(made)
    return tuple(pods)


def _sized(draw: random.Random) -> PodBuilder:
    """Return a pod that asks for room alone."""
    milli = draw.randrange(500, 4_000, 250)
    made = pod("x").label("app", draw.choice(_APPS)).toleration("dedicated", operator="Exists")
    return made.request(cpu=f"{milli}m", memory=draw.choice(("1Gi", "3Gi", "5Gi")))


def _related(draw: random.Random) -> PodBuilder:
    """Return a pod that asks for little room, and minds where others are."""
    app = draw.choice(_APPS)
    made = pod("x").label("app", app).request(cpu=draw.choice(("250m", "1")))
    other = draw.choice([each for each in _APPS if each != app])
    choice = draw.randrange(5)
    if choice in (0, 1):
        made = made.pod_affinity(draw.choice((ZONE, RACK)), app=other)
    if choice in (1, 2):
        made = made.spread(draw.choice((ZONE, HOST)), app=draw.choice(_APPS))
    if choice in (2, 3):
        made = made.pod_anti_affinity(draw.choice((ZONE, HOST, RACK)), app=draw.choice(_APPS))
    return made


def _template(draw: random.Random, notes: set[str]) -> PodBuilder:
    """Return a pod of which alike members are made."""
    made = pod("x").label("app", draw.choice(_APPS))
    if draw.random() < 0.85:
        made = made.request(cpu=draw.choice(("500m", "1", "1", "1500m", "2", "3")))
    if draw.random() < 0.25:
        made = made.pod_affinity(draw.choice((ZONE, HOST, RACK)), app=draw.choice(_APPS))
        notes.add("affinity")
    if draw.random() < 0.2:
        made = made.pod_anti_affinity(draw.choice((ZONE, HOST)), app=draw.choice(_APPS))
        notes.add("anti-affinity")
    if draw.random() < 0.2:
        skew = draw.choice((1, 1, 2))
        made = made.spread(draw.choice((ZONE, HOST)), max_skew=skew, app=draw.choice(_APPS))
        notes.add("spread")
    if draw.random() < 0.1:
        made = made.host_port(draw.choice((80, 81)))
        notes.add("ports")
    if draw.random() < 0.2:
        made = made.toleration("dedicated", operator="Exists")
        notes.add("taints")
    if draw.random() < 0.1:
        made = made.node_selector("disk", "ssd")
        notes.add("selector")
    return made
