"""Hold the metrics with kube-scheduler's names, and a few of berth's own.

Counters and histograms are fed where things happen; what is a state (how many pods wait, how old
the watch is) is read at each scrape. :mod:`.declarations` has names and texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.metrics import declarations as declared
from scheduler.metrics.client_metrics import ClientMetrics
from scheduler.metrics.cycle_metrics import CycleMetrics
from scheduler.metrics.device_binding_metrics import DeviceBindingMetrics
from scheduler.metrics.exposition import exposition
from scheduler.metrics.instruments import Pulled, Registry, Samples
from scheduler.metrics.pod_group_metrics import PodGroupMetrics
from scheduler.metrics.process import add_process_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Set

    from cache.scheduler_cache import SnapshotUpdate
    from scheduler.decision.decision import Decision
    from scheduler.metrics.declarations import State
    from scheduler.queueing import QueuedPod

_MANY_ATTEMPTS: Final = 15
"""From here on the label ``attempts`` says ``15+``: its values must be few."""

_NAMESPACES: Final = 50
"""Values of a label ``namespace`` before all others count as ``other``: anybody may make some."""

_HANDLED_AT_ONCE: Final = 16_384

GONE_KEPT: Final = 16
"""Profiles that are gone and whose series stay, to be scraped once more: a megabyte at most."""

_PROFILE: Final = "profile"


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
    device_bindings
        What is told of devices whose pods are bound.
    pod_groups
        What is told of groups of pods.
    loop_lag
        Told by how many seconds the I/O loop fell behind.
    incoming
        Counts a pod that an event put into a queue, by the queue (active, backoff, unschedulable,
        gated) and the event.
    bind_conflict
        Counts a pod that another scheduler bound.
    pool_hop
        Counts a pod that went from one pool to another, and why.
    kubelet_rejected
        Counts a pod that its node's kubelet rejected, by one of a bounded number of reasons.
    binding_abandoned
        Counts a binding that was undone, by one of the reasons of the binder.
    collision
        Counts a pod of others that overcommits a node which we have just bound to, by resource.
    binding_withheld
        Counts a binding that the guard did not let be sent, by the plugin that refused it.
    malformed
        Counts an object that could not be read, by its resource.
    lost_event_repaired
        Counts a lost event that was made up for, by the resource and what it was: add, update or
        delete.
    config_reloaded
        Counts that the configuration was read again: applied, unchanged or refused.
    expired
        Counts an overdue assumed pod: bound after all, requeued, or gone.
    """

    def __init__(self) -> None:
        registry = self._registry = Registry()
        counter, histogram = registry.counter, registry.histogram
        self._attempts_total = counter(*declared.ATTEMPTS_TOTAL)
        self._attempt_duration = histogram(*declared.ATTEMPT_DURATION)
        self._algorithm_duration = histogram(*declared.ALGORITHM_DURATION)
        self._pod_attempts = histogram(*declared.POD_ATTEMPTS)
        self._sli_duration = histogram(*declared.SLI_DURATION)
        self._after_flush = counter(*declared.AFTER_FLUSH)
        self.incoming = counter(*declared.INCOMING).count
        self._permit_wait = histogram(*declared.PERMIT_WAIT)
        self.pool_hop = counter(*declared.POOL_HOPS).count
        self.bind_conflict = counter(*declared.BIND_CONFLICTS).count
        self.binding_abandoned = counter(*declared.ABANDONED).count
        self.collision = counter(*declared.COLLISIONS).count
        self.binding_withheld = counter(*declared.WITHHELD).count
        self.kubelet_rejected = counter(*declared.KUBELET_REJECTIONS).count
        self.expired = counter(*declared.EXPIRED).count
        self.malformed = counter(*declared.MALFORMED).count
        self.lost_event_repaired = counter(*declared.LOST_EVENTS).count
        self.config_reloaded = counter(*declared.CONFIG_RELOADS).count
        self._changed_nodes = histogram(*declared.CHANGED_NODES)
        self._over_budget = counter(*declared.OVER_BUDGET)
        self._expensive_namespaces: set[str] = set()
        self._preemption_attempts = counter(*declared.PREEMPTION_ATTEMPTS)
        self._preemption_victims = histogram(*declared.PREEMPTION_VICTIMS)
        self._preemption_duration = histogram(*declared.PREEMPTION_DURATION)
        self._preemptions = counter(*declared.PREEMPTIONS)
        self._event_handling = histogram(*declared.EVENT_HANDLING)
        self.loop_lag = histogram(*declared.LOOP_LAG).of().observe
        self.cycles = CycleMetrics(registry)
        self.client = ClientMetrics(registry)
        self.device_bindings = DeviceBindingMetrics(registry)
        self.pod_groups = PodGroupMetrics(registry)
        add_process_metrics(registry)
        self._observe_algorithm = self._algorithm_duration.of().observe
        self._observe_changed = self._changed_nodes.of().observe
        self._gone_profiles = GoneProfiles(registry, self.cycles)
        # Looking up the children of a metric costs more than counting, so each is kept.
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
        self._attempts_total.count(profile, result)
        if duration_s is not None:
            self._attempt_duration.of(profile, result).observe(duration_s)

    def decided(self, decision: Decision, update: SnapshotUpdate) -> None:
        """Count a scheduling cycle, whatever it decided."""
        self._observe_algorithm(decision.duration_s)
        self._observe_changed(update.changed)
        if decision.post_filtered:
            self._preemption_attempts.count()

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
            self._after_flush.count()

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

    def over_budget(self, namespace: str) -> None:
        """Count an attempt that was broken off because its budget ran out."""
        known = self._expensive_namespaces
        if namespace not in known:
            if len(known) >= _NAMESPACES:
                namespace = "other"
            else:
                known.add(namespace)
        self._over_budget.count(namespace)

    def preemption(self, victims: int) -> None:
        """Count a preemption that begins."""
        self._preemption_victims.of().observe(victims)

    def preempted(self, result: str, duration_s: float) -> None:
        """Count a preemption that has ended: ``success`` or ``error``."""
        self._preemption_duration.of(result).observe(duration_s)
        self._preemptions.count(result)

    # --- what is ------------------------------------------------------------------------------

    def watch(self, state: State, read: Callable[[], float | None]) -> None:
        """Name whom to ask for a number at each scrape, from any thread; None for none yet."""

        def ask() -> Mapping[tuple[str, ...], float]:
            value = read()
            return {} if value is None else {(): value}

        self.pull(Pulled(*state, ask))

    def watch_each(self, state: State, read: Callable[[], Mapping[str, float]]) -> None:
        """Name whom to ask for numbers, by the value of the one label, as :meth:`watch` does."""
        self.pull(Pulled(*state, lambda: {(key,): value for key, value in read().items()}))

    def watch_leadership(self, name: str, is_leading: Callable[[], bool]) -> None:
        """Name whom to ask at each scrape, from any thread, whether this process schedules.

        Parameters
        ----------
        name
            The lease; empty where there is no election.
        """
        if name:
            self.watch_each(declared.MASTER_STATUS, lambda: {name: float(is_leading())})
        self.watch(declared.LEADER, lambda: float(is_leading()))

    def name_pool(self, name: str, node_selector: str) -> None:
        """Expose the pool as labels of a metric."""
        self.pull(Pulled(*declared.POOL_INFO, lambda: {(name, node_selector): 1.0}))

    def watch_profiles(self, names: Callable[[], Set[str]]) -> None:
        """Name whom to ask, at each fold, which profiles are in force; series of others go."""
        self._gone_profiles.watch(names)

    def pull(self, family: Pulled) -> None:
        """Take up a metric of a part that not every berth has; asked for at each scrape."""
        self._registry.pull(family)

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


