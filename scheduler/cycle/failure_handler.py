"""Handle a failed attempt: return the pod to the queue, record Event and condition.

*Source*: pkg/scheduler/schedule_one.go, handleSchedulingFailure (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from cache.pod_info import PodInfo
from cache.resources import MalformedObjectError
from cache.value import Value
from plugins.framework.status import Code
from scheduler.decision.profile_origin import DEFAULT_ORIGIN, PolicyOrigin
from scheduler.queueing import QueueState

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from plugins.framework.status import Status
    from scheduler.cycle.reports import Reports
    from scheduler.decision.decision import Decision
    from scheduler.pools.refusals import Refusals
    from scheduler.queueing import QueuedPod, SchedulingQueue

REASON_UNSCHEDULABLE = "Unschedulable"
"""The word that autoscalers act on: only for a "no" about the pod, never for our own failure."""

REASON_SCHEDULER_ERROR = "SchedulerError"

TRIES_AT_ONCE: Final = 3
"""So often in a row a pod is tried again without a pause after others took its node. Its next
attempt sees what they did, and goes elsewhere; a pod that loses one race after another pauses, so
that it does not use the time of the others."""

log = structlog.get_logger(__name__)


class Failure(Value, frozen=True):
    """Why an attempt ended without a binding."""

    profile: str
    status: Status
    message: str
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    nominated_node_name: str | None = None
    """The node to nominate the pod for; the empty string clears a nomination, None leaves it."""
    policy: PolicyOrigin = DEFAULT_ORIGIN
    """What decided."""
    is_over_budget: bool = False
    """Whether the attempt was stopped because its budget was exceeded."""
    is_node_taken: bool = False
    """Whether others took the node between the decision and the binding."""
    only_nodes_help: bool = False
    """Whether each node was looked at and refused, and no eviction helps: other nodes may."""

    @property
    def condition_reason(self) -> str:
        """The reason of the condition ``PodScheduled``.

        ``Unschedulable`` has autoscalers buy nodes. So it is only said of a pod that other nodes
        may help: not after a failure of our own, nor where there is no verdict yet.
        """
        return REASON_UNSCHEDULABLE if self.status.is_rejection else REASON_SCHEDULER_ERROR

    @classmethod
    def of_decision(cls, decision: Decision) -> Failure:
        """Return the failure that a decision without a node stands for."""
        rejected = decision.status.is_rejection
        diagnosis = decision.diagnosis
        return cls(
            decision.profile,
            decision.status,
            decision.message(),
            diagnosis.unschedulable_plugins if rejected else frozenset(),
            diagnosis.pending_plugins if rejected else frozenset(),
            decision.nominated_node_name,
            decision.policy,
            decision.is_over_budget,
            only_nodes_help=rejected
            and diagnosis.pre_filter is None
            and not diagnosis.pending_plugins
            and not decision.nominated_node_name,
        )

    @classmethod
    def of_status(
        cls, profile: str, status: Status, policy: PolicyOrigin = DEFAULT_ORIGIN
    ) -> Failure:
        """Return the failure of a pod that had a node: at Reserve, Permit, PreBind or Bind."""
        nobody: frozenset[str] = frozenset()
        rejected = status.is_rejection and bool(status.plugin)
        refused_by = frozenset({status.plugin}) if rejected else nobody
        pends = status.code is Code.PENDING
        return cls(
            profile,
            status,
            status.message,
            nobody if pends else refused_by,
            refused_by if pends else nobody,
            "",
            policy,
        )


class FailureHandler:
    """Return a pod to the queue after a failed attempt, and report the reason.

    Parameters
    ----------
    live_pod
        Returns the latest version of a pod from the API by namespace and name, or None.
    reports
        Where failures are reported.
    clock
        Seconds of the queue's monotonic clock.
    refusals
        Receives the pods that other nodes may help; None where there are no other pools.

    Notes
    -----
    *Concurrency*: thread-safe; called from the scheduling thread and the I/O loop. It never blocks.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        live_pod: Callable[[str, str], Pod | None],
        reports: Reports,
        clock: Callable[[], float],
        refusals: Refusals | None = None,
    ) -> None:
        self._refusals = refusals
        self._queue = queue
        self._live_pod = live_pod
        self._recorder = reports.events
        self._status_writer = reports.statuses
        self._metrics = reports.metrics
        self._recent = reports.recent
        self._clock = clock

    def handle(self, queued: QueuedPod, failure: Failure) -> None:
        """Requeue the pod, unless it is deleted or bound, and report the reason of the failure.

        A pod whose attempt has ended already stays where it is. That a failure cannot be reported
        changes nothing of what becomes of the pod.
        """
        tried, popped_s, attempts = queued.info, queued.popped_s, queued.attempts
        at_once = failure.is_node_taken and queued.consecutive_errors < TRIES_AT_ONCE
        at_once = at_once and queued.group is None
        live = self._requeue(queued, failure)
        if self._refusals is not None:
            if live is not None and failure.only_nodes_help and queued.group is None:
                self._refusals.refused(tried.uid, tried.namespace, tried.name)
            else:
                self._refusals.forget(tried.uid)
        if live is not None and at_once:
            self._queue.activate((tried.uid,))
        took_s = None if popped_s is None else self._clock() - popped_s
        try:
            self._report(tried, live, took_s, failure)
            self._recent.add(
                tried.key,
                tried.uid,
                failure.profile,
                message=failure.message,
                plugins=failure.unschedulable_plugins | failure.pending_plugins,
                duration_s=took_s,
                attempts=attempts,
            )
        except Exception:
            log.exception("a failure could not be reported", pod=tried.key)

    def _requeue(self, queued: QueuedPod, failure: Failure) -> Pod | None:
        """End the attempt; return the live pod if it is tried again, else None."""
        info = queued.info
        if self._queue.state_of(info.uid) is not QueueState.IN_FLIGHT:
            return None
        live = self._live_pod(info.namespace, info.name)
        if live is None or live.metadata.uid != info.uid or live.spec.node_name:
            self._queue.done(info.uid)
            return None
        if live is not info.pod:
            try:
                queued.info = PodInfo(live)
            except MalformedObjectError as error:
                log.warning("keeping the last readable version", pod=info.key, error=str(error))
        queued.unschedulable_plugins = failure.unschedulable_plugins
        queued.pending_plugins = failure.pending_plugins
        self._queue.add_unschedulable(queued)
        if failure.nominated_node_name is not None:
            # Counts from here on, whenever the API server hears of it. No cycle comes between.
            self._queue.nominator.add(queued.info, failure.nominated_node_name)
        return live

    def _report(
        self, info: PodInfo, live: Pod | None, took_s: float | None, failure: Failure
    ) -> None:
        rejected = failure.status.is_rejection
        result = "unschedulable" if rejected or failure.is_node_taken else "error"
        self._metrics.attempt(failure.profile, result, took_s)
        about = {"pod": info.key, "policy": failure.policy.text}
        if rejected:
            log.debug("pod is unschedulable", reason=failure.message, **about)
        elif failure.is_node_taken:
            log.info("binding withheld", reason=failure.message, **about)
        elif failure.is_over_budget:
            log.warning("attempt stopped: budget exceeded", error=failure.message, **about)
        else:
            log.error("scheduling failed", error=failure.message, **about)
        if live is None:
            return
        self._recorder.event(
            live,
            "Warning",
            "FailedScheduling",
            "Scheduling",
            failure.message,
            policy=failure.policy,
        )
        self._status_writer.unscheduled(
            live, failure.condition_reason, failure.message, failure.nominated_node_name
        )
