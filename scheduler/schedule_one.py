"""The scheduling loop: pop, look, decide, assume, hand over.

Source: pkg/scheduler/schedule_one.go, ScheduleOne (1.36).
"""

from __future__ import annotations

from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from cache.scheduler_cache import CacheConflictError
from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code, Status, failure
from scheduler.binding_cycle import BindingJob
from scheduler.cycle_watch import DEFAULT_SLOW_CYCLE_S, CycleWatch
from scheduler.failure_handler import Failure
from scheduler.rehearsal import rehearse
from scheduler.shadow import Shadows
from scheduler.vital import VitalThread, no_death
from scheduler.waiting_pods import WaitingPod

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from cache.pod_info import PodInfo
    from cache.scheduler_cache import SchedulerCache
    from plugins.framework.cycle_state import Mark
    from scheduler.binding_cycle import BindingCycles
    from scheduler.decision import Decision
    from scheduler.event_recorder import EventRecorder
    from scheduler.failure_handler import FailureHandler
    from scheduler.framework_runner import FrameworkRunner
    from scheduler.metrics import Metrics
    from scheduler.profiles import Profiles
    from scheduler.queueing import QueuedPod, SchedulingQueue
    from scheduler.scheduling_cycle import SchedulingCycle
    from scheduler.vital import OnDeath
    from scheduler.waiting_pods import WaitingPods

MAX_CYCLE_S: Final = 300.0
"""A cycle that takes longer does not come back: then the process had better start again. The
longest ones that did took seconds."""

log = structlog.get_logger(__name__)


class _CycleUnderWay(NamedTuple):
    """The cycle that the scheduling thread is in: one value, so that any thread may read it."""

    began: float
    info: PodInfo


class SchedulingLoop:
    """Runs one scheduling cycle after another on its own thread.

    Parameters
    ----------
    slow_cycle_s
        A cycle that takes longer is counted and told of with all that was measured; 0 for never.
    shadows
        Policies that look on; None for none.
    on_ready
        Called on the loop when the first pod can be decided about.
    cpu_clock
        CPU seconds of the scheduling thread, by which the budgets of attempts are measured.
    on_death
        Called on the thread when that ends without being told to.

    Notes
    -----
    *Concurrency*: :meth:`run` is the scheduling thread; nothing interleaves inside a cycle.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        cache: SchedulerCache,
        queue: SchedulingQueue,
        profiles: Profiles,
        cycle: SchedulingCycle,
        bindings: BindingCycles,
        waiting_pods: WaitingPods,
        failures: FailureHandler,
        recorder: EventRecorder,
        metrics: Metrics,
        slow_cycle_s: float = DEFAULT_SLOW_CYCLE_S,
        shadows: Shadows | None = None,
        on_ready: Callable[[], None] | None = None,
        cpu_clock: Callable[[], float] = thread_time,
        on_death: OnDeath = no_death,
    ) -> None:
        self._cpu_clock = cpu_clock
        self._on_ready = on_ready
        self._shadows = shadows or Shadows()
        self._watch = CycleWatch(metrics.cycles, slow_cycle_s)
        self._loop = loop
        self._cache = cache
        self._queue = queue
        self._costly_s = queue.costly_s
        self._profiles = profiles
        self._profiles_version = profiles.version
        self._cycle = cycle
        self._bindings = bindings
        self._waiting_pods = waiting_pods
        self._failures = failures
        self._recorder = recorder
        self._metrics = metrics
        self._under_way: _CycleUnderWay | None = None
        # What is to be undone if the cycle fails: nothing, a pod that is assumed, or nothing any
        # more, for somebody else has it.
        self._assumed: BindingJob | None = None
        self._is_handed_over = False
        self._thread = VitalThread(self.run, "scheduling", on_death)

    def start(self) -> None:
        """Start the thread."""
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
            self._loop.call_soon_threadsafe(self._on_ready)
        while True:
            queued = self._queue.pop()
            if queued is None:
                return
            self.attempt(queued)

    def attempt(self, queued: QueuedPod) -> None:
        """Run one cycle, and take back what it did if it ends in the middle.

        Raises
        ------
        Exception
            When it cannot be taken back. What the cache and the queue hold is in doubt then, and
            the thread ends, and with it the process.
        """
        try:
            self.schedule_one(queued)
        except (Exception, AttemptBudgetExceededError) as error:
            # No budget is looked at after the decision; if one is, it is no reason to end.
            log.exception("scheduling cycle failed", pod=queued.info.key)
            self._failed(queued, error)

    def _failed(self, queued: QueuedPod, error: BaseException) -> None:
        """Take back what a cycle did that ended in the middle: by a mistake of ours."""
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
        self._assumed, self._is_handed_over = None, False
        framework = self._profiles.get(info.pod.spec.scheduler_name)
        if framework is None or self._skip(queued):
            self._queue.done(info.uid)
            if framework is None and self._profiles.is_ours(info.pod):
                # A policy has come since, and found the pod in flight. Out of it, it is not lost.
                self._queue.add(info)
            return
        if self._profiles.version != self._profiles_version:
            self._profiles_version = self._profiles.version
            self._cycle.retain_profiles(self._profiles)
        began = perf_counter()
        self._under_way = _CycleUnderWay(began, info)
        update = self._cache.update_snapshot(self._cycle.snapshot)
        budget = AttemptBudget(queued.allowance_s, self._cpu_clock)
        state = CycleState(budget)
        marks: list[Mark] = []
        state.marks = marks
        deciding = perf_counter()
        decision = self._cycle.decide(framework, state, info)
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
        self._watch.end(decision, marks, began, deciding, committing)
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
        if self._shadows.active is not None:
            # The snapshot is still as the decision saw it: the next cycle brings it up to date.
            self._shadows.observe(self._cycle.snapshot, framework, decision)

    def _settle_budget(self, queued: QueuedPod, decision: Decision, budget: AttemptBudget) -> None:
        """Have the pod's namespace pay for an attempt that was not an ordinary one."""
        over = decision.is_over_budget
        self._queue.settle_budget(queued, decision.used_s if over else budget.used_s(), over=over)
        if over:
            self._metrics.over_budget(queued.info.namespace)

    def _skip(self, queued: QueuedPod) -> bool:
        """Tell whether the pod needs no cycle: it is being deleted, or assumed already."""
        info = queued.info
        if info.is_terminating:
            note = f"skip schedule deleting pod: {info.key}"
            self._recorder.event(info.pod, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self._cache.is_assumed_pod(info.uid)

    def _assume(
        self, queued: QueuedPod, decision: Decision, state: CycleState, framework: FrameworkRunner
    ) -> BindingJob | None:
        """Take the node for the pod; return what is left to do, None when it came to nothing."""
        info, node_name = decision.info, decision.node_name
        try:
            self._cache.assume_pod(info, node_name)
        except CacheConflictError as error:
            log.warning("pod is placed already", pod=info.key, error=str(error))
            self._queue.done(info.uid)
            return None
        job = self._assumed = BindingJob(queued, decision, state, framework)
        # What is assumed counts on its node already.
        self._queue.nominator.delete(info.uid)
        status = framework.run_reserve(state, info, node_name)
        waits: dict[str, float] = {}
        if status.is_success:
            status, waits = framework.run_permit(state, info, node_name)
        if status.code is Code.WAIT:
            job.waiting = WaitingPod(info, node_name, waits, self._loop)
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
