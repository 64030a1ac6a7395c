"""Metrics under kube-scheduler's names, and a few of berth's own.

Counters and histograms are fed where things happen; what is a state (how many pods wait, how old
the watch is) is asked for when somebody scrapes.

Source: pkg/scheduler/metrics/metrics.go (1.36): names, labels and buckets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from scheduler.metrics.client_metrics import ClientMetrics
from scheduler.metrics.cycle_metrics import CycleMetrics
from scheduler.metrics.exposition import exposition
from scheduler.metrics.gone_profiles import GoneProfiles
from scheduler.metrics.instruments import (
    Kind,
    Pulled,
    Registry,
    Samples,
    exponential,
)
from scheduler.metrics.process import add_process_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from cache.scheduler_cache import SnapshotUpdate
    from scheduler.decision import Decision
    from scheduler.event_recorder import EventStatistics
    from scheduler.pod_status_writer import PodStatusStatistics
    from scheduler.queueing import QueuedPod

    Numbers: TypeAlias = Callable[[], Mapping[str, float]]

S = TypeVar("S")

_MANY_ATTEMPTS: Final = 15
"""From here on the label ``attempts`` says ``15+``: its values must be few."""


_NAMESPACES: Final = 50
"""Values of a label ``namespace`` before all others count as ``other``: anybody may make some."""


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
_UNREADABLE: Final[_Heading] = (
    "gauge",
    "berth_unreadable_objects",
    "Objects of the API that cannot be read as they are now.",
    "resource",
)
_RESTORES: Final[_Heading] = (
    "counter",
    "berth_restores_total",
    "Lists that were older than what was known and were believed: etcd was restored.",
    "resource",
)
_INFLIGHT_EVENTS: Final[_Heading] = (
    "gauge",
    "scheduler_inflight_events",
    "Events that are kept for pods in flight, and these pods.",
    "event",
)
_TASKS: Final[_Heading] = (
    "gauge",
    "scheduler_goroutines",
    "Tasks under way, by what they do.",
    "operation",
)
_MISMATCHES: Final[tuple[Kind, str, str]] = (
    "gauge",
    "berth_cache_mismatches",
    "What the last comparison of the cache with the watches found to be different.",
)
_COMPARISONS: Final[tuple[Kind, str, str]] = (
    "counter",
    "berth_cache_comparisons_total",
    "Comparisons of the cache with the watches.",
)
_CYCLE_UNDER_WAY: Final[tuple[Kind, str, str]] = (
    "gauge",
    "berth_cycle_under_way_seconds",
    "Duration so far of the scheduling cycle that is under way; 0 when none is.",
)
_WAKE_UP_BACKLOG: Final[tuple[Kind, str, str]] = (
    "gauge",
    "berth_wake_up_backlog",
    "Events about which waiting pods have not been asked yet.",
)
_OLDEST_ACTIVE_POD: Final[tuple[Kind, str, str]] = (
    "gauge",
    "berth_oldest_active_pod_seconds",
    "Time since the pod that waits longest in the active queue entered it; 0 for no pod.",
)
_MASTER_STATUS: Final[_Heading] = (
    "gauge",
    "leader_election_master_status",
    "Whether this process holds the lease (1) or not (0), by the lease's name.",
    "name",
)
_LEADER: Final[_Heading] = (
    "gauge",
    "berth_leader",
    "Whether this process schedules (1) or stands by (0).",
    "",
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


_LAG_BOUNDS: Final = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
_HANDLED_AT_ONCE: Final = 16_384


class Metrics:
    """All metrics of a scheduler.

    Notes
    -----
    *Concurrency*: thread-safe.

    *Cost*: about 2 us for a pod from the queue to its node; see :mod:`.instruments`.

    Attributes
    ----------
    cycles
        What is told of scheduling cycles and extension points.
    client
        What is told of requests to the API server.
    loop_lag
        Told by how many seconds the I/O loop fell behind.
    """

    def __init__(self) -> None:
        registry = self._registry = Registry()
        counter, histogram = registry.counter, registry.histogram
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
        self._abandoned = counter(
            "berth_bindings_abandoned_total",
            "Bindings given up although their pod is still there and has no node, by reason; the "
            "pod is tried again after its backoff.",
            "reason",
        )
        self._kubelet_rejections = counter(
            "berth_kubelet_rejections_total",
            "Pods that were bound and then rejected by the kubelet of their node, by reason.",
            "reason",
        )
        self._expired = counter(
            "berth_assumed_pods_expired_total",
            "Assumed pods whose binding was never confirmed in time, by what became of them.",
            "outcome",
        )
        self._malformed = counter(
            "berth_malformed_objects_total",
            "Versions of objects of the API that could not be read.",
            "resource",
        )
        self._lost_events = counter(
            "berth_lost_events_repaired_total",
            "Changes that a watch never told, found in the API and made up for.",
            "resource",
            "kind",
        )
        self._config_reloads = counter(
            "berth_config_reloads_total",
            "Times that the configuration was read again: applied, unchanged or refused.",
            "result",
        )
        self._changed_nodes = histogram(
            "berth_snapshot_changed_nodes",
            "Nodes that had changed since the scheduling cycle before.",
            [0, *exponential(1, 4, 8)],
        )
        self._over_budget = counter(
            "berth_attempts_over_budget_total",
            "Attempts that were broken off because the pod needed more CPU time than its budget, "
            'by namespace: the first 50, then "other".',
            "namespace",
        )
        self._expensive_namespaces: set[str] = set()
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
        self._event_handling = histogram(
            "scheduler_event_handling_duration_seconds",
            "Duration of taking in what a watch tells, by what has happened.",
            exponential(0.0001, 2, 12),
            "event",
        )
        self.loop_lag = (
            histogram(
                "berth_loop_lag_seconds",
                "By how much a timer of the I/O loop that is due every 0.1 s is called too late.",
                _LAG_BOUNDS,
            )
            .of()
            .observe
        )
        self.cycles = CycleMetrics(registry)
        self.client = ClientMetrics(registry)
        add_process_metrics(registry)
        self._observe_algorithm = self._algorithm_duration.of().observe
        self._observe_changed = self._changed_nodes.of().observe
        # Looking up the children of a metric costs more than counting, so each is kept.
        self._gone_profiles = GoneProfiles(registry, self.cycles)
        self._sli_of: dict[int, Samples] = {}
        self._handled = 0
        self._event_of: dict[str, Callable[[float], None]] = {}

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
        self._attempts_total.of(profile, result).inc()
        if duration_s is not None:
            self._attempt_duration.of(profile, result).observe(duration_s)

    def decided(self, decision: Decision, update: SnapshotUpdate) -> None:
        """Count a scheduling cycle, whatever it decided."""
        self._observe_algorithm(decision.duration_s)
        self._observe_changed(update.changed)
        if decision.post_filtered:
            self._preemption_attempts.of().inc()

    def bound(self, queued: QueuedPod, decision: Decision, now_s: float) -> None:
        """Count a pod that has been bound at `now_s` (the queue's monotonic clock)."""
        popped_s = queued.popped_s
        self.attempt(decision.profile, "scheduled", None if popped_s is None else now_s - popped_s)
        attempts = queued.attempts
        self._pod_attempts.of().observe(attempts)
        if queued.initial_attempt_s is not None:
            capped = min(attempts, _MANY_ATTEMPTS)
            sli = self._sli_of.get(capped)
            if sli is None:
                label = str(capped) if capped < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
                sli = self._sli_of[capped] = self._sli_duration.of(label)
            sli.observe(now_s - queued.initial_attempt_s)
        if queued.flushed:
            self._after_flush.of().inc()

    def incoming(self, queue: str, event: str) -> None:
        """Count a pod that `event` put into `queue`: active, backoff, unschedulable, gated."""
        self._incoming.of(queue, event).inc()

    def handled(self, event: str, duration_s: float) -> None:
        """Count something that a watch told of, by the label of the event."""
        self._handled += 1
        if self._handled % _HANDLED_AT_ONCE == 0:
            # The first lists bring more at once than may wait to be counted.
            self._registry.fold()
        observe = self._event_of.get(event)
        if observe is None:
            observe = self._event_of[event] = self._event_handling.of(event).observe
        observe(duration_s)

    def permit_waited(self, result: str, duration_s: float) -> None:
        """Count a pod that a Permit plugin held, by the code of what came of it."""
        self._permit_wait.of(result).observe(duration_s)

    def bind_conflict(self) -> None:
        """Count a pod that another scheduler bound."""
        self._bind_conflicts.of().inc()

    def kubelet_rejected(self, reason: str) -> None:
        """Count a pod that its node's kubelet rejected, by one of a bounded number of reasons."""
        self._kubelet_rejections.of(reason).inc()

    def binding_abandoned(self, reason: str) -> None:
        """Count a binding that was undone, by one of the reasons of the binder."""
        self._abandoned.of(reason).inc()

    def over_budget(self, namespace: str) -> None:
        """Count an attempt that was broken off because its budget ran out."""
        known = self._expensive_namespaces
        if namespace not in known:
            if len(known) >= _NAMESPACES:
                namespace = "other"
            else:
                known.add(namespace)
        self._over_budget.of(namespace).inc()

    def preemption(self, victims: int) -> None:
        """Count a preemption that begins."""
        self._preemption_victims.of().observe(victims)

    def preempted(self, result: str, duration_s: float) -> None:
        """Count a preemption that has ended: ``success`` or ``error``."""
        self._preemption_duration.of(result).observe(duration_s)
        self._preemptions.of(result).inc()

    def malformed(self, resource: str) -> None:
        """Count an object of `resource` that could not be read."""
        self._malformed.of(resource).inc()

    def lost_event_repaired(self, resource: str, kind: str) -> None:
        """Count a lost event that was made up for: add, update or delete."""
        self._lost_events.of(resource, kind).inc()

    def config_reloaded(self, result: str) -> None:
        """Count that the configuration was read again: applied, unchanged or refused."""
        self._config_reloads.of(result).inc()

    def expired(self, outcome: str) -> None:
        """Count an overdue assumed pod: bound after all, requeued, or gone."""
        self._expired.of(outcome).inc()

    # --- what is ------------------------------------------------------------------------------

    def watch_gauges(
        self,
        *,
        pending_pods: Numbers | None = None,
        cache_size: Numbers | None = None,
        watch_staleness_s: Numbers | None = None,
        watch_relists: Numbers | None = None,
        unreadable_objects: Numbers | None = None,
        restores: Numbers | None = None,
        unschedulable_pods: Callable[[], Mapping[tuple[str, ...], float]] | None = None,
        inflight_events: Numbers | None = None,
        wake_up_backlog: Callable[[], float] | None = None,
        oldest_active_pod_s: Callable[[], float] | None = None,
        tasks: Numbers | None = None,
        cache_mismatches: Callable[[], float | None] | None = None,
        cache_comparisons: Callable[[], float] | None = None,
        events: Callable[[], EventStatistics] | None = None,
        pod_statuses: Callable[[], PodStatusStatistics] | None = None,
        cycle_under_way_s: Callable[[], float] | None = None,
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
        unreadable_objects
            By resource: those that cannot be read as they are now.
        restores
            By resource: lists from before what was known that were believed.
        unschedulable_pods
            By plugin and profile.
        inflight_events
            Events that are kept for pods in flight, by label.
        wake_up_backlog
            Events about which waiting pods have not been asked yet.
        oldest_active_pod_s
            Seconds since the active pod that waits longest became active.
        tasks
            By operation: what is under way at this moment.
        cache_mismatches
            What the last comparison of the cache found; None before the first.
        cache_comparisons
            How many there were.
        events, pod_statuses
            The event recorder's and the status writer's statistics.
        cycle_under_way_s
            How long the scheduling cycle takes that is under way; 0 when none is.
        """
        for heading, read in (
            (_PENDING_PODS, pending_pods),
            (_CACHE_SIZE, cache_size),
            (_WATCH_STALENESS, watch_staleness_s),
            (_WATCH_RELISTS, watch_relists),
            (_UNREADABLE, unreadable_objects),
            (_RESTORES, restores),
            (_INFLIGHT_EVENTS, inflight_events),
            (_TASKS, tasks),
        ):
            if read is not None:
                self._pull(heading, read)
        pull = self._registry.pull
        if unschedulable_pods is not None:
            pull(
                Pulled(
                    "gauge",
                    "scheduler_unschedulable_pods",
                    "Pods that were refused, by plugin: a pod counts for each that refused it.",
                    ("plugin", "profile"),
                    unschedulable_pods,
                )
            )
        for gauge, read_one in (
            (_WAKE_UP_BACKLOG, wake_up_backlog),
            (_OLDEST_ACTIVE_POD, oldest_active_pod_s),
        ):
            if read_one is not None:
                pull(Pulled(*gauge, (), _known(read_one)))
        if cache_mismatches is not None:
            pull(Pulled(*_MISMATCHES, (), _known(cache_mismatches)))
        if cache_comparisons is not None:
            pull(Pulled(*_COMPARISONS, (), _known(cache_comparisons)))
        if cycle_under_way_s is not None:
            pull(Pulled(*_CYCLE_UNDER_WAY, (), _known(cycle_under_way_s)))
        if events is not None:
            for name, text, number in _EVENTS:
                pull(Pulled("counter", name, text, (), _one(events, number)))
        if pod_statuses is not None:
            for name, text, count in _POD_STATUSES:
                pull(Pulled("counter", name, text, (), _one(pod_statuses, count)))

    def watch_leadership(self, name: str, is_leading: Callable[[], bool]) -> None:
        """Name whom to ask at each scrape, from any thread, whether this process schedules.

        Parameters
        ----------
        name
            The lease; empty where there is no election.
        """
        if name:
            self._pull(_MASTER_STATUS, lambda: {name: float(is_leading())})
        self._pull(_LEADER, lambda: {"": float(is_leading())})

    def watch_profiles(self, names: Callable[[], Set[str]]) -> None:
        """Name whom to ask, at each fold, which profiles are in force; series of others go."""
        self._gone_profiles.watch(names)

    def pull(self, family: Pulled) -> None:
        """Take up a metric of a part that not every berth has; asked for at each scrape."""
        self._registry.pull(family)

    def _pull(self, heading: _Heading, read: Numbers) -> None:
        kind, name, text, label = heading
        labels = (label,) if label else ()

        def ask() -> Mapping[tuple[str, ...], float]:
            return {(key,) if label else (): value for key, value in read().items()}

        self._registry.pull(Pulled(kind, name, text, labels, ask))

    # --- who reads it -------------------------------------------------------------------------

    def fold(self) -> None:
        """Count what has been put down since the last time: once a second, on any thread."""
        self.cycles.fold()
        self._registry.fold()
        self._gone_profiles.forget()

    def described(self) -> Iterator[tuple[str, str, tuple[str, ...], tuple[float, ...]]]:
        """Return name, type, labels and bucket bounds of each metric, observed or not."""
        for family in self._registry.families():
            bounds = () if isinstance(family, Pulled) else family.bounds
            yield family.name, family.kind, family.label_names, bounds

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics as text, and its content type, for a request's Accept header.

        *Cost*: about a microsecond for a line, of which there are some two thousand.
        """
        self.cycles.fold()
        return exposition(self._registry.families(), accept)


def _one(
    statistics: Callable[[], S], number: Callable[[S], float]
) -> Callable[[], Mapping[tuple[str, ...], float]]:
    return lambda: {(): number(statistics())}


def _known(
    read: Callable[[], float | None],
) -> Callable[[], Mapping[tuple[str, ...], float]]:
    def ask() -> Mapping[tuple[str, ...], float]:
        value = read()
        return {} if value is None else {(): value}

    return ask
