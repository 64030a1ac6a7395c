"""From an assumed pod to a bound one, or back.

    wait on permit -> pre-bind -> bind -> finish_binding -> post-bind
    any failure    -> undo: unreserve, forget, wake waiting pods, failure handler

Source: pkg/scheduler/schedule_one.go, bindingCycle and handleBindingCycleError (1.36).
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from cache.pod_info import on_node
from plugins.framework.cluster_events import ASSIGNED_POD_DELETE
from plugins.framework.status import SUCCESS, Code, Status
from scheduler.binder import BoundElsewhereError, PodGoneError
from scheduler.failure_handler import Failure
from scheduler.handover import LoopInbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.scheduler_cache import SchedulerCache
    from plugins.framework.cycle_state import CycleState
    from scheduler.decision import Decision
    from scheduler.event_recorder import EventRecorder
    from scheduler.extenders import ExtenderChain
    from scheduler.failure_handler import FailureHandler
    from scheduler.framework_runner import FrameworkRunner
    from scheduler.metrics import Metrics
    from scheduler.queueing import QueuedPod, SchedulingQueue
    from scheduler.waiting_pods import WaitingPod, WaitingPods

MAX_BINDING = 512
"""Bindings under way at one time. Beyond it the scheduling thread waits: decisions made on top of
more unanswered ones than that are worth less, and each holds room on a node."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class BindingJob:
    """One assumed pod on its way."""

    queued: QueuedPod
    decision: Decision
    state: CycleState
    framework: FrameworkRunner
    waiting: WaitingPod | None = None


class BindingCycles:
    """All bindings under way.

    Parameters
    ----------
    clock
        Seconds of a monotonic clock.
    extenders
        Go before the bind plugins; None where there are none.

    Notes
    -----
    *Concurrency*: :meth:`start` and :meth:`undo` from the scheduling thread, the rest on the I/O
    loop. A job belongs to the loop once started.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        cache: SchedulerCache,
        queue: SchedulingQueue,
        waiting_pods: WaitingPods,
        failures: FailureHandler,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
        extenders: ExtenderChain | None = None,
    ) -> None:
        self._extenders = extenders
        self._cache = cache
        self._queue = queue
        self._waiting_pods = waiting_pods
        self._failures = failures
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._slots = threading.Semaphore(MAX_BINDING)
        self._inbox: LoopInbox[BindingJob] = LoopInbox(loop, self._receive)
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = 0
        self._ended = 0

    def start(self, job: BindingJob) -> None:
        """Hand an assumed pod over. Waits while too many bindings are under way."""
        self._slots.acquire()
        self._started += 1
        self._inbox.put(job)

    @property
    def in_flight(self) -> int:
        """How many bindings are under way."""
        return self._started - self._ended

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

    def _receive(self, job: BindingJob) -> None:
        task = self._loop.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, job: BindingJob) -> None:
        try:
            status = await self._bind(job)
            if status.is_success:
                self._bound(job)
            else:
                self.undo(job, status)
        except Exception:
            # Reached only by a mistake of ours; the pod must still end in exactly one place.
            log.exception("binding cycle failed", pod=job.decision.info.key)
            self._queue.done(job.decision.info.uid)
        finally:
            self._ended += 1
            self._slots.release()

    async def _bind(self, job: BindingJob) -> Status:
        info, node_name = job.decision.info, job.decision.node_name
        ahead = job.framework.run_pre_bind_pre_flights(job.state, info, node_name)
        if ahead.code is Code.ERROR:
            self._waiting_pods.remove(info.uid)
            return ahead
        status = SUCCESS
        if job.waiting is not None:
            try:
                status = await job.waiting.wait()
            finally:
                self._waiting_pods.remove(info.uid)
        if status.is_success and ahead.is_success:
            status = await job.framework.run_pre_bind(job.state, info, node_name)
        if not status.is_success:
            return status
        if self._extenders is not None:
            bound = await self._extenders.bind(info, node_name)
            if bound is not None:
                return bound
        return await job.framework.run_bind(job.state, info, node_name)

    def _bound(self, job: BindingJob) -> None:
        decision = job.decision
        info = decision.info
        now_s = self._clock()
        self._cache.finish_binding(info, now_s)
        self._queue.done(info.uid)
        for failed in job.framework.run_post_bind(job.state, info, decision.node_name):
            log.error("post-bind failed", pod=info.key, error=failed.message)
        self._metrics.bound(job.queued, decision, now_s)
        self._recorder.event(
            info.pod,
            "Normal",
            "Scheduled",
            "Binding",
            f"Successfully assigned {info.key} to {decision.node_name}",
        )
        log.debug(
            "pod bound",
            pod=info.key,
            node=decision.node_name,
            cycle=decision.cycle,
            evaluated=decision.evaluated_nodes,
            feasible=decision.feasible_nodes,
        )

    def undo(self, job: BindingJob, status: Status) -> None:
        """Take back everything that was done for a pod since it was assumed, and requeue it.

        The only undo there is: used when Reserve or Permit refuse, and when the binding fails.
        """
        info = job.decision.info
        for failed in job.framework.run_unreserve(job.state, info, job.decision.node_name):
            log.error("unreserve failed", pod=info.key, error=failed.message)
        freed = self._cache.forget_pod(info)
        error = status.error
        if isinstance(error, PodGoneError | BoundElsewhereError):
            if isinstance(error, BoundElsewhereError):
                self._metrics.bind_conflict()
                log.warning("pod was bound by another scheduler", pod=info.key, error=str(error))
            self._queue.done(info.uid)
        else:
            self._failures.handle(job.queued, Failure.of_status(job.decision.profile, status))
        if freed:
            left = on_node(info.pod, job.decision.node_name)
            self._queue.move_all(ASSIGNED_POD_DELETE, left, None)
