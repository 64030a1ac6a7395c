"""Measure the durations of cycles and of their stages, extension points and plugins.

The scheduling thread hands over what a cycle measured as one value; the folding thread splits
it.

# Differs: a plugin judges all nodes at once, so one observation stands for all of them, where
# kube-scheduler makes one for each node. Plugins whose verdicts on pods of the same signature are
# reused are not run and not counted. The attempt to reuse them is what kube-scheduler calls a batch
# attempt; nothing is stored after a cycle or flushed as a whole, so two of its metrics have no
# meaning here.

*Source*: pkg/scheduler/metrics/metrics.go and pkg/scheduler/framework/runtime/framework.go (1.36).
"""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from plugins.framework.status import Code
from scheduler.metrics.instruments import MAX_WAITING, exponential

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set

    from cache.objects import Pod
    from plugins.framework.cycle_state import Mark
    from plugins.framework.status import Status
    from scheduler.metrics.instruments import Registry

SAMPLED: Final = 0.1
"""The share of cycles whose plugins' durations are counted. Source: pkg/scheduler/scheduler.go,
pluginMetricsSamplePercent (1.36)."""

REUSE: Final = "Reuse"
"""Among the marks of a cycle: the attempt to reuse verdicts, with what became of it in place of a
plugin: ``hint_used``, ``hint_not_used`` (there were verdicts and they did not do), ``no_hint``."""

EXTENDER_FILTER: Final = "ExtenderFilter"
EXTENDER_PRIORITIZE: Final = "ExtenderPrioritize"
"""Among the marks of a cycle: what extenders were waited for. It is told of slow cycles; extension
points these are not, and kube-scheduler does not count them among those."""

_NO_POINTS: Final = frozenset({EXTENDER_FILTER, EXTENDER_PRIORITIZE})

_COUNTED: Final = frozenset({"PreFilter", "Filter", "PreScore", "Score"})


CycleTuple: TypeAlias = "tuple[str, list[Mark], float, float, float, float]"
"""A :class:`MeasuredCycle` as it is handed over: a plain tuple is made in no time."""


class MeasuredCycle(NamedTuple):
    """One scheduling cycle; times as ``time.perf_counter`` tells them."""

    profile: str
    marks: list[Mark]
    began: float
    deciding: float
    committing: float
    ended: float


Duration: TypeAlias = "tuple[str, str, Code, float]"
"""An extension point, a plugin or the empty string for the point as a whole, what it answered,
and how many seconds it took."""


