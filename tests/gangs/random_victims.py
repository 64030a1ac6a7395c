"""Random clusters with a group that preempts, and the cheapest victims found by trying all."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import TYPE_CHECKING

from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupRules, GroupSource
from tests.builders import node, pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.builders import NodeBuilder, PodBuilder

OWN = GroupKey("default", "mine", GroupSource.LABEL)

MAX_RUNNING = 11
"""Pods that run: all choices among them are tried."""

Harm = tuple[int, int, int, int, float]


@dataclass(frozen=True)
class Running:
    """A pod that runs."""

    name: str
    node: str
    cpu: int
    priority: int
    start: int
    gang: str = ""
    budget: bool = False

    def build(self) -> PodBuilder:
        """Return the pod."""
        made = pod(self.name).priority(self.priority).request(cpu=str(self.cpu)).on(self.node)
        made = made.started(f"2025-01-01T00:00:{self.start:02}Z")
        if self.gang.startswith("f"):
            made = made.scheduling_group(self.gang)
        elif self.gang:
            made = made.label(GROUP_LABEL, self.gang)
        return made.label("app", "db") if self.budget else made


@dataclass(frozen=True)
class Gang:
    """The rules of a gang of running pods."""

    minimum: int
    whole: bool = False
    succeeded: int = 0


@dataclass(frozen=True)
class Case:
    """One cluster, and a group."""

    capacity: Mapping[str, int]
    zones: Mapping[str, str]
    running: tuple[Running, ...]
    gangs: Mapping[str, Gang]
    allowed: int
    sizes: tuple[int, ...]
    needed: int
    priority: int
    in_one_zone: bool = False
    apart: bool = False
    tainted: frozenset[str] = field(default_factory=frozenset)

    def nodes(self) -> list[NodeBuilder]:
        """Return the nodes."""
        made = []
        for name, cpu in self.capacity.items():
            each = node(name).capacity(cpu=str(cpu)).label("kubernetes.io/hostname", name)
            if self.zones[name]:
                each = each.label("zone", self.zones[name])
            made.append(each.taint("no", "one") if name in self.tainted else each)
        return made

    def members(self) -> list[PodBuilder]:
        """Return the members of the group."""
        made = []
        for at, cpu in enumerate(self.sizes):
            each = pod(f"m-{at}").priority(self.priority).request(cpu=str(cpu))
            each = each.label(GROUP_LABEL, OWN.name)
            if self.apart:
                each = each.pod_anti_affinity("kubernetes.io/hostname", **{GROUP_LABEL: OWN.name})
            made.append(each)
        return made

    def rules(self) -> GroupRules:
        """Return the rules of the group."""
        key = "zone" if self.in_one_zone else ""
        return GroupRules(OWN, "uid-mine", self.needed, topology_key=key)

    # --- the truth --------------------------------------------------------------------------

    def may_go(self) -> list[Running]:
        """Return the pods that are less important than the group."""
        return [each for each in self.running if each.priority < self.priority]

    def is_allowed(self, gone: frozenset[str]) -> bool:
        """Return whether no gang is left below its minimum, and none that is evicted whole."""
        for name, gang in self.gangs.items():
            members = {each.name for each in self.running if each.gang == name}
            lost, left = members & gone, members - gone
            if gang.minimum <= 1 and not gang.whole:
                continue
            if lost and left and (gang.whole or len(left) + gang.succeeded < gang.minimum):
                return False
        return True

    def harm(self, gone: frozenset[str]) -> Harm:
        """Return what decides between victims, less is better."""
        pods = sorted(
            (each for each in self.running if each.name in gone),
            key=lambda each: (-each.priority, each.start),
        )
        if not pods:
            return (0, 0, 0, 0, 0)
        protected = sum(each.budget for each in pods)
        return (
            max(protected - self.allowed, 0),
            pods[0].priority,
            sum(each.priority + 2**31 for each in pods),
            len(pods),
            -pods[0].start,
        )

    def fits(self, gone: Iterable[str]) -> bool:
        """Return whether enough members fit without some pods."""
        left = set(gone)
        free = dict(self.capacity)
        for each in self.running:
            if each.name not in left:
                free[each.node] -= each.cpu
        zones = {self.zones[name] for name in free} - {""}
        among = (
            [[name for name in free if self.zones[name] == zone] for zone in zones]
            if self.in_one_zone
            else [list(free)]
        )
        return any(
            self._fit({name: free[name] for name in names if name not in self.tainted}, sizes)
            for names in among
            for sizes in set(combinations(sorted(self.sizes), self.needed))
        )

    def _fit(self, free: dict[str, int], sizes: Sequence[int]) -> bool:
        if not sizes:
            return True
        if len(set(sizes)) == 1 and not self.apart:
            return sum(max(left, 0) // sizes[0] for left in free.values()) >= len(sizes)
        size, rest = sizes[-1], sizes[:-1]
        for name in list(free):
            if free[name] < size:
                continue
            now = dict(free)
            now[name] -= size
            if self.apart:
                del now[name]
            if self._fit(now, rest):
                return True
        return False

    def cheapest(self) -> frozenset[str] | None:
        """Return victims that do the least harm; None if the group cannot fit."""
        names = [each.name for each in self.may_go()]
        if not self.fits(names) or not any(map(self.fits, self._subsets(names))):
            return None
        ranked = sorted(self._subsets(names), key=self.harm)
        return next((gone for gone in ranked if self.fits(gone)), None)

    def _subsets(self, names: Sequence[str]) -> Iterator[frozenset[str]]:
        every = chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))
        return filter(self.is_allowed, map(frozenset, every))


def large_case(seed: int) -> Case:
    """Return a case with too many pods for all choices among them to be tried; like members."""
    dice = random.Random(seed)
    names = [f"n{at}" for at in range(dice.randint(20, 40))]
    capacity = {name: dice.randint(4, 8) for name in names}
    zones = {name: dice.choice(["a", "b", "c", ""]) for name in names}
    gang_names = [f"{'f' if at % 3 == 0 else 'g'}{at}" for at in range(8)]
    gangs = {
        name: Gang(dice.randint(1, 8), name[0] == "f" and dice.random() < 0.5)
        for name in gang_names
    }
    free = dict(capacity)
    running = []
    for at in range(160):
        name, cpu = dice.choice(names), dice.randint(1, 3)
        if free[name] >= cpu:
            free[name] -= cpu
            priority, start = dice.choice([0, 0, 1, 5, 10, 20]), dice.randint(0, 59)
            gang = dice.choice(["", *gang_names])
            running.append(
                Running(f"r-{at}", name, cpu, priority, start, gang, dice.random() < 0.2)
            )
    size, members = dice.randint(1, 4), dice.randint(4, 24)
    return Case(
        capacity,
        zones,
        tuple(running),
        gangs,
        dice.randint(0, 5),
        (size,) * members,
        members,
        dice.choice([10, 20, 30]),
        in_one_zone=dice.random() < 0.3,
    )


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    dice = random.Random(seed)
    names = [f"n{at}" for at in range(dice.randint(2, 6))]
    capacity = {name: dice.randint(2, 4) for name in names}
    zones = {name: dice.choice(["a", "b", "b", "c", ""]) for name in names}
    gangs = {
        name: Gang(dice.randint(1, 4), name == "f" and dice.random() < 0.5, dice.choice([0, 0, 1]))
        for name in ("a", "b", "f")
    }
    free = dict(capacity)
    running = []
    for at in range(dice.randint(6, 20)):
        name, cpu = dice.choice(names), dice.randint(1, 3)
        if free[name] < cpu or len(running) == MAX_RUNNING:
            continue
        free[name] -= cpu
        running.append(
            Running(
                f"r-{at}",
                name,
                cpu,
                dice.choice([0, 0, 0, 1, 5, 10]) if dice.random() < 0.9 else 20,
                dice.randint(0, 59),
                dice.choice(["", "", "a", "a", "b", "f"]),
                dice.random() < 0.25,
            )
        )
    members = dice.randint(1, 5)
    alike = dice.random() < 0.6
    size = dice.randint(1, 3)
    sizes = tuple(size if alike else dice.randint(1, 3) for _ in range(members))
    return Case(
        capacity,
        zones,
        tuple(running),
        gangs,
        dice.randint(0, 2),
        sizes,
        dice.choice([members, members, max(1, members - 1)]),
        dice.choice([10, 10, 10, 5, 1]),
        in_one_zone=dice.random() < 0.3,
        apart=dice.random() < 0.2,
        tainted=frozenset(name for name in names if dice.random() < 0.08),
    )
