"""The journal of a running scheduler, as its threads see it: entries go into a bounded buffer."""

from __future__ import annotations

import time
from collections import deque
from threading import get_ident
from typing import TYPE_CHECKING, Any

from plugins.default_preemption import EVERYTHING, DefaultPreemption
from plugins.dynamic_resources import DynamicResources
from scheduler.journal.records import (
    OFF,
    POST_FILTER,
    RESERVE,
    SEARCHED,
    SPENT,
    TIMEOUT,
    Asked,
    Decided,
    Planned,
)
from scheduler.journal.taps import Listened, ListenedPreemption, listen_to_known
from scheduler.journal.ties import RecordedTies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.known import Known
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.default_preemption import Extent
    from plugins.framework.attempt_budget import Spent
    from plugins.framework.status import Status
    from scheduler.cycle.host_selection import ForeignRates
    from scheduler.cycle.scheduling_cycle import Rejections, SchedulingCycle
    from scheduler.cycle.soft_reserve import Sizes
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
        self._planned_by = 0, 0
        """How often the plan of a group has asked its budget."""
        self._readings: dict[str, object] = {}
        self._versions: Mapping[int, tuple[FrameworkRunner, int]] = {}
        """The profiles of the last configurations by identity, and the last version with each."""
        self._calls: dict[tuple[str, str], list[str | None]] = {}
        """Of the current decision: by plugin and method, why calls into users' plugins were not
        made; None for calls that were."""

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
        live_pod = listened.wrap(
            services, "live_pod", lambda pod, about: ["pod", *about, pod], POST_FILTER
        )
        services.live_pod = live_pod  # type: ignore[method-assign]
        services.preemption = ListenedPreemption(services.preemption, listened)
        services.node_metrics = _ListenedMetrics(services.node_metrics, self)
        now_s = services.claim_writer.now_s
        services.claim_writer.now_s = lambda: (  # type: ignore[method-assign]
            self._now_s if self._is_deciding() else now_s()
        )

    def told_by(self, rejections: Rejections) -> Rejections:
        """Return the rejections of kubelets, with what they answer recorded."""
        return _ListenedRejections(rejections, self)

    def break_ties_by(self, others: ForeignRates) -> None:
        """Leave nodes to others in ties, with what they did recorded."""
        self.ties.others = _ListenedRates(others, self)

    def wall(self) -> float:
        """Return the time in seconds since the epoch; it stands still in a decision."""
        return self._now_s if self._is_deciding() else self._wall_clock()

    def _is_deciding(self) -> bool:
        return self.reads is not None and get_ident() == self.thread

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
                if hasattr(getattr(plugin, "guard", None), "observer"):
                    plugin.guard.observer = self._called  # type: ignore[attr-defined]
                if isinstance(plugin, DefaultPreemption):
                    plugin.candidate_search.on_extent = self._searched
                if isinstance(plugin, DynamicResources):
                    plugin.search_times.on_timeout = self._timed_out
        self.record("config", (version, tuple(frameworks)), "")
        # A cycle that is under way ends with the profile that it began with.
        kept = {key: found for key, found in self._versions.items() if found[1] == version - 1}
        self._versions = kept | {id(each): (each, version) for each in frameworks}

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

    def decided(self, queued: QueuedPod, framework: FrameworkRunner, decision: Decision) -> None:
        """Record a decision."""
        asked = self._asked(framework, self.ties.number)
        group = None if queued.group is None else queued.group.key
        asks = _asks_extenders(framework, (queued.info,))
        self.record("decision", Decided(asked, decision, group, asks), "")

    def planned(self, task: GroupTask, plan: GroupPlan, *, preempts: bool) -> None:
        """Record a plan for a group."""
        asked = self._asked(task.framework, self.ties.number_of(str(task.rules.key)))
        asks = _asks_extenders(task.framework, task.members)
        budget = task.budget
        is_late = budget.was_short
        if is_late and not asks:
            asked.reads.append(_spent(budget.spent()))
        self._planned_by = budget.checks, budget.questions
        self.record("plan", Planned(asked, task, plan, is_late, preempts, asks), "")
        if preempts:
            self.reads = []

    def found_victims(self, task: GroupTask, found: GroupVictims | Status) -> None:
        """Record the victims for the group that was planned last."""
        reads, budget = self._taken_reads(), task.budget
        if budget.was_short:
            reads.append(_spent(budget.spent(*self._planned_by)))
        self.record("victims", (reads, found, budget.was_short), "")

    def _asked(self, framework: FrameworkRunner, number: int) -> Asked:
        _, version = self._versions.get(id(framework), (None, 0))
        return Asked(number, self._next_start, self._now_s, version, self._taken_reads())

    def _taken_reads(self) -> list[list[Any]]:
        taken, self.reads = self.reads or [], None
        for (plugin, point), outcomes in self._calls.items():
            if outcomes != [None]:
                why = outcomes[0] if len(outcomes) == 1 else None
                taken.append([OFF, plugin, point, why])
        self._calls = {}
        return taken

    def _searched(self, extent: Extent) -> None:
        """Take note of the nodes that a search for candidates has looked at."""
        if self.reads is not None and extent != EVERYTHING and get_ident() == self.thread:
            self.reads.append([SEARCHED, *extent])

    def _timed_out(self, pod_uid: str, node_name: str) -> None:
        """Take note of a search for devices that took too long."""
        if self.reads is not None and get_ident() == self.thread:
            self.reads.append([TIMEOUT, pod_uid, node_name])

    def _called(self, plugin: str, point: str, why: str | None) -> None:
        """Take note of a call into a user's plugin, and whether it is made."""
        if self.reads is not None and get_ident() == self.thread:
            outcomes = self._calls.setdefault((plugin, point), [])
            if why not in outcomes:
                outcomes.append(why)


def _spent(spent: Spent) -> list[Any]:
    return [SPENT, spent.limit_s, spent.ran_out_at, [list(each) for each in spent.late_at.items()]]


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


class _ListenedRates:
    def __init__(self, real: ForeignRates, journal: Journal) -> None:
        self._real = real
        self._journal = journal

    def is_any(self) -> bool:
        return self._real.is_any()

    def rates(self, node_names: Sequence[str]) -> Sequence[float]:
        found = self._real.rates(node_names)
        if self._journal.reads is not None:
            by_node = dict(zip(node_names, found, strict=True))
            self._journal.reads.append(["foreign", by_node])
        return found

    def sizes(self) -> Sizes:
        found = self._real.sizes()
        if found and self._journal.reads is not None:
            self._journal.reads.append([RESERVE, found])
        return found


class _ListenedMetrics:
    def __init__(self, real: Any, journal: Journal) -> None:
        self._real = real
        self._journal = journal

    def latest(self, name: str) -> Any:
        found = self._real.latest(name)
        self._journal.reading(name, found)
        return found
