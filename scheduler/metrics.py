"""Metrics under kube-scheduler's names, and a few of berth's own.

Counters and histograms are fed where things happen; what is a state (how many pods wait, how old
the watch is) is asked for when somebody scrapes.

Source: pkg/scheduler/metrics/metrics.go (1.36): names, labels and buckets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from scheduler.metrics_exposition import Kind, PulledMetrics, exposition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.scheduler_cache import SnapshotUpdate
    from scheduler.decision import Decision
    from scheduler.event_recorder import EventStatistics
    from scheduler.pod_status_writer import PodStatusStatistics
    from scheduler.queueing import QueuedPod

    Numbers: TypeAlias = Callable[[], Mapping[str, float]]

S = TypeVar("S")

_MANY_ATTEMPTS: Final = 15
"""From here on the label ``attempts`` says ``15+``: its values must be few."""


def exponential(start: float, factor: float, count: int) -> list[float]:
    """Return bucket bounds, each `factor` times the one before, as Prometheus's Go client does."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return bounds


_Heading: TypeAlias = tuple[Kind, str, str, str]
"""Kind, name, help text and label."""

_PENDING_PODS: Final[_Heading] = (
    "gauge",
    "scheduler_pending_pods",
    "Pods that wait, by queue.",
    "queue",
)
_CACHE_SIZE: Final[_Heading] = (
    "gauge",
    "scheduler_cache_size",
    "Nodes, pods and assumed pods in the cache.",
    "type",
)
_WATCH_STALENESS: Final[_Heading] = (
    "gauge",
    "berth_watch_staleness_seconds",
    "Time since a watch last delivered anything, bookmarks included.",
    "resource",
)
_WATCH_RELISTS: Final[_Heading] = (
    "counter",
    "berth_watch_relists_total",
    "Lists that were needed because a watch could not be resumed.",
    "resource",
)
_EVENTS: Final[Sequence[tuple[str, str, Callable[[EventStatistics], float]]]] = (
    ("berth_events_sent_total", "Events written, counts of series included.", lambda s: s.sent),
    ("berth_events_dropped_total", "Events dropped: too many waited.", lambda s: s.dropped),
    ("berth_events_failed_total", "Events that could not be written.", lambda s: s.failed),
)
_POD_STATUSES: Final[Sequence[tuple[str, str, Callable[[PodStatusStatistics], float]]]] = (
    ("berth_status_patches_sent_total", "Statuses written into pods.", lambda s: s.written),
    (
        "berth_status_patches_dropped_total",
        "Statuses of pods dropped: too many waited.",
        lambda s: s.dropped,
    ),
    (
        "berth_status_patches_failed_total",
        "Statuses of pods that could not be written.",
        lambda s: s.failed,
    ),
)


class _Attempts(NamedTuple):
    total: Counter
    duration: Histogram


