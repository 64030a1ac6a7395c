"""The journal of a running scheduler, as its threads see it: entries go into a bounded buffer."""

from __future__ import annotations

import time
from collections import deque
from threading import get_ident
from typing import TYPE_CHECKING, Any

from scheduler.journal.records import Asked, Decided, Planned
from scheduler.journal.taps import Listened, ListenedPreemption, listen_to_known
from scheduler.journal.ties import RecordedTies
from scheduler.pod_groups.attempt import SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.known import Known
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.status import Status
    from scheduler.cycle.scheduling_cycle import Rejections, SchedulingCycle
    from scheduler.decision.decision import Decision
    from scheduler.journal.records import Entry
    from scheduler.pod_groups.plan import GroupPlan, GroupTask
    from scheduler.pod_groups.preemption import GroupVictims
    from scheduler.queueing import QueuedPod
    from scheduler.queueing.nominator import Nominator
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.plugin_handle import PluginServices


class Journal:
    """Collect what is known and decided, in its order.

    Parameters
    ----------
    seed
        Decides between equal nodes.
    most
        Entries that may wait. Beyond it the journal is over: what is known cannot be told any more.
    wall_clock
        Seconds since the epoch.

    Attributes
    ----------
    ties
        Chooses among equal nodes.
    waiting
        The entries that are not written yet; one thread takes them out.
    is_over
        Whether an entry was lost, and with it the state that later ones build on.
    wants_cut
        Whether the scheduling thread is to record the order of the nodes, so that a file can begin.
    reads
        What was asked in the current decision, with the answers; None between decisions.
    thread
        The scheduling thread.

    Notes
    -----
    *Concurrency*: entries come from any thread; an append to a deque needs no lock.

    *Cost*: 0.2 us for an entry, some 3 us for a decision.
    """

    def __init__(
        self, seed: int | None, most: int, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self.ties = RecordedTies(seed)
        self.waiting: deque[Entry] = deque()
        self.is_over = False
        self.wants_cut = True
        self.reads: list[list[Any]] | None = None
        self.thread = 0
        self._most = most
        self._wall_clock = wall_clock
        self._now_s = 0.0
        self._next_start = 0
        self._readings: dict[str, object] = {}

    def record(self, what: str, subject: Any, more: str) -> None:
        """Add an entry: a :data:`cache.observer.Observer`."""
        if len(self.waiting) < self._most:
            self.waiting.append((what, subject, more))
        else:
            self.is_over = True

    # --- who is listened to -------------------------------------------------------------------

    def watch(self, known: Known, nominator: Nominator) -> None:
        """Record every change from now on; nothing is known yet."""
        known.cache.observer = self.record
        nominator.observer = self.record
        listen_to_known(known, self.record, self._is_own)

    def listen_to(self, services: PluginServices) -> None:
        """Record what the services answer in decisions; no plugin has them yet."""
        listened = Listened(self)
        live_pod = listened.wrap(services, "live_pod", lambda pod, about: ["pod", *about, pod])
        services.live_pod = live_pod  # type: ignore[method-assign]
        services.preemption = ListenedPreemption(services.preemption, listened)
        services.node_metrics = _ListenedMetrics(services.node_metrics, self)

    def told_by(self, rejections: Rejections) -> Rejections:
        """Return the rejections of kubelets, with what they answer recorded."""
        return _ListenedRejections(rejections, self)

    def wall(self) -> float:
        """Return the time in seconds since the epoch; it stands still in a decision."""
        if self.reads is not None and get_ident() == self.thread:
            return self._now_s
        return self._wall_clock()

    def reading(self, name: str, reading: Any) -> None:
        """Record the values of a node metric that are used from now on."""
        if self._readings.get(name) is not reading:
            self._readings[name] = reading
            self.record("metric", None if reading is None else dict(reading.by_node), name)

    def _is_own(self) -> bool:
        return get_ident() == self.thread

    # --- what is decided ----------------------------------------------------------------------

    def configured(self, version: int, frameworks: Sequence[FrameworkRunner]) -> None:
        """Record the profiles that are about to decide, and their version."""
        for framework in frameworks:
            for plugin in framework.plugins:
                if hasattr(plugin, "wall_clock"):
                    plugin.wall_clock = self.wall
        self.record("config", (version, tuple(frameworks)), "")

    def between_cycles(self, cycle: SchedulingCycle) -> None:
        """Record the order of the nodes if a file is to begin."""
        if self.wants_cut:
            self.wants_cut = False
            self.thread = get_ident()
            self.record("cut", cycle.snapshot.names(), "")

    def begin(self, cycle: SchedulingCycle) -> None:
        """Begin a decision."""
        self.ties.begin(self.ties.next_number())
        self._next_start = cycle.next_start
        self._now_s = self._wall_clock()
        self.reads = []

    def decided(
        self, queued: QueuedPod, framework: FrameworkRunner, version: int, decision: Decision
    ) -> None:
        """Record a decision."""
        asked = self._asked(version, self.ties.number)
        group = None if queued.group is None else queued.group.key
        asks = _asks_extenders(framework, (queued.info,))
        self.record("decision", Decided(asked, decision, group, asks), "")

    def planned(self, task: GroupTask, version: int, plan: GroupPlan, *, preempts: bool) -> None:
        """Record a plan for a group."""
        asked = self._asked(version, self.ties.number_of(str(task.rules.key)))
        is_late = task.budget.has_used(task.budget.limit_s * SHARE)
        asks = _asks_extenders(task.framework, task.members)
        self.record("plan", Planned(asked, task, plan, is_late, preempts, asks), "")
        if preempts:
            self.reads = []

    def found_victims(self, found: GroupVictims | Status) -> None:
        """Record the victims for the group that was planned last."""
        self.record("victims", (self._taken_reads(), found), "")

    def _asked(self, version: int, number: int) -> Asked:
        return Asked(number, self._next_start, self._now_s, version, self._taken_reads())

    def _taken_reads(self) -> list[list[Any]]:
        taken, self.reads = self.reads or [], None
        return taken


def _asks_extenders(framework: FrameworkRunner, infos: Sequence[PodInfo]) -> bool:
    extenders = framework.extenders
    return extenders is not None and any(extenders.consult(info) is not None for info in infos)


class _ListenedRejections:
    def __init__(self, real: Rejections, journal: Journal) -> None:
        self._real = real
        self._journal = journal

    def avoided(self, pod: Pod) -> Mapping[str, float]:
        found = self._real.avoided(pod)
        if found and self._journal.reads is not None:
            self._journal.reads.append(["avoided", dict(found)])
        return found


class _ListenedMetrics:
    def __init__(self, real: Any, journal: Journal) -> None:
        self._real = real
        self._journal = journal

    def latest(self, name: str) -> Any:
        found = self._real.latest(name)
        self._journal.reading(name, found)
        return found
