"""Pods that wait for a scheduling attempt, and why each of them waits."""

from __future__ import annotations

from scheduler.queueing.budget_accounts import DEFAULT_LIMIT_S as DEFAULT_ATTEMPT_BUDGET_S
from scheduler.queueing.nominator import Nominator
from scheduler.queueing.pending_pods import PendingPod, PendingPods, QueueCounts
from scheduler.queueing.queued_pod import QueuedPod
from scheduler.queueing.rooms import Room
from scheduler.queueing.scheduling_queue import SchedulingQueue

__all__ = [
    "DEFAULT_ATTEMPT_BUDGET_S",
    "Nominator",
    "PendingPod",
    "PendingPods",
    "QueueCounts",
    "QueuedPod",
    "Room",
    "SchedulingQueue",
]