class CycleMetrics:
    """What is told of cycles.

    Notes
    -----
    *Concurrency*: thread-safe.
    """

    def __init__(self, registry: Registry) -> None:
        self._points = registry.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Duration of all plugins of an extension point together.",
            exponential(0.0001, 2, 12),
            "extension_point",
            "profile",
            "status",
        )
        self._plugins = registry.histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration of one plugin at an extension point, over all nodes that it was asked "
            "about; of a tenth of the cycles.",
            exponential(0.00001, 1.5, 20),
            "extension_point",
            "plugin",
            "status",
        )
        self._evaluations = registry.counter(
            "scheduler_plugin_evaluation_total",
            "Cycles in which a plugin was run at an extension point and had something to do.",
            "extension_point",
            "plugin",
            "profile",
        )
        self._reuse = _ReuseMetrics(registry)
        self._stages = registry.histogram(
            "berth_cycle_stage_duration_seconds",
            "Duration of a stage of the scheduling cycle: snapshot, decide, commit.",
            exponential(0.00001, 2, 16),
            "stage",
        )
        self._slow = registry.counter(
            "berth_slow_cycles_total", "Scheduling cycles that took longer than the threshold."
        )
        self._cycles: deque[CycleTuple] = deque(maxlen=MAX_WAITING)
        self.cycle: Callable[[CycleTuple], None] = self._cycles.append
        self._bindings: deque[tuple[str, list[Mark], float]] = deque(maxlen=MAX_WAITING)
        self._folding = threading.Lock()
        self._rng = random.Random()
        self._observe_point: dict[tuple[str, str, Code], Callable[[float], None]] = {}

    def binding(self, profile: str, marks: list[Mark], began: float) -> None:
        """Take in what a binding cycle measured; its marks are not changed any more."""
        self._bindings.append((profile, marks, began))

    def slow(self) -> None:
        """Count a slow cycle."""
        self._slow.count()

    def timed(
        self, pre_enqueue: Callable[[Pod], Status], clock: Callable[[], float] = perf_counter
    ) -> Callable[[Pod], Status]:
        """Return `pre_enqueue`, its time counted as that of an extension point."""

        def measured(pod: Pod) -> Status:
            began = clock()
            status = pre_enqueue(pod)
            profile, code = pod.spec.scheduler_name, status.code.title
            self._points.of("PreEnqueue", profile, code).observe(clock() - began)
            return status

        return measured

    def forget_profiles(self, names: Set[str]) -> None:
        """Let go of the series of these profiles, which the registry has dropped."""
        with self._folding:
            for key in [key for key in self._observe_point if key[1] in names]:
                del self._observe_point[key]

    def fold(self) -> None:
        """Take apart what cycles have handed over."""
        with self._folding:
            evaluations: Counter[tuple[str, str, str]] = Counter()
            snapshot, decide, commit = (
                self._stages.of(stage).observe for stage in ("snapshot", "decide", "commit")
            )
            for _ in range(len(self._cycles)):
                profile, marks, began, deciding, committing, ended = self._cycles.popleft()
                snapshot(deciding - began)
                decide(committing - deciding)
                commit(ended - committing)
                self._take_apart(profile, marks, deciding, evaluations)
            for _ in range(len(self._bindings)):
                self._take_apart(*self._bindings.popleft(), evaluations)
            for (point, plugin, profile), count in evaluations.items():
                self._evaluations.of(point, plugin, profile).inc(count)

    def _take_apart(
        self,
        profile: str,
        marks: Sequence[Mark],
        began: float,
        evaluations: Counter[tuple[str, str, str]],
    ) -> None:
        is_sampled = self._rng.random() < SAMPLED
        known = self._observe_point
        for point, plugin, code, seconds in durations_of(marks, began):
            if not plugin:
                key = (point, profile, code)
                observe = known.get(key)
                if observe is None:
                    observe = known[key] = (
                        _pass
                        if point in _NO_POINTS
                        else self._points.of(point, profile, code.title).observe
                    )
                observe(seconds)
            elif point == REUSE:
                self._reuse.count(profile, plugin, seconds)
            else:
                if point in _COUNTED and code is not Code.SKIP:
                    evaluations[point, plugin, profile] += 1
                if is_sampled:
                    self._plugins.of(point, plugin, code.title).observe(seconds)


class _ReuseMetrics:
    """Attempts to reuse verdicts on pods of the same signature."""

    def __init__(self, registry: Registry) -> None:
        self._attempts = registry.counter(
            "scheduler_batch_attempts_total",
            "Cycles by what became of the attempt to reuse verdicts on pods of the same signature.",
            "profile",
            "result",
        )
        self._durations = registry.histogram(
            "scheduler_get_node_hint_duration_seconds",
            "Duration of the attempt to place a pod with verdicts on pods of the same signature.",
            exponential(0.00001, 2, 12),
            "hinted",
            "profile",
        )

    def count(self, profile: str, result: str, seconds: float) -> None:
        """Count an attempt by what became of it."""
        self._attempts.count(profile, result)
        hinted = "no_hint" if result == "no_hint" else "hint"
        self._durations.of(hinted, profile).observe(seconds)


def _pass(seconds: float) -> None:
    pass


def durations_of(marks: Sequence[Mark], began: float) -> list[Duration]:
    """Return how long each plugin and each extension point took, from when each ended.

    A plugin begins where the one before ended, a point where the point before did; the attempt to
    reuse verdicts begins at `began`, and points that it tried in vain are not among the marks.
    """
    durations: list[Duration] = []
    last = point_began = began
    for point, plugin, code, ended in marks:
        if point == REUSE:
            durations.append((point, plugin, code, ended - began))
            point_began = ended
        elif plugin:
            durations.append((point, plugin, code, ended - last))
        else:
            if point:
                durations.append((point, plugin, code, ended - point_began))
            point_began = ended
        last = ended
    return durations
