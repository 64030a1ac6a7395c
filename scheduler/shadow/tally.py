"""Adds up comparisons for a shadow's report."""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import numpy as np

from scheduler.shadow.comparison import compare, feasibility_samples, winner_sample
from scheduler.shadow.report import (
    Cost,
    FeasibilitySample,
    Passed,
    PluginInfluence,
    ShadowReport,
    WinnerSample,
)

if TYPE_CHECKING:
    from cache.locks import MakeLock
    from scheduler.runtime.judgement import Judgement
    from scheduler.shadow.comparison import Influence

Reason: TypeAlias = Literal["budget", "volumes", "failed"]
"""The reason why a decision is not compared: see :class:`scheduler.shadow.report.Passed`."""

MAX_SAMPLES: Final = 10
"""The number of samples of each kind: the report is part of an object's status."""

MAX_ALIKE: Final = 2
"""The number of samples of one reason: other reasons are more useful than a third equal sample."""

MAX_FAILURE_LENGTH: Final = 500

_MAX_ASKED: Final = 200
"""The number of decisions whose rejections are sampled: filters need time to compute reasons."""

_MEASURED: Final = 4096
"""The number of latest decisions from which percentiles are computed."""


class Tally:
    """The sums of comparisons of two policies.

    Parameters
    ----------
    blank
        A report with the policies and the number of decisions to compare; its counts are 0.
    make_lock
        Creates its lock.

    Notes
    -----
    *Concurrency*: one thread adds, any thread reads.

    *Cost*: bounded memory, however many comparisons.
    """

    def __init__(self, blank: ShadowReport, make_lock: MakeLock = threading.Lock) -> None:
        self._blank = blank
        self._lock = make_lock()
        self._counts = Counter(compared=0)
        """The counts by field of the report."""
        self._passed: dict[Reason, int] = {"budget": 0, "volumes": 0, "failed": 0}
        self._time_s = 0.0
        self._failure = ""
        self._winners: list[WinnerSample] = []
        self._feasibilities: list[FeasibilitySample] = []
        self._asked = 0
        self._live = _PolicySums()
        self._shadow = _PolicySums()

    @property
    def compared(self) -> int:
        """The number of decisions that have been compared."""
        return self._counts["compared"]

    def compare(self, pod: str, live: Judgement, shadow: Judgement, chosen: int | None) -> None:
        """Compare two judgements of a pod on one snapshot, and count the differences.

        Parameters
        ----------
        chosen
            The row of the node that the live policy chose; None if it chose no node.
        """
        found = compare(live, shadow, chosen)
        differs = bool(found.nodes_lost or found.nodes_gained)
        winner: WinnerSample | None = None
        feasibilities: tuple[FeasibilitySample, ...] = ()
        if found.winner_changed and chosen is not None and len(self._winners) < MAX_SAMPLES:
            winner = winner_sample(pod, shadow, chosen)
        if differs and self._asked < _MAX_ASKED and len(self._feasibilities) < MAX_SAMPLES:
            self._asked += 1
            feasibilities = feasibility_samples(pod, live, shadow)
        with self._lock:
            self._counts.update(
                compared=1,
                both_placed=int(chosen is not None and shadow.count > 0),
                only_live=int(chosen is not None and not shadow.count),
                only_shadow=int(chosen is None and shadow.count > 0),
                changed_winners=int(found.winner_changed),
                changed_feasibility=int(differs),
                nodes_lost=found.nodes_lost,
                nodes_gained=found.nodes_gained,
            )
            if winner is not None:
                self._winners.append(winner)
            for each in feasibilities:
                self._keep_locked(each)
            self._live.add(live.seconds, found.live_influence)
            self._shadow.add(shadow.seconds, found.shadow_influence)

    def _keep_locked(self, sample: FeasibilitySample) -> None:
        alike = sum(
            each.allowed_by == sample.allowed_by
            and each.plugin == sample.plugin
            and each.reason == sample.reason
            for each in self._feasibilities
        )
        if alike < MAX_ALIKE and len(self._feasibilities) < MAX_SAMPLES:
            self._feasibilities.append(sample)

    def fail(self, why: str) -> None:
        """Count a decision in which the shadow failed."""
        with self._lock:
            self._counts.update(compared=1, failures=1)
            self._failure = self._failure or why[:MAX_FAILURE_LENGTH]

    def pass_over(self, reason: Reason) -> None:
        """Count a decision that is not compared."""
        with self._lock:
            self._passed[reason] += 1

    def spend(self, seconds: float) -> None:
        """Add the duration of a comparison."""
        with self._lock:
            self._time_s += seconds

    def report(self) -> ShadowReport:
        """Return the report of all counts."""
        with self._lock:
            return msgspec.structs.replace(
                self._blank,
                passed=Passed(**self._passed),
                failure=self._failure,
                winner_samples=tuple(self._winners),
                feasibility_samples=tuple(self._feasibilities),
                live_influence=self._live.influence(),
                shadow_influence=self._shadow.influence(),
                live_cost=self._live.cost(),
                shadow_cost=self._shadow.cost(),
                time_s=round(self._time_s, 6),
                **self._counts,
            )


class _PolicySums:
    """The sums of one of the two policies."""

    def __init__(self) -> None:
        self._count = 0
        self._sum_s = 0.0
        self._max_s = 0.0
        self._latest: deque[float] = deque(maxlen=_MEASURED)
        self._plugins: dict[str, list[float]] = {}

    def add(self, seconds: float, influence: dict[str, Influence]) -> None:
        self._count += 1
        self._sum_s += seconds
        self._max_s = max(self._max_s, seconds)
        self._latest.append(seconds)
        for plugin, each in influence.items():
            sums = self._plugins.setdefault(plugin, [0, 0.0, 0.0])
            sums[0] += 1
            sums[1] += each.changes
            sums[2] += each.spread

    def influence(self) -> tuple[PluginInfluence, ...]:
        found = [
            PluginInfluence(
                plugin=plugin,
                decisions=int(count),
                changes=round(changes / count, 4),
                spread=round(spread / count, 1),
            )
            for plugin, (count, changes, spread) in self._plugins.items()
        ]
        return tuple(sorted(found, key=lambda each: (-each.changes, -each.spread, each.plugin)))

    def cost(self) -> Cost:
        if not self._count:
            return Cost()
        p50, p99 = np.percentile(self._latest, (50, 99))
        return Cost(
            mean_s=round(self._sum_s / self._count, 6),
            p50_s=round(float(p50), 6),
            p99_s=round(float(p99), 6),
            max_s=round(self._max_s, 6),
        )
