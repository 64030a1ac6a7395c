"""What the scheduling thread tells a journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from plugins.framework.status import Status
    from scheduler.cycle.scheduling_cycle import SchedulingCycle
    from scheduler.decision.decision import Decision
    from scheduler.pod_groups.plan import GroupPlan, GroupTask
    from scheduler.pod_groups.preemption import GroupVictims
    from scheduler.queueing import QueuedPod
    from scheduler.runtime.framework_runner import FrameworkRunner


class DecisionJournal(Protocol):
    """Records what was decided, and from what.

    *Concurrency*: scheduling thread. No method waits, raises, or takes more than microseconds.
    """

    def between_cycles(self, cycle: SchedulingCycle) -> None:
        """Take note of the order of the nodes, if a new file is to begin."""
        ...

    def begin(self, cycle: SchedulingCycle) -> None:
        """Begin a decision: the snapshot is up to date."""
        ...

    def decided(self, queued: QueuedPod, framework: FrameworkRunner, decision: Decision) -> None:
        """Record a decision, before anything is done about it."""
        ...

    def planned(self, task: GroupTask, plan: GroupPlan, *, preempts: bool) -> None:
        """Record what was found for a group; ``preempts`` tells whether victims follow."""
        ...

    def found_victims(self, task: GroupTask, found: GroupVictims | Status) -> None:
        """Record the victims for the group that was planned last."""
        ...
