"""The scheduling loop: pop a pod, update the snapshot, decide, assume, start its binding.

*Source*: pkg/scheduler/schedule_one.go, ScheduleOne (1.36).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import structlog

from cache.scheduler_cache import CacheConflictError
from cache.value import Value
from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code, Status, failure
from scheduler.cycle.binding_cycle import BindingJob
from scheduler.cycle.cycle_watch import DEFAULT_SLOW_CYCLE_S, CycleWatch
from scheduler.cycle.failure_handler import Failure
from scheduler.cycle.late_members import decide_late_member
from scheduler.cycle.rehearsal import read_ahead, rehearse
from scheduler.queueing import QueuedGroup
from scheduler.runtime.waiting_pods import WaitingPod

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.cycle_state import Mark
    from scheduler.cycle.binding_cycle import BindingCycles
    from scheduler.cycle.decision_journal import DecisionJournal
    from scheduler.cycle.failure_handler import FailureHandler
    from scheduler.cycle.group_cycle import GroupCycles
    from scheduler.cycle.reports import Reports
    from scheduler.cycle.scheduling_cycle import SchedulingCycle
    from scheduler.decision.decision import Decision
    from scheduler.process.ports import Ports
    from scheduler.queueing import QueuedPod
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.known_pods import KnownPods
    from scheduler.runtime.profile_map import Profiles

READ_AHEAD_EVERY_S: Final = 1.0
"""How long no pod is active before plugins prepare data for coming pods, and again after that."""

READ_AHEAD_S: Final = 0.02
"""CPU seconds for which a pod that becomes active meanwhile may have to wait."""

MAX_CYCLE_S: Final = 300.0
"""A cycle that takes longer does not come back: then the process had better start again. The
longest ones that did took seconds."""

log = structlog.get_logger(__name__)


class _CycleUnderWay(NamedTuple):
    """The current cycle of the scheduling thread: one value, so that any thread may read it."""

    began: float
    info: PodInfo


class DecisionObserver(Protocol):
    """Observe decisions after they were executed, on the scheduling thread."""

    @property
    def active(self) -> object | None:
        """Return None if nothing observes: then the loop pays for one comparison."""

    def observe(self, snapshot: Snapshot, live: FrameworkRunner, decision: Decision) -> None:
        """Look at a decision and at the snapshot that it was made from; never raises."""
        ...


class Deciders(Value, frozen=True):
    """The objects that make and observe decisions.

    Attributes
    ----------
    profiles
        The profile for each schedulerName.
    cycle
        Makes the decision.
    observer
        Observes decisions; None for no observer.
    groups
        Tries groups of pods; None where no pod is taken for a member of one.
    journal
        Records decisions; None for no journal.
    """

    profiles: Profiles
    cycle: SchedulingCycle
    observer: DecisionObserver | None = None
    groups: GroupCycles | None = None
    journal: DecisionJournal | None = None


def _no_one(_pod: Pod, _node_name: str) -> None:
    """Do nothing."""


class Outcomes(Value, frozen=True):
    """The handlers of decisions: pods with a node are bound, all others return to the queue.

    Attributes
    ----------
    bindings
        Binds pods.
    failures
        Returns pods to the queue.
    assumed
        Called on the scheduling thread with each pod that was assumed, and the name of its node.
    """

    bindings: BindingCycles
    failures: FailureHandler
    assumed: Callable[[Pod, str], None] = _no_one


class SchedulingLoop:
    """Run one scheduling cycle after another on its own thread.

    Parameters
    ----------
    ports
        The ports; the CPU seconds of their clock measure the attempts.
    slow_cycle_s
        A longer cycle is counted and logged with all its measurements; 0 disables this.

    Notes
    -----
    *Concurrency*: :meth:`run` is the scheduling thread; nothing interleaves inside a cycle.
    """

    def __init__(
        self,
        ports: Ports[object],
        pods: KnownPods,
        deciders: Deciders,
        outcomes: Outcomes,
        reports: Reports,
        slow_cycle_s: float = DEFAULT_SLOW_CYCLE_S,
    ) -> None:
        self._executor = ports.executor
        self._clock = ports.clock
        self._observer = deciders.observer
        self._watch = CycleWatch(reports.metrics.cycles, slow_cycle_s, reports.traces)
        self._cache = pods.cache
        self._queue = pods.queue
        self._costly_s = pods.queue.costly_s
        self._profiles = deciders.profiles
        self._profiles_version = deciders.profiles.version
        self._cycle = deciders.cycle
        self._group_cycles = deciders.groups
        self._journal = deciders.journal
        self._groups = pods.groups
        self._bindings = outcomes.bindings
        self._waiting_pods = pods.waiting
        self._failures = outcomes.failures
        self._on_assumed = outcomes.assumed
        self._recorder = reports.events
        self._metrics = reports.metrics
        self._under_way: _CycleUnderWay | None = None
        # What is to be undone if the cycle fails: nothing, a pod that is assumed, or nothing any
        # more, for somebody else has it.
        self._assumed: BindingJob | None = None
        self._is_handed_over = False
        self._on_ready: Callable[[], None] | None = None
        self._thread = ports.executor.thread(self.run, "scheduling")

    def start(self, on_ready: Callable[[], None] | None = None) -> None:
        """Start the thread.

        Parameters
        ----------
        on_ready
            Called on the loop when the first pod can be decided about.
        """
        self._on_ready = on_ready
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread, which ends once the queue is closed; return whether it did."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def cycle_under_way_s(self) -> float:
        """How long the cycle takes that is under way, in seconds; 0 when none is. Any thread."""
        under_way = self._under_way
        return perf_counter() - under_way.began if under_way else 0.0

    @property
    def pod_under_way(self) -> str:
        """The pod whose cycle is under way, as namespace/name; empty when none is. Any thread."""
        under_way = self._under_way
        return under_way.info.key if under_way else ""

    def problem(self) -> str | None:
        """Return why nothing is scheduled any more; None while all is well. Any thread."""
        if self._thread.ident is not None and not self._thread.is_alive():
            return "the scheduling thread has ended"
        under_way_s = self.cycle_under_way_s
        if under_way_s > MAX_CYCLE_S:
            return f"one scheduling cycle has been under way for {under_way_s:.0f} s"
        return None

    def run(self) -> None:
        """Schedule pods until the queue is closed. One bad pod never stops the loop."""
        rehearse(self._cache, self._cycle, self._profiles)
        if self._on_ready is not None:
            self._executor.call_on_loop(self._on_ready)
        is_left = False
        while True:
            queued = self._queue.pop(0.0 if is_left else READ_AHEAD_EVERY_S)
            if queued is not None:
                self.attempt(queued)
            elif self._queue.is_closed:
                return
            else:
                if self._journal is not None:
                    self._journal.between_cycles(self._cycle)
                is_left = read_ahead(self._cache, self._cycle, self._profiles, READ_AHEAD_S)

    def attempt(self, queued: QueuedPod) -> None:
        """Run one cycle, and undo its effects if an exception ends it.

        Raises
        ------
        Exception
            When it cannot be taken back. What the cache and the queue hold is in doubt then, and
            the thread ends, and with it the process.
        """
        if self._journal is not None:
            self._journal.between_cycles(self._cycle)
        if isinstance(queued, QueuedGroup):
            self._attempt_group(queued)
            return
        try:
            self.schedule_one(queued)
        except (Exception, AttemptBudgetExceededError) as error:
            # No budget is looked at after the decision; if one is, it is no reason to end.
            log.exception("scheduling cycle failed", pod=queued.info.key)
            self._failed(queued, error)

    def _attempt_group(self, entry: QueuedGroup) -> None:
        """Run one cycle of a group, and undo its effects if an exception ends it."""
        if self._group_cycles is None:
            raise LookupError(f"nobody tries groups: {entry.key}")
        self._drop_unused_profiles()
        self._under_way = _CycleUnderWay(perf_counter(), entry.info)
        try:
            framework = self._profiles.get(entry.info.pod.spec.scheduler_name)
            self._group_cycles.attempt(entry, framework)
        except Exception as error:
            log.exception("group cycle failed", group=str(entry.key))
            self._group_cycles.failed(entry, error)
        finally:
            self._under_way = None

    def _drop_unused_profiles(self) -> None:
        if self._profiles.version != self._profiles_version:
            self._profiles_version = self._profiles.version
            self._cycle.retain_profiles(self._profiles)

    def _failed(self, queued: QueuedPod, error: BaseException) -> None:
        """Undo the effects of a cycle that an internal error ended."""
        self._under_way = None
        status = failure(error, "scheduling")
        if self._is_handed_over:
            return
        if self._assumed is not None:
            self._waiting_pods.remove(queued.info.uid)
            self._bindings.undo(self._assumed, status)
        else:
            name = queued.info.pod.spec.scheduler_name
            self._failures.handle(queued, Failure.of_status(name, status))

    def schedule_one(self, queued: QueuedPod) -> None:
        """Run one cycle: the pod ends in exactly one of bound, queued, deleted."""
        info = queued.info
        # First of all: the profile that decides was in force at some time of the cycle.
        began = perf_counter()
        self._assumed, self._is_handed_over = None, False
        framework = self._profiles.get(info.pod.spec.scheduler_name)
        if framework is None or self._skip(queued):
            self._queue.done(info.uid)
            if framework is None and self._profiles.is_ours(info.pod):
                # A policy has come since, and found the pod in flight. Out of it, it is not lost.
                self._queue.add(info)
            return
        self._drop_unused_profiles()
        self._under_way = _CycleUnderWay(began, info)
        update = self._cache.update_snapshot(self._cycle.snapshot)
        self._queue.nominator.freeze()
        budget = AttemptBudget(queued.allowance_s, self._clock.thread_cpu)
        state = CycleState(budget)
        marks: list[Mark] = []
        state.marks = marks
        deciding = perf_counter()
        if self._journal is not None:
            self._journal.begin(self._cycle)
        decision = self._decide(framework, state, queued)
        if self._journal is not None:
            self._journal.decided(queued, framework, decision)
        committing = perf_counter()
        self._metrics.decided(decision, update)
        job: BindingJob | None = None
        if queued.prepaid_s or decision.is_over_budget or budget.has_used(self._costly_s):
            self._settle_budget(queued, decision, budget)
        if self._queue.shares_attempts:
            self._queue.charge(queued, budget.used_s() or perf_counter() - began)
        if decision.is_placed:
            job = self._assume(queued, decision, state, framework)
        else:
            self._failures.handle(queued, Failure.of_decision(decision))
        times = (began, deciding, committing)
        self._watch.end(queued, decision, marks, times, is_last=job is None)
        log.debug(
            "cycle",
            pod=info.key,
            cycle=decision.cycle,
            policy=decision.policy.text,
            node=decision.node_name,
            duration_s=perf_counter() - began,
        )
        # The binding may wait here for others to be bound: that is not the cycle's time.
        self._under_way = None
        if job is not None:
            self._bindings.start(job)
            self._is_handed_over = True
        if self._observer is not None and self._observer.active is not None:
            # The snapshot is still as the decision saw it: the next cycle brings it up to date.
            self._observer.observe(self._cycle.snapshot, framework, decision)

    def _decide(self, framework: FrameworkRunner, state: CycleState, queued: QueuedPod) -> Decision:
        info, domain = queued.info, None
        if queued.group is not None and self._group_cycles is not None:
            domain = self._group_cycles.domain_of(queued.group.key)
        if domain is None:
            return self._cycle.decide(framework, state, info)
        return decide_late_member(self._cycle, framework, state, info, domain)

    def _settle_budget(self, queued: QueuedPod, decision: Decision, budget: AttemptBudget) -> None:
        """Have the pod's namespace pay for an attempt that was not an ordinary one."""
        over = decision.is_over_budget
        self._queue.settle_budget(queued, decision.used_s if over else budget.used_s(), over=over)
        if over:
            self._metrics.over_budget(queued.info.namespace)

    def _skip(self, queued: QueuedPod) -> bool:
        """Return whether the pod needs no cycle: it is being deleted, or assumed already."""
        info = queued.info
        if info.is_terminating:
            note = f"skip schedule deleting pod: {info.key}"
            self._recorder.event(info.pod, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self._cache.is_assumed_pod(info.uid)

    def _assume(
        self, queued: QueuedPod, decision: Decision, state: CycleState, framework: FrameworkRunner
    ) -> BindingJob | None:
        """Assume the pod on its node; return the binding job, or None if that failed."""
        info, node_name = decision.info, decision.node_name
        try:
            self._cache.assume_pod(info, node_name)
        except CacheConflictError as error:
            log.warning("pod is placed already", pod=info.key, error=str(error))
            self._queue.done(info.uid)
            return None
        self._on_assumed(info.pod, node_name)
        if queued.group is not None:
            self._groups.assume(queued.group.key, (info.uid,))
        job = self._assumed = BindingJob(queued, decision, state, framework)
        # What is assumed counts on its node already.
        self._queue.nominator.delete(info.uid)
        status = framework.run_reserve(state, info, node_name)
        waits: dict[str, float] = {}
        if status.is_success and framework.has_permits:
            status, waits = framework.run_permit(state, info, node_name)
        if status.code is Code.WAIT:
            executor, clock = self._executor, self._clock.monotonic
            job.waiting = WaitingPod(info, node_name, waits, executor.loop, clock, executor.lock)
            self._waiting_pods.add(job.waiting)
        elif not status.is_success:
            self._bindings.undo(job, _as_failure(status))
            self._assumed = None
            return None
        # From here on the state belongs to the binding cycle, which measures for itself.
        state.marks = None
        return job


def _as_failure(status: Status) -> Status:
    """Turn a code that has no meaning at Reserve or Permit into an Error."""
    if status.is_rejection or status.code is Code.ERROR:
        return status
    return Status(Code.ERROR, (f"{status.plugin} answered {status.code.title}",), status.plugin)
