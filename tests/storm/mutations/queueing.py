"""Berth without what brings each pod that waits back to its next attempt, at the right time."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from scheduler.cycle.failure_handler import FailureHandler
from scheduler.queueing.backoff_pods import BackoffPods
from scheduler.queueing.scheduling_queue import SchedulingQueue
from tests.storm.mutations.registry import mutation, variant


@mutation(SchedulingQueue, "move_all")
def _events_wake_nobody(real: Any) -> Any:
    """the events that wake refused pods"""
    return lambda self, *args, **more: 0


variant(
    "events-pass-pods-in-flight-by",
    "the events during an attempt, judged at its end",
    extra="incidents",
)
variant("gates-are-not-asked", "the scheduling gate")


@mutation(BackoffPods, "end_s", theme="refusals")
def _failures_do_not_pause(real: Any) -> Any:
    """the pause after a failed attempt"""
    return lambda self, queued: 0.0


@mutation(SchedulingQueue, "done")
def _attempts_do_not_end(real: Any) -> Any:
    """the end of an attempt"""
    return lambda self, uid: None


variant("skipped-pod-stays-in-flight", "the end of an attempt that is skipped", extra="incidents")
variant(
    "failed-assume-leaves-the-attempt-open",
    "the end of an attempt that cannot be assumed",
    "answers",
)
variant(
    "failure-of-a-deleted-pod-is-passed-over", "the end of an attempt whose pod is gone", "names"
)
variant("failure-takes-the-uid-of-the-successor", "the UID at the end of an attempt", "names")
variant(
    "update-of-a-pod-in-flight-is-an-addition",
    "the look whether a pod is in flight",
    extra="incidents",
)


@mutation(SchedulingQueue, "delete")
def _deleted_pods_stay_queued(real: Any) -> Any:
    """the removal of a deleted pod from the queue"""
    return lambda self, uid: None


@mutation(FailureHandler, "_requeue", theme="answers")
def _pods_that_somebody_bound_are_queued(real: Any) -> Any:
    """the look whether a pod that failed is gone or has a node by now"""

    def requeue(self: Any, queued: Any, failure: Any) -> Any:
        pod = queued.info.pod
        with patch.object(self, "_live_pod", lambda namespace, name: pod):
            return real(self, queued, failure)

    return requeue
