"""The file of figures: one record for each contender and seed, and what they add up to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench.results import Session
from tests.bench.statistics_of import quantile
from tests.neighbours.collisions import Collision

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


MOST: Final = 0.95
"""The share of the pods by which rates are measured."""


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the pods of one scheduler.

    Attributes
    ----------
    running
        Pods, or their successors, that a kubelet admitted in the end.
    rejected
        By the reason.
    binds
        That the API server accepted.
    most_s, all_s
        From the first creation until 95 % and all of the pods that run had been bound.
    cpu_s
        Of the scheduler.
    """

    pods: int
    running: int
    rejected: dict[str, int]
    given_up: int
    binds: int
    most_s: float
    all_s: float
    cpu_s: float

    @property
    def rejections(self) -> int:
        """All rejected pods."""
        return sum(self.rejected.values())

    @property
    def pods_per_s(self) -> float:
        """Pods a second until 95 % had been bound: the last ones may wait for a backoff."""
        return MOST * self.running / self.most_s if self.most_s else 0.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One contender, one seed.

    Attributes
    ----------
    load
        The load average of the machine over a minute, at the beginning and the end.
    created_s
        How long it took to create all pods.
    lag_ms
        From the answer to a bind until a watch showed the pod: median, 90 %, 99 %, longest.
    metrics
        Of the second scheduler: those about its neighbour.
    """

    contender: str
    seed: int
    nodes: int
    pods: int
    session: int
    load: tuple[float, float]
    created_s: float
    parties: dict[str, Party]
    collisions: list[Collision]
    lag_ms: tuple[float, ...]
    restarts: int = 0
    metrics: dict[str, float] = {}

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What makes two rounds the same round."""
        return self.contender, self.seed, self.nodes, self.pods


class Results(msgspec.Struct):
    """Everything in one file."""

    sessions: list[Session] = []
    rounds: list[Round] = []

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read the file; nothing where there is none."""
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else cls()

    def put(self, made: Round) -> None:
        """Add a round, in place of an earlier one with the same key."""
        self.rounds = [each for each in self.rounds if each.key != made.key]
        self.rounds.append(made)

    def save(self, path: Path) -> None:
        """Write the file; a reader sees the old one or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(path.name + ".new")
        sessions, rounds = (
            b",\n".join(map(msgspec.json.encode, series)) for series in (self.sessions, self.rounds)
        )
        scratch.write_bytes(
            b'{\n"sessions": [\n%b\n],\n"rounds": [\n%b\n]\n}\n' % (sessions, rounds)
        )
        scratch.replace(path)

    def of(self, contender: str) -> list[Round]:
        """Return the rounds of a contender by seed."""
        return sorted((x for x in self.rounds if x.contender == contender), key=lambda x: x.seed)


class Summary(msgspec.Struct, frozen=True):
    """What one scheduler came to in all rounds of a contender.

    Attributes
    ----------
    gaps_ms
        Of the rejected pods that came after one of the other scheduler; sorted.
    shown
        Rejected pods that a look at the newest state of the node could have avoided.
    """

    rounds: int
    pods: int
    running: int
    rejected: dict[str, int]
    by_round: list[int]
    binds: int
    pods_per_s: float
    all_s: float
    cpu_s_per_1000: float
    gaps_ms: list[float]
    shown: int

    @property
    def rejections(self) -> int:
        """All rejected pods of all rounds."""
        return sum(self.rejected.values())


def summary(rounds: Sequence[Round], party: str) -> Summary:
    """Return the sums over the rounds, and the medians of times and rates."""
    parties = [each.parties[party] for each in rounds]
    rejected: Counter[str] = Counter()
    for each in parties:
        rejected.update(each.rejected)
    running = sum(each.running for each in parties)
    lost = [x for each in rounds for x in each.collisions if x.party == party]
    return Summary(
        rounds=len(rounds),
        pods=sum(each.pods for each in parties),
        running=running,
        rejected=dict(sorted(rejected.items())),
        by_round=[each.rejections for each in parties],
        binds=sum(each.binds for each in parties),
        pods_per_s=_median(each.pods_per_s for each in parties),
        all_s=_median(each.all_s for each in parties),
        cpu_s_per_1000=1000 * sum(each.cpu_s for each in parties) / max(running, 1),
        gaps_ms=sorted(x.gap_ms for x in lost if x.gap_ms is not None),
        shown=sum(x.was_shown for x in lost),
    )


def party_of(
    *, pods: int, arrivals: Sequence[tuple[float, str]], given_up: int, binds: int, cpu_s: float
) -> Party:
    """Return what became of a scheduler's pods.

    Parameters
    ----------
    arrivals
        Seconds since the first creation, and the reason of the rejection or nothing.
    """
    times = sorted(at_s for at_s, reason in arrivals if not reason)
    return Party(
        pods=pods,
        running=len(times),
        rejected=dict(sorted(Counter(reason for _, reason in arrivals if reason).items())),
        given_up=given_up,
        binds=binds,
        most_s=round(quantile(times, MOST), 3) if times else 0.0,
        all_s=round(times[-1], 3) if times else 0.0,
        cpu_s=round(cpu_s, 2),
    )


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return quantile(ordered, 0.5) if ordered else 0.0
