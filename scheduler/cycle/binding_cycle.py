"""The binding cycle: from an assumed pod to a bound one, or back to the queue.

    pre-flights -> wait on permit -> pre-bind -> guard -> bind -> finish_binding -> post-bind
    any failure -> undo: unreserve, forget, wake waiting pods, failure handler
    shutdown -> a pod that waits on permit or is in pre-bind is undone without a report

*Source*: pkg/scheduler/schedule_one.go, bindingCycle and handleBindingCycleError (1.36).
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from cache.pod_group_objects import group_key
from cache.pod_info import on_node
from cache.value import MutableValue
from plugins.framework.cluster_events import ASSIGNED_POD_DELETE
from plugins.framework.status import SUCCESS, Code, Status, failure
from scheduler.api_writes.binder import BoundElsewhereError, PodGoneError
from scheduler.client.errors import ApiError, may_pass
from scheduler.cycle.bind_guard import BindingWithheldError
from scheduler.cycle.failure_handler import Failure
from scheduler.cycle.pre_bindings import PreBindings
from scheduler.process.loop_inbox import LoopInbox

if TYPE_CHECKING:
    from plugins.framework.cycle_state import CycleState, Mark
    from scheduler.api_writes.binding_slots import BindingSlots
    from scheduler.cycle.bind_guard import BindGuard
    from scheduler.cycle.failure_handler import FailureHandler
    from scheduler.cycle.gang import Gang
    from scheduler.cycle.reports import Reports
    from scheduler.decision.decision import Decision
    from scheduler.process.ports import Ports
    from scheduler.queueing import QueuedPod
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.known_pods import KnownPods
    from scheduler.runtime.waiting_pods import WaitingPod

MAX_BINDING = 128
"""Slots for bindings: twice as many as there are connections, so that none of these runs dry while
the scheduling thread wakes up. Beyond it that thread waits: decisions made on top of more
unanswered ones are worth less, each holds resources of a node, and some hundred objects that the
garbage collector looks at. A pod that waits for a plugin's leave, for its volumes or between two
attempts has none: it may wait for minutes, and for other pods."""

GANG_PAUSE_S: Final = 1.0
"""Between two attempts to bind a member of a gang, after those that a single pod has."""

log = structlog.get_logger(__name__)


class StoppedError(Exception):
    """The scheduler is shutting down, and the next one has to place the pod."""


_STOPPED: Final = Status(
    Code.ERROR, ("the scheduler is shutting down",), error=StoppedError("shutting down")
)


class BindingJob(MutableValue):
    """One assumed pod in its binding cycle."""

    queued: QueuedPod
    decision: Decision
    state: CycleState
    framework: FrameworkRunner
    waiting: WaitingPod | None = None
    is_permitted: bool = False
    """Whether no plugin holds the pod any more: later failures are not about the pod."""
    gang: Gang | None = None
    """The members of its group that were decided with it."""


class BindingCycles:
    """Run the binding cycles of all assumed pods.

    Parameters
    ----------
    failures
        Handles the pods whose binding failed.
    reports
        Report a binding, and a nomination if the binding may take some time.
    slots
        The binding slots: each binding holds one, except while it waits for something other than
        its request.
    guard
        Is asked before each binding whether it is still worth sending.

    Notes
    -----
    *Concurrency*: :meth:`start` and :meth:`undo` from the scheduling thread, the rest on the I/O
    loop. A job belongs to the loop once started.
    """

    def __init__(
        self,
        ports: Ports[object],
        pods: KnownPods,
        failures: FailureHandler,
        reports: Reports,
        slots: BindingSlots,
        guard: BindGuard,
    ) -> None:
        executor = ports.executor
        loop = executor.loop
        self._guard = guard
        self._statuses = reports.statuses
        self._pre_bindings = PreBindings(loop, executor.lock)
        self._cache = pods.cache
        self._queue = pods.queue
        self._groups = pods.groups
        self._waiting_pods = pods.waiting
        self._failures = failures
        self._recorder = reports.events
        self._metrics = reports.metrics
        self._recent = reports.recent
        self._traces = reports.traces
        self._clock = ports.clock.monotonic
        self._slots = slots
        self._inbox: LoopInbox[BindingJob] = LoopInbox(loop, self._receive)
        self._loop = loop
        self._sleep = executor.sleep
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = 0
        self._ended = 0
        self._pre_binds_no_more = False

    def start(self, job: BindingJob) -> None:
        """Start the binding of an assumed pod. Blocks while too many bindings are running."""
        self._slots.acquire(job.decision.info.uid)
        self._started += 1
        self._inbox.put(job)

    @property
    def in_flight(self) -> int:
        """How many bindings are under way."""
        return self._started - self._ended

    def turn_back(self, uid: str, plugin: str) -> bool:
        """Let go of a pod that a more important one wants to evict, if it is not bound yet.

        It is tried again after its backoff. Any thread.

        Returns
        -------
        False when the pod is not on its way, or its binding has begun.
        """
        waiting = self._waiting_pods.get(uid)
        if waiting is not None and waiting.preempt(plugin, "preempted"):
            return True
        return self._pre_bindings.cancel(uid, f"preempted by {plugin}")

    async def drain(self, timeout_s: float) -> int:
        """Wait until all bindings are settled; return how many are not when time is up."""
        deadline = self._clock() + timeout_s
        while self.in_flight and self._clock() < deadline:
            tasks = list(self._tasks)
            if tasks:
                await asyncio.wait(tasks, timeout=max(deadline - self._clock(), 0.0))
            else:
                await asyncio.sleep(0)
        return self.in_flight

    async def end(self, timeout_s: float) -> int:
        """Bring all bindings to an end, when no more are started; return how many have none.

        What is on its way to the API server is waited for. Whom a Permit plugin holds is turned
        back at once, for the pods that it may wait for are not tried any more; a PreBind has half
        of the time. A pod that is turned back so gives up what it was assumed to have, and nothing
        is said of it: to the next scheduler it is a pod nominated for the node where it was going,
        which is tried first.

        *Source*: cmd/kube-scheduler/app/server.go, Run (1.36): the context ends, and with it the
        wait on permit, PreBind and, sooner or later, the process; nominations stay.
        """
        until_s = self._clock() + timeout_s
        for waiting in self._waiting_pods.list():
            waiting.turn_back(_STOPPED)
        left = await self.drain(timeout_s / 2)
        if left:
            self._pre_binds_no_more = True
            self._pre_bindings.cancel_all(_STOPPED)
            left = await self.drain(max(until_s - self._clock(), 0.0))
        return left

    def _receive(self, job: BindingJob) -> None:
        task = self._loop.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, job: BindingJob) -> None:
        marks: list[Mark] = []
        job.state.marks, began = marks, perf_counter()
        traces = self._traces
        traced = None if traces is None else traces.binding(job.queued, job.decision)
        status = _STOPPED
        try:
            try:
                status = await self._bind(job)
            except Exception as error:
                log.exception("binding cycle failed", pod=job.decision.info.key)
                status = failure(error, "binding")
            finally:
                # Before the pod can be popped again.
                self._slots.release(job.decision.info.uid)
            if status.is_success:
                self._bound(job)
            else:
                self.undo(job, status)
        except Exception:
            # Reached only by a mistake of ours; the pod must still end in exactly one place.
            log.exception("the end of a binding cycle failed", pod=job.decision.info.key)
            self._queue.done(job.decision.info.uid)
        finally:
            self._metrics.cycles.binding(job.decision.profile, marks, began)
            if traces is not None and traced is not None:
                traces.bound(traced, marks, began, status)
            self._ended += 1

    async def _bind(self, job: BindingJob) -> Status:
        info, node_name, framework = job.decision.info, job.decision.node_name, job.framework
        ahead = framework.run_pre_bind_pre_flights(job.state, info, node_name)
        if ahead.code is Code.ERROR:
            self._waiting_pods.remove(info.uid)
            return ahead
        gang = job.gang if job.gang is not None and job.gang.waits else None
        waits = job.waiting is not None or gang is not None
        if waits or (ahead.is_success and job.state.waits_in_pre_bind):
            self._slots.release(info.uid)
            # The node is taken for longer than a moment: autoscalers should know by whom.
            # Differs: kube-scheduler nominates it for a PreBind that only writes, too.
            await self._statuses.nominate_now(info.pod, node_name)
        status = SUCCESS
        if job.waiting is not None:
            status = await self._wait_on_permit(job.waiting)
        if gang is not None:
            status = await gang.permitted(info.uid, status)
        if not status.is_success:
            return status
        job.is_permitted = True
        if ahead.is_success:
            if self._pre_binds_no_more:
                return _STOPPED
            # Volumes that are bound for a node bind their pod to it.
            status = self._guarded(job, sends=False)
            if not status.is_success:
                return status
            pre_bind = framework.run_pre_bind(job.state, info, node_name)
            status = await self._pre_bindings.run(info.uid, pre_bind)
            if not status.is_success:
                return status
        # What was written about the pod before it was assumed must not come after its binding.
        await self._statuses.quiet(info.uid)
        status = self._guarded(job)
        if not status.is_success:
            return status
        if framework.extenders is not None:
            bound = await framework.extenders.bind(info, node_name)
            if bound is not None:
                return bound
        status = await framework.run_bind(job.state, info, node_name)
        while job.gang is not None and self._is_worth_waiting(status, job.gang.until_s):
            # A gang that is partial is worse than a room that is held a little longer.
            self._slots.release(info.uid)
            await self._sleep(GANG_PAUSE_S)
            status = self._guarded(job)
            if status.is_success:
                status = await framework.run_bind(job.state, info, node_name)
        return status

    def _guarded(self, job: BindingJob, *, sends: bool = True) -> Status:
        """Ask the guard, about all members of a gang whose first binding this is."""
        info, check = job.decision.info, self._guard.check
        status = check(info) if job.gang is None else job.gang.may_bind(info, check, sends=sends)
        if sends and status.is_success:
            self._guard.sends(job.decision.node_name)
        return status

    def _is_worth_waiting(self, status: Status, until_s: float) -> bool:
        """Return whether a binding of a gang may succeed later, and there is time left."""
        error = status.error
        if self._pre_binds_no_more or self._clock() >= until_s:
            return False
        return isinstance(error, ApiError) and may_pass(error)

    async def _wait_on_permit(self, waiting: WaitingPod) -> Status:
        started_s = self._clock()
        try:
            status = await waiting.wait()
        finally:
            self._waiting_pods.remove(waiting.info.uid)
        self._metrics.permit_waited(status.code.title, self._clock() - started_s)
        return status

    def _bound(self, job: BindingJob) -> None:
        decision = job.decision
        info = decision.info
        now_s = self._clock()
        self._cache.finish_binding(info, now_s)
        self._queue.done(info.uid)
        for failed in job.framework.run_post_bind(job.state, info, decision.node_name):
            log.error("post-bind failed", pod=info.key, error=failed.message)
        self._metrics.bound(job.queued, decision, now_s)
        popped_s = job.queued.popped_s
        self._recent.add(
            info.key,
            info.uid,
            decision.profile,
            node=decision.node_name,
            score=decision.score,
            runner_up=decision.runner_up,
            duration_s=None if popped_s is None else now_s - popped_s,
            attempts=job.queued.attempts,
        )
        self._recorder.event(
            info.pod,
            "Normal",
            "Scheduled",
            "Binding",
            f"Successfully assigned {info.key} to {decision.node_name}",
            policy=decision.policy,
        )
        log.debug(
            "pod bound",
            pod=info.key,
            node=decision.node_name,
            cycle=decision.cycle,
            policy=decision.policy.text,
            evaluated=decision.evaluated_nodes,
            feasible=decision.feasible_nodes,
        )

    def undo(self, job: BindingJob, status: Status) -> None:
        """Take back everything that was done for a pod since it was assumed, and requeue it.

        The only undo there is: used when Reserve or Permit refuse, and when the binding fails.
        """
        info = job.decision.info
        key = group_key(info.pod)
        if key is not None:
            self._queue.group_undone(key)
            self._groups.forget(key, info.uid)
        for failed in job.framework.run_unreserve(job.state, info, job.decision.node_name):
            log.error("unreserve failed", pod=info.key, error=failed.message)
        freed = self._cache.forget_pod(info)
        error = status.error
        if isinstance(error, StoppedError):
            log.info("left to the next scheduler", pod=info.key, node=job.decision.node_name)
            self._queue.done(info.uid)
        elif isinstance(error, PodGoneError | BoundElsewhereError):
            if isinstance(error, BoundElsewhereError):
                self._metrics.bind_conflict()
                log.warning("pod was bound by another scheduler", pod=info.key, error=str(error))
            self._queue.done(info.uid)
        else:
            failure = Failure.of_status(job.decision.profile, status, job.decision.policy)
            if job.is_permitted:
                # No event would bring such a pod back: it is tried again after its backoff.
                nobody: frozenset[str] = frozenset()
                failure = replace(failure, unschedulable_plugins=nobody, pending_plugins=nobody)
            if isinstance(error, BindingWithheldError):
                self._metrics.binding_withheld(error.cause)
                failure = replace(failure, is_node_taken=True)
            self._failures.handle(job.queued, failure)
        if freed:
            left = on_node(info.pod, job.decision.node_name)
            self._queue.move_all(ASSIGNED_POD_DELETE, left, None)
