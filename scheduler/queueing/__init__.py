"""The scheduling queue: the pods that wait for an attempt, and why each of them waits.

It covers order, backoff, gates, queueing hints and the budget of attempts.
:mod:`scheduler.event_handlers` decides which pods enter the queue, :mod:`scheduler.cycle` runs the
attempts.
"""

from __future__ import annotations

from scheduler.queueing.budget_accounts import DEFAULT_LIMIT_S as DEFAULT_ATTEMPT_BUDGET_S
from scheduler.queueing.budget_accounts import BudgetAccounts
from scheduler.queueing.group_entries import GROUP_GATE, Refusers
from scheduler.queueing.nominator import Nominator
from scheduler.queueing.pending_pods import PendingPod, PendingPods, QueueCounts, WaitingGroup
from scheduler.queueing.queue_settings import QueueLimits, QueueListeners, QueueRules
from scheduler.queueing.queue_states import QueueState
from scheduler.queueing.queued_group import QueuedGroup, entry_uid
from scheduler.queueing.queued_pod import QueuedPod
from scheduler.queueing.scheduling_queue import SchedulingQueue

__all__ = [
    "DEFAULT_ATTEMPT_BUDGET_S",
    "GROUP_GATE",
    "BudgetAccounts",
    "Nominator",
    "PendingPod",
    "PendingPods",
    "QueueCounts",
    "QueueLimits",
    "QueueListeners",
    "QueueRules",
    "QueueState",
    "QueuedGroup",
    "QueuedPod",
    "Refusers",
    "SchedulingQueue",
    "WaitingGroup",
    "entry_uid",
]
