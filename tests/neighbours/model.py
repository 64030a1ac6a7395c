"""A model of the campaign: two schedulers that choose nodes without seeing each other's last binds.

It knows nothing of API servers and their speed, only of times: a scheduler decides about pods at
some rate, a decision becomes a bind after a while, and the other scheduler sees that bind after
another while. So it says on any machine how many pods are rejected by the way in which a scheduler
chooses its nodes, which a measurement on a busy machine does not.

    python -m tests.neighbours.model --seeds 1-5
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from scheduler.cycle.soft_reserve import MAX_LOSS, PLACES
from tests.neighbours.admission import CPU, PODS, amounts, pod_requests
from tests.neighbours.cluster import PARTIES, Cluster, Size, seeds
from tests.neighbours.page import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    Amounts: TypeAlias = npt.NDArray[np.int64]
    """int64, shape (n_nodes, 3) or (3,): CPU in thousandths, memory in bytes, pods."""

    Bools: TypeAlias = npt.NDArray[np.bool_]

_RESOURCES: Final = (CPU, "memory", PODS)
_NEVER: Final = -1
_AGAIN_S: Final = 0.02
"""A pod without a feasible node is tried again after so long."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How fast everything is.

    Attributes
    ----------
    rate
        Decisions a second of each scheduler.
    bind_s
        From a decision until the API server has accepted the bind, on average.
    flight_s
        The part of it after the guard's look.
    lag_s
        From that moment until the other scheduler sees the bind, on average.
    """

    rate: float = 250.0
    bind_s: float = 0.03
    flight_s: float = 0.02
    lag_s: float = 0.02


class Choice(NamedTuple):
    """What a scheduler knows when it chooses a node.

    Attributes
    ----------
    scores
        int64 (n_nodes,), -1 for a node that is not feasible.
    free
        int64 (n_nodes, 3): what is left with the pod.
    """

    scores: npt.NDArray[np.int64]
    free: Amounts


class Strategy(NamedTuple):
    """How a scheduler chooses among nodes, and whether it looks again before it binds."""

    candidates: Callable[[Choice], Bools]
    guard: bool = False


def emptiest(choice: Choice) -> Bools:
    """Return the nodes with the highest score, as kube-scheduler chooses."""
    return np.asarray(choice.scores == choice.scores.max())


def fullest(choice: Choice) -> Bools:
    """Return the feasible nodes with the lowest score."""
    feasible = choice.scores != _NEVER
    return np.asarray(choice.scores == choice.scores[feasible].min())


def with_space(pods: int, rest: Callable[[Choice], Bools], place: Amounts) -> Callable[..., Bools]:
    """Return how to choose the emptiest among nodes that keep space for pods of the other.

    Parameters
    ----------
    rest
        How to choose where no node has so much space.
    place
        The largest pod.
    """

    def candidates(choice: Choice) -> Bools:
        enough = (choice.free >= pods * place).all(axis=1) & (choice.scores != _NEVER)
        if not enough.any():
            return rest(choice)
        return emptiest(Choice(np.where(enough, choice.scores, _NEVER), choice.free))

    return candidates


def with_reserve(place: Amounts) -> Callable[[Choice], Bools]:
    """Return how to choose as berth does, with a soft reserve for pods of the other.

    Parameters
    ----------
    place
        The largest pod.
    """

    def candidates(choice: Choice) -> Bools:
        scores = choice.scores
        near = scores >= max(int(scores.max()) - MAX_LOSS, 0)
        for pods in PLACES:
            enough = near & (choice.free >= pods * place).all(axis=1)
            if enough.any():
                return enough & np.asarray(scores == scores[enough].max())
        return near & np.asarray(scores == scores[near].min())

    return candidates


@dataclass(slots=True)
class Side:
    """One scheduler: what it believes to be in use, and what became of its pods."""

    strategy: Strategy
    used: Amounts
    waiting: list[Amounts]
    left: int
    rejected: int = 0
    withheld: int = 0


@dataclass
class Model:
    """Two schedulers and one cluster; :meth:`run` it once."""

    cluster: Cluster
    strategies: Sequence[Strategy]
    timing: Timing
    seed: int
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _now_s: float = 0.0

    def run(self) -> list[Side]:
        """Let both schedulers place all of their pods."""
        self._rng = random.Random(self.seed)
        self._count = itertools.count()
        self._set_up()
        for side in self._sides:
            self._after(self._rng.random() / self.timing.rate, partial(self._decide, side))
        while self._events:
            self._now_s, _, happen = heapq.heappop(self._events)
            happen()
        return self._sides

    def _set_up(self) -> None:
        names = list(self.cluster.nodes)
        rows = {name: row for row, name in enumerate(names)}
        nodes = self.cluster.nodes.values()
        self._capacity = np.array([_row(amounts(n["status"]["allocatable"])) for n in nodes])
        self._used = np.zeros_like(self._capacity)
        for pod in self.cluster.running:
            self._used[rows[pod["spec"]["nodeName"]]] += _asked(pod)
        self._sides = []
        for party, strategy in zip(PARTIES, self.strategies, strict=True):
            pods = [_asked(x) for x in self.cluster.pods if x["spec"]["schedulerName"] == party]
            self._sides.append(Side(strategy, self._used.copy(), pods[::-1], len(pods)))

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now_s + seconds, next(self._count), happen))

    def _decide(self, side: Side) -> None:
        if not side.left:
            return
        if side.waiting:
            self._place(side, side.waiting.pop())
        self._after(self._rng.expovariate(self.timing.rate), partial(self._decide, side))

    def _place(self, side: Side, asked: Amounts) -> None:
        free = self._capacity - side.used - asked
        scores = np.where((free >= 0).all(axis=1), _scores(free, self._capacity), _NEVER)
        if scores.max() == _NEVER:
            self._after(_AGAIN_S, partial(side.waiting.append, asked))
            return
        rows = np.flatnonzero(side.strategy.candidates(Choice(scores, free)))
        row = int(self._rng.choice(rows))
        side.used[row] += asked
        bind_s = self._rng.expovariate(1 / self.timing.bind_s) if self.timing.bind_s else 0.0
        flight_s = min(bind_s, self.timing.flight_s)
        self._after(bind_s - flight_s, partial(self._look, side, row, asked, flight_s))

    def _look(self, side: Side, row: int, asked: Amounts, flight_s: float) -> None:
        if side.strategy.guard and (side.used[row] > self._capacity[row]).any():
            side.withheld += 1
            side.used[row] -= asked
            side.waiting.append(asked)
            return
        self._after(flight_s, partial(self._bind, side, row, asked))

    def _bind(self, side: Side, row: int, asked: Amounts) -> None:
        for other in self._sides:
            if other is not side:
                self._after(self._lag_s(), partial(_use, other, row, asked))
        if (self._used[row] + asked > self._capacity[row]).any():
            side.rejected += 1
            for each in self._sides:
                # Never before the bind itself is seen: one watch keeps the order.
                self._after(2 * self.timing.lag_s, partial(_use, each, row, -asked))
            self._after(2 * self.timing.lag_s, partial(side.waiting.append, asked))
        else:
            self._used[row] += asked
            side.left -= 1

    def _lag_s(self) -> float:
        return self._rng.uniform(0.0, 2 * self.timing.lag_s)


def _use(side: Side, row: int, asked: Amounts) -> None:
    side.used[row] += asked


def _scores(free: Amounts, capacity: Amounts) -> npt.NDArray[np.int64]:
    """Return LeastAllocated and BalancedAllocation of CPU and memory, added up.

    *Source*: pkg/scheduler/framework/plugins/noderesources, least_allocated.go and
    balanced_allocation.go (1.36).
    """
    least = (free[:, :2] * 100 // capacity[:, :2]).sum(axis=1) // 2
    shares = 1 - free[:, :2] / capacity[:, :2]
    balanced = ((1 - np.abs(shares[:, 0] - shares[:, 1]) / 2) * 100).astype(np.int64)
    return np.asarray(least + balanced)


def _asked(pod: Mapping[str, dict[str, object]]) -> Amounts:
    return _row({**pod_requests(pod["spec"]), PODS: 1})


def _row(named: Mapping[str, int]) -> Amounts:
    return np.array([named.get(name, 0) for name in _RESOURCES], dtype=np.int64)


def strategies(place: Amounts) -> dict[str, Strategy]:
    """Return the ways to choose that are compared, for the second scheduler."""
    return {
        "as kube-scheduler": Strategy(emptiest),
        "with a guard": Strategy(emptiest, guard=True),
        "guard, space for one more": Strategy(with_space(1, emptiest, place), guard=True),
        "guard, space for two, else fullest": Strategy(with_space(2, fullest, place), guard=True),
        "guard and reserve": Strategy(with_reserve(place), guard=True),
        "reserve": Strategy(with_reserve(place)),
        "fullest": Strategy(fullest),
        "guard, fullest": Strategy(fullest, guard=True),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rejected pods of both schedulers by how the second one chooses."""
    parser = argparse.ArgumentParser(prog="python -m tests.neighbours.model", description=__doc__)
    timing = Timing()
    parser.add_argument("--seeds", default="1-5")
    parser.add_argument("--nodes", type=int, default=400)
    parser.add_argument("--pods", type=int, default=1000, help="of each scheduler")
    parser.add_argument("--rate", type=float, default=timing.rate, help="decisions/s of each")
    parser.add_argument("--bind", type=float, default=timing.bind_s, help="seconds")
    parser.add_argument("--flight", type=float, default=timing.flight_s, help="seconds")
    parser.add_argument("--lag", type=float, default=timing.lag_s, help="seconds")
    options = parser.parse_args(arguments)
    timing = Timing(options.rate, options.bind, options.flight, options.lag)
    clusters = {n: Cluster(Size(options.nodes, options.pods), n) for n in seeds(options.seeds)}
    place = np.max([_asked(pod) for each in clusters.values() for pod in each.pods], axis=0)
    rows = [["the second chooses", "pods", "rejected", "of the first", "withheld"]]
    for name, strategy in strategies(place).items():
        pairs = [Strategy(emptiest), strategy]
        ends = [Model(each, pairs, timing, seed).run() for seed, each in clusters.items()]
        counts = (
            options.pods * len(ends),
            sum(second.rejected for _, second in ends),
            sum(first.rejected for first, _ in ends),
            sum(second.withheld for _, second in ends),
        )
        rows.append([name, *map(str, counts)])
        print(f"{name}: {counts}", file=sys.stderr)
    print(as_text("", rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
