"""Put members on nodes of the snapshot, with their reservations, and take them off again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog
from msgspec.structs import replace

from cache.trial import Trial
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from scheduler.decision.decision import Diagnosis, RejectedNodes
from scheduler.pod_groups.plan import PlacedMember

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.status import Status
    from scheduler.decision.decision import Decision
    from scheduler.pod_groups.plan import GroupTask
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.judgement import Candidates, LikePods

log = structlog.get_logger(__name__)


class Cycle(Protocol):
    """Decide about one pod: :class:`scheduler.cycle.scheduling_cycle.SchedulingCycle`."""

    snapshot: Snapshot

    def decide(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        info: PodInfo,
        *,
        among: Candidates | None = None,
        like: LikePods | None = None,
        post_filters: bool = True,
    ) -> Decision:
        """Return the decision about a pod; never raises."""
        ...

    def place_on(
        self, framework: FrameworkRunner, info: PodInfo, row: int, feasible_nodes: int
    ) -> Decision:
        """Return the decision that puts a pod on a node that is known to be feasible."""
        ...

    def ties_by(self, name: str) -> AbstractContextManager[Callable[[int], int]]:
        """Let choices among equals depend on the seed and a name alone; give that choice."""
        ...


class TrialPlacements:
    """The members of one group that are on nodes of the snapshot, in the order of placement.

    Parameters
    ----------
    cycle
        Decides about single members, and holds the snapshot.
    task
        The group.

    Notes
    -----
    *Concurrency*: scheduling thread only.

    Invariant: a member in ``placed`` is in the snapshot, and reserved; no other member is.
    """

    def __init__(self, cycle: Cycle, task: GroupTask) -> None:
        self.cycle = cycle
        self.framework = task.framework
        self.budget = task.budget
        self.placed: list[PlacedMember] = []
        self.num_reserves_refused = 0
        """How often a Reserve plugin has refused what the filters accepted."""
        self._trial = Trial(cycle.snapshot)

    def __len__(self) -> int:
        return len(self.placed)

    def decide(
        self,
        info: PodInfo,
        among: Candidates | None,
        state: CycleState,
        like: LikePods | None = None,
    ) -> Decision:
        """Decide about a member and put it on its node, unless a Reserve plugin refuses that.

        Parameters
        ----------
        state
            A new one, with the budget of the group.
        like
            The members that it is like, if they were placed right before it.

        Raises
        ------
        AttemptBudgetExceededError
            When the budget of the group is used up.
        """
        decision = self.cycle.decide(
            self.framework, state, info, among=among, like=like, post_filters=False
        )
        if decision.is_over_budget:
            raise AttemptBudgetExceededError(self.budget.limit_s)
        if not decision.is_placed:
            return decision
        status = self.put(decision, state)
        return decision if status.is_success else _refused(decision, status)

    def put(self, decision: Decision, state: CycleState) -> Status:
        """Reserve a member on its node and put it there; nothing is changed after a refusal."""
        info, node_name = decision.info, decision.node_name
        try:
            status = self.framework.run_reserve(state, info, node_name)
            if status.is_success:
                self._trial.add_pod(info, node_name)
        except BaseException:
            self._unreserve(decision, state)
            raise
        if status.is_success:
            self.placed.append(PlacedMember(decision, state))
        else:
            self.num_reserves_refused += 1
            self._unreserve(decision, state)
        return status

    def undo(self, count: int = 0) -> None:
        """Take off the members that were placed last, until ``count`` are left."""
        while len(self.placed) > count:
            member = self.placed.pop()
            self._trial.undo(len(self.placed))
            self._unreserve(member.decision, member.state)

    def _unreserve(self, decision: Decision, state: CycleState) -> None:
        info, node_name = decision.info, decision.node_name
        for failed in self.framework.run_unreserve(state, info, node_name):
            log.error("unreserve failed", pod=info.key, plugin=failed.plugin, error=failed.message)


def _refused(decision: Decision, status: Status) -> Decision:
    """Return what becomes of a decision that Reserve refused."""
    rejected = (RejectedNodes(status, (decision.node_name,)),)
    diagnosis = Diagnosis(1, rejected=rejected)
    return replace(decision, status=status, node_name="", node_uid="", diagnosis=diagnosis)
