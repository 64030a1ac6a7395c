"""Queues for tests, with everything that they do not care for left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugins.framework.status import SUCCESS
from scheduler.queueing import (
    DEFAULT_ATTEMPT_BUDGET_S,
    BudgetAccounts,
    QueueLimits,
    QueueListeners,
    QueueRules,
    SchedulingQueue,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_RULES = ("sort_key", "pre_enqueue", "registrations", "account", "standing")


def make_queue(
    clock: Callable[[], float],
    *,
    on_incoming: Callable[[str, str], None] | None = None,
    wake_later: Callable[[], None] | None = None,
    attempt_budget_s: float = DEFAULT_ATTEMPT_BUDGET_S,
    cpu_clock: Callable[[], float] | None = None,
    **more: Any,
) -> SchedulingQueue:
    """Return a queue; ``more`` are fields of :class:`QueueRules` and :class:`QueueLimits`."""
    rules: dict[str, Any] = {
        "sort_key": lambda made, since_s: (since_s,),
        "pre_enqueue": lambda made: SUCCESS,
        "registrations": lambda profile: {},
    }
    rules |= {name: more.pop(name) for name in _RULES if name in more}
    wake = None if wake_later is None else lambda judge: wake_later()
    return SchedulingQueue(
        QueueRules(**rules),
        clock,
        limits=QueueLimits(**more),
        accounts=BudgetAccounts(attempt_budget_s, cpu_clock),
        listeners=QueueListeners(on_incoming, wake),
    )