class GoneProfiles:
    """Drops the series of profiles that are gone, some others after them.

    Whoever may make SchedulingProfiles makes names, and each name has some hundred series.

    Notes
    -----
    *Concurrency*: confined to the thread that folds metrics.
    """

    def __init__(self, registry: Registry, cycles: CycleMetrics) -> None:
        self._registry = registry
        self._cycles = cycles
        self._names: Callable[[], Set[str]] | None = None
        self._in_force: Set[str] = frozenset()
        self._gone: list[str] = []

    def watch(self, names: Callable[[], Set[str]]) -> None:
        """Name whom to ask which profiles are in force."""
        self._names = names

    def forget(self) -> None:
        """Drop series when other profiles have come into force, but for those gone last.

        *Cost*: next to nothing while the profiles are the same, else a pass over all series.
        """
        if self._names is None:
            return
        in_force = self._names()
        if in_force == self._in_force:
            return
        self._in_force = in_force
        # A binding that outlasts its profile makes its series anew: so all are looked at.
        gone = self._registry.values_of(_PROFILE) - in_force
        known = [name for name in self._gone if name in gone]
        self._gone = known + sorted(gone.difference(known))
        dropped = set(self._gone[:-GONE_KEPT])
        if dropped:
            self._registry.drop(_PROFILE, dropped)
            self._cycles.forget_profiles(dropped)
