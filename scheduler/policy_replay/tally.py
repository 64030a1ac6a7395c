"""What became of the pods of a journal, then and now, counted by profile."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, exp, log
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from scheduler.policy_replay.fates import Fate, Placing

MAX_EXAMPLES: Final = 20


class Quantiles(msgspec.Struct, frozen=True, rename="camel"):
    """A distribution by its size, median, 99th percentile and maximum."""

    count: int = 0
    p50: float = 0.0
    p99: float = 0.0
    max: float = 0.0


class Durations:
    """Counts of durations, in buckets of which each is 2 % wider than the one before.

    *Cost*: at most 1 100 counts, however many durations are added.
    """

    def __init__(self) -> None:
        self.count = 0
        self._max_s = 0.0
        self._buckets: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Add a duration."""
        self.count += 1
        self._max_s = max(self._max_s, seconds)
        bucket = 0
        if seconds > _SHORTEST_S:
            bucket = min(ceil(log(seconds / _SHORTEST_S) / _LOG_OF_WIDTH), _LAST_BUCKET)
        self._buckets[bucket] += 1

    def quantiles(self, scale: float = 1.0) -> Quantiles:
        """Return the quantiles, at most 2 % too large; the maximum is exact.

        Parameters
        ----------
        scale
            The unit of the result in seconds, inverted: 1000 for milliseconds.
        """
        if not self.count:
            return Quantiles()
        p50, p99 = self._at(0.5), self._at(0.99)
        return Quantiles(self.count, p50 * scale, p99 * scale, self._max_s * scale)

    def _at(self, share: float) -> float:
        left = ceil(self.count * share)
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                least_s = 0.0 if not bucket else _SHORTEST_S * exp(bucket * _LOG_OF_WIDTH)
                return min(least_s, self._max_s)
        return self._max_s


_SHORTEST_S: Final = 1e-6
"""Shorter durations count as none."""

_LOG_OF_WIDTH: Final = log(1.02)

_LAST_BUCKET: Final = 1_600
"""Two years."""


class SideReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What became of pods by one of the policies.

    Attributes
    ----------
    placed
        Pods that got a node.
    refused
        Pods that got none until they were gone, or until the end of the journal.
    zones
        The pods placed, by the zone of their node.
    victims
        The number of pods evicted for pods of this profile.
    victim_priorities
        These victims by their priority.
    waiting_s
        The time from the first decision about a pod to the one that placed it.
    cycle_ms
        The time of a decision, on the machine of the replay.
    """

    placed: int
    refused: int
    zones: dict[str, int]
    victims: int
    victim_priorities: dict[int, int]
    waiting_s: Quantiles
    cycle_ms: Quantiles


class Example(msgspec.Struct, frozen=True):
    """A pod with its nodes; the empty name is none."""

    pod: str
    then: str
    now: str


class ProfileReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The pods of one profile.

    Attributes
    ----------
    same_node, moved
        The pods that both policies placed: on the same node, or on another one.
    only_then, only_now
        The pods that only one of the policies placed.
    refused
        The pods that neither placed.
    permit_waits
        How often a Permit plugin of the other policy would have held a pod. For how long is not
        known: the pod counts as placed at once.
    moves
        Some pods with another outcome.
    """

    profile: str
    pods: int
    same_node: int
    moved: int
    only_then: int
    only_now: int
    refused: int
    then: SideReport
    now: SideReport
    permit_waits: int
    moves: tuple[Example, ...]


@dataclass(slots=True)
class Side:
    """The running count of one policy.

    Attributes
    ----------
    waiting, cycles
        How long pods waited, and decisions took.
    """

    zones: Counter[str] = field(default_factory=Counter)
    victims: Counter[int] = field(default_factory=Counter)
    waiting: Durations = field(default_factory=Durations)
    cycles: Durations = field(default_factory=Durations)

    def place(self, placing: Placing, first_s: float) -> None:
        """Count a pod that got a node."""
        self.zones[placing.zone] += 1
        self.waiting.add(max(placing.at_s - first_s, 0.0))

    def report(self, pods: int) -> SideReport:
        """Return what was counted."""
        placed = self.waiting.count
        return SideReport(
            placed=placed,
            refused=pods - placed,
            zones=dict(sorted(self.zones.items())),
            victims=self.victims.total(),
            victim_priorities=dict(sorted(self.victims.items())),
            waiting_s=self.waiting.quantiles(),
            cycle_ms=self.cycles.quantiles(1000.0),
        )


class ProfileTally:
    """The running count of one profile.

    Attributes
    ----------
    permit_waits
        How often a Permit plugin of the other policy would have held a pod.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.then = Side()
        self.now = Side()
        self.permit_waits = 0
        self._counts: Counter[str] = Counter()
        self._moves: list[Example] = []

    def end(self, fate: Fate) -> None:
        """Count a pod that is gone, or that is left at the end of the journal."""
        then, now = fate.then, fate.now
        if then.is_placed:
            self.then.place(then, fate.first_s)
        if now.is_placed:
            self.now.place(now, fate.first_s)
        self._counts[_outcome(then, now)] += 1
        if then.node_name != now.node_name and len(self._moves) < MAX_EXAMPLES:
            self._moves.append(Example(fate.key, then.node_name, now.node_name))

    def report(self) -> ProfileReport:
        """Return what was counted."""
        pods = self._counts.total()
        return ProfileReport(
            profile=self.name,
            pods=pods,
            same_node=self._counts["same"],
            moved=self._counts["moved"],
            only_then=self._counts["then"],
            only_now=self._counts["now"],
            refused=self._counts["refused"],
            then=self.then.report(pods),
            now=self.now.report(pods),
            permit_waits=self.permit_waits,
            moves=tuple(self._moves),
        )


def _outcome(then: Placing, now: Placing) -> str:
    if then.is_placed and now.is_placed:
        return "same" if then.node_name == now.node_name else "moved"
    if then.is_placed:
        return "then"
    return "now" if now.is_placed else "refused"


class Tallies:
    """The counts of all profiles."""

    def __init__(self) -> None:
        self._profiles: dict[str, ProfileTally] = {}

    def __len__(self) -> int:
        return len(self._profiles)

    def of(self, profile: str) -> ProfileTally:
        """Return the count of a profile."""
        found = self._profiles.get(profile)
        if found is None:
            found = self._profiles[profile] = ProfileTally(profile)
        return found

    def end(self, fate: Fate) -> Any:
        """Count a pod that is gone."""
        self.of(fate.profile).end(fate)

    def reports(self) -> tuple[ProfileReport, ...]:
        """Return the counts by profile."""
        return tuple(self._profiles[name].report() for name in sorted(self._profiles))