class Metrics:
    """All metrics of a scheduler.

    Notes
    -----
    *Concurrency*: thread-safe.

    *Cost*: about 8 us for a pod from the queue to its node.
    """

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._pulled = PulledMetrics()
        registry.register(self._pulled)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: list[float], *labels: str) -> Histogram:
            return Histogram(name, text, labels, buckets=buckets, registry=registry)

        self._attempts_total = counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule pods, by result: scheduled, unschedulable (no node would do) or "
            "error (a failure of the scheduler's own).",
            "profile",
            "result",
        )
        self._attempt_duration = histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Duration of an attempt to schedule a pod: the decision and the binding.",
            exponential(0.001, 2, 15),
            "profile",
            "result",
        )
        self._algorithm_duration = histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Duration of the decision alone.",
            exponential(0.001, 2, 15),
        )
        self._pod_attempts = histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that it took to schedule a pod.",
            exponential(1, 2, 5),
        )
        self._sli_duration = histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's first attempt to its binding, over all its attempts.",
            exponential(0.01, 2, 20),
            "attempts",
        )
        self._after_flush = counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods scheduled after a flush of the unschedulable ones: no event had woken them.",
        )
        self._incoming = counter(
            "scheduler_queue_incoming_pods_total",
            "Pods put into a queue, by the queue and the event that brought them there.",
            "queue",
            "event",
        )
        self._permit_wait = histogram(
            "scheduler_permit_wait_duration_seconds",
            "Duration of waiting on permit, by what came of it.",
            exponential(0.001, 2, 15),
            "result",
        )
        self._bind_conflicts = counter(
            "berth_bind_conflicts_total", "Pods that another scheduler bound before us."
        )
        self._expired = counter(
            "berth_assumed_pods_expired_total",
            "Assumed pods whose binding was never confirmed in time, by what became of them.",
            "outcome",
        )
        self._malformed = counter(
            "berth_malformed_objects_total",
            "Objects of the API that could not be read and were left as they were known.",
            "resource",
        )
        self._changed_nodes = histogram(
            "berth_snapshot_changed_nodes",
            "Nodes that had changed since the scheduling cycle before.",
            [0, *exponential(1, 4, 8)],
        )
        self._preemption_attempts = counter(
            "scheduler_preemption_attempts_total", "Attempts to preempt, with or without success."
        )
        self._preemption_victims = histogram(
            "scheduler_preemption_victims",
            "Victims chosen for one preemption.",
            exponential(1, 2, 7),
        )
        self._preemption_duration = histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Time that it took to evict the victims of one preemption.",
            exponential(0.01, 2, 20),
            "result",
        )
        self._preemptions = counter(
            "scheduler_preemption_goroutines_execution_total",
            "Preemptions carried out, by result: success or error.",
            "result",
        )
        # Looking up the children of a metric costs more than counting, so each is kept.
        self._attempts_of: dict[tuple[str, str], _Attempts] = {}
        self._sli_of: dict[int, Histogram] = {}
        self._incoming_of: dict[tuple[str, str], Counter] = {}

    # --- what happens -------------------------------------------------------------------------

    def attempt(self, profile: str, result: str, duration_s: float | None = None) -> None:
        """Count an attempt to schedule a pod.

        Parameters
        ----------
        result
            ``scheduled``, ``unschedulable`` or ``error``.
        duration_s
            Of decision and binding; None when it was not measured.
        """
        metrics = self._attempts_of.get((profile, result))
        if metrics is None:
            metrics = self._attempts_of[profile, result] = _Attempts(
                self._attempts_total.labels(profile, result),
                self._attempt_duration.labels(profile, result),
            )
        metrics.total.inc()
        if duration_s is not None:
            metrics.duration.observe(duration_s)

    def decided(self, decision: Decision, update: SnapshotUpdate) -> None:
        """Count a scheduling cycle, whatever it decided."""
        self._algorithm_duration.observe(decision.duration_s)
        self._changed_nodes.observe(update.changed)
        if decision.post_filtered:
            self._preemption_attempts.inc()

    def bound(self, queued: QueuedPod, decision: Decision, now_s: float) -> None:
        """Count a pod that has been bound at `now_s` (the queue's monotonic clock)."""
        popped_s = queued.popped_s
        self.attempt(decision.profile, "scheduled", None if popped_s is None else now_s - popped_s)
        attempts = queued.attempts
        self._pod_attempts.observe(attempts)
        if queued.initial_attempt_s is not None:
            capped = min(attempts, _MANY_ATTEMPTS)
            sli = self._sli_of.get(capped)
            if sli is None:
                label = str(capped) if capped < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
                sli = self._sli_of[capped] = self._sli_duration.labels(label)
            sli.observe(now_s - queued.initial_attempt_s)
        if queued.flushed:
            self._after_flush.inc()

    def incoming(self, queue: str, event: str) -> None:
        """Count a pod that `event` put into `queue`: active, backoff, unschedulable, gated."""
        child = self._incoming_of.get((queue, event))
        if child is None:
            child = self._incoming_of[queue, event] = self._incoming.labels(queue, event)
        child.inc()

    def permit_waited(self, result: str, duration_s: float) -> None:
        """Count a pod that a Permit plugin held, by the code of what came of it."""
        self._permit_wait.labels(result).observe(duration_s)

    def bind_conflict(self) -> None:
        """Count a pod that another scheduler bound."""
        self._bind_conflicts.inc()

    def preemption(self, victims: int) -> None:
        """Count a preemption that begins."""
        self._preemption_victims.observe(victims)

    def preempted(self, result: str, duration_s: float) -> None:
        """Count a preemption that has ended: ``success`` or ``error``."""
        self._preemption_duration.labels(result).observe(duration_s)
        self._preemptions.labels(result).inc()

    def malformed(self, resource: str) -> None:
        """Count an object of `resource` that could not be read."""
        self._malformed.labels(resource).inc()

    def expired(self, outcome: str) -> None:
        """Count an overdue assumed pod: bound after all, requeued, or gone."""
        self._expired.labels(outcome).inc()

    # --- what is ------------------------------------------------------------------------------

    def watch_gauges(
        self,
        *,
        pending_pods: Numbers | None = None,
        cache_size: Numbers | None = None,
        watch_staleness_s: Numbers | None = None,
        watch_relists: Numbers | None = None,
        events: Callable[[], EventStatistics] | None = None,
        pod_statuses: Callable[[], PodStatusStatistics] | None = None,
    ) -> None:
        """Name those to ask at each scrape. They are asked from any thread.

        Parameters
        ----------
        pending_pods
            Pods by queue: active, backoff, unschedulable, gated.
        cache_size
            Counts by type: nodes, pods, assumed_pods.
        watch_staleness_s, watch_relists
            By resource: seconds since the watch last said anything, and lists after the first.
        events, pod_statuses
            The event recorder's and the status writer's statistics.
        """
        for heading, read in (
            (_PENDING_PODS, pending_pods),
            (_CACHE_SIZE, cache_size),
            (_WATCH_STALENESS, watch_staleness_s),
            (_WATCH_RELISTS, watch_relists),
        ):
            if read is not None:
                self._pulled.add(*heading, read)
        if events is not None:
            for name, text, number in _EVENTS:
                self._pulled.add("counter", name, text, "", _one(events, number))
        if pod_statuses is not None:
            for name, text, count in _POD_STATUSES:
                self._pulled.add("counter", name, text, "", _one(pod_statuses, count))

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics as text, and its content type, for a request's Accept header.

        *Cost*: a few milliseconds.
        """
        return exposition(self._registry, accept)


def _one(statistics: Callable[[], S], number: Callable[[S], float]) -> Numbers:
    return lambda: {"": number(statistics())}
