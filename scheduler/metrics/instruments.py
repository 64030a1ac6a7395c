"""Provide counters and histograms that cost the measured code almost nothing.

A cycle takes some 50 us, so that ten microseconds of counting would be a fifth of it. A
measured value is therefore only appended; it is counted at each scrape, and once a second by a
background thread.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]

MAX_WAITING: Final = 65_536
"""Observations that may wait to be counted; beyond that the oldest are lost. At a thousand pods a
second some ten thousand wait, for a second."""

_MANY: Final = 64

C = TypeVar("C")


def exponential(start: float, factor: float, count: int) -> list[float]:
    """Return bucket bounds, each `factor` times the one before, as Prometheus's Go client does."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return bounds


class Count:
    """One series of a counter."""

    __slots__ = ("_lock", "value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Add to it."""
        with self._lock:
            self.value += amount


class Samples:
    """One series of a histogram.

    Attributes
    ----------
    observe
        Puts a value down; from any thread, in some 30 ns.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    __slots__ = ("_bounds", "_lock", "_waiting", "counts", "observe", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._waiting: deque[float] = deque(maxlen=MAX_WAITING)
        self._lock = threading.Lock()
        self.counts = [0] * (len(bounds) + 1)
        """By bucket, not cumulative; the last is for what is beyond all bounds."""
        self.total = 0.0
        self.observe: Callable[[float], None] = self._waiting.append

    def fold(self) -> None:
        """Count what has been put down."""
        waiting = self._waiting
        if not waiting:
            return
        with self._lock:
            values = [waiting.popleft() for _ in range(len(waiting))]
            self.total += sum(values)
            if len(values) < _MANY:
                for value in values:
                    self.counts[bisect_left(self._bounds, value)] += 1
                return
            found = np.bincount(
                np.searchsorted(self._bounds, values), minlength=len(self.counts)
            ).tolist()
            self.counts = [old + new for old, new in zip(self.counts, found, strict=True)]


class Family(Generic[C]):
    """All series of one metric, by the values of its labels.

    Parameters
    ----------
    name
        A counter's ends in ``_total``.
    bounds
        Of a histogram's buckets, ascending.
    """

    def __init__(
        self,
        kind: Kind,
        name: str,
        text: str,
        labels: Sequence[str],
        make: Callable[[], C],
        bounds: Sequence[float] = (),
    ) -> None:
        self.kind = kind
        self.name = name
        self.text = text
        self.label_names = tuple(labels)
        self.bounds = tuple(bounds)
        self.children: dict[tuple[str, ...], C] = {}
        self._make = make
        self._lock = threading.Lock()
        if not labels:
            self.of()

    def of(self, *values: str) -> C:
        """Return the series of these label values."""
        child = self.children.get(values)
        if child is None:
            if len(values) != len(self.label_names):
                raise ValueError(f"{self.name} has the labels {self.label_names}, not {values}")
            with self._lock:
                child = self.children.setdefault(values, self._make())
        return child

    def values_of(self, label: str) -> set[str]:
        """Return the values of one label; none when the metric does not have it."""
        if label not in self.label_names:
            return set()
        place = self.label_names.index(label)
        return {values[place] for values in list(self.children)}

    def drop(self, label: str, dropped: Set[str]) -> None:
        """Drop the series in which a label has one of these values."""
        if label not in self.label_names:
            return
        place = self.label_names.index(label)
        with self._lock:
            self.children = {
                values: child
                for values, child in self.children.items()
                if values[place] not in dropped
            }


class Counter(Family[Count]):
    """A counter with all its series."""

    def count(self, *values: str) -> None:
        """Add one to the series of these label values."""
        self.of(*values).inc()


Histogram: TypeAlias = Family[Samples]


class Pulled:
    """A metric whose values are asked for at each scrape.

    Parameters
    ----------
    labels
        What the keys of the answer stand for; without any the one key is the empty tuple.
    read
        Asked from any thread.
    """

    def __init__(
        self,
        kind: Kind,
        name: str,
        text: str,
        labels: Sequence[str],
        read: Callable[[], Mapping[tuple[str, ...], float]],
    ) -> None:
        self.kind = kind
        self.name = name
        self.text = text
        self.label_names = tuple(labels)
        self.read = read


class Registry:
    """All metrics of one process, in the order in which they were made.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    def __init__(self) -> None:
        self._families: dict[str, Family[Count] | Family[Samples] | Pulled] = {}

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Make a counter."""
        made = Counter("counter", name, text, labels, Count)
        self._families[name] = made
        return made

    def histogram(self, name: str, text: str, bounds: list[float], *labels: str) -> Histogram:
        """Make a histogram."""
        made: Histogram = Family("histogram", name, text, labels, lambda: Samples(bounds), bounds)
        self._families[name] = made
        return made

    def pull(self, pulled: Pulled) -> None:
        """Take up a metric that is asked for; one of the same name takes another's place."""
        self._families[pulled.name] = pulled

    def families(self) -> Iterable[Family[Count] | Family[Samples] | Pulled]:
        """Return all metrics."""
        return list(self._families.values())

    def fold(self) -> None:
        """Count what has been put down since the last time."""
        for family in self.families():
            if isinstance(family, Family):
                for child in list(family.children.values()):
                    if isinstance(child, Samples):
                        child.fold()

    def values_of(self, label: str) -> set[str]:
        """Return all values that one label has in any metric."""
        found: set[str] = set()
        for family in self.families():
            if isinstance(family, Family):
                found |= family.values_of(label)
        return found

    def drop(self, label: str, dropped: Set[str]) -> None:
        """Drop all series in which a label has one of these values.

        Who keeps such a series counts into what nobody reads.
        """
        for family in self.families():
            if isinstance(family, Family):
                family.drop(label, dropped)
