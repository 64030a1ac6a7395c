"""The snapshot without some pods, with the planner as the judge of what fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from scheduler.pod_groups.plan import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from scheduler.pod_groups.plan import GroupPlan, GroupTask


class Planner(Protocol):
    """Place the members of a group: :class:`scheduler.pod_groups.planner.GroupPlanner`."""

    def plan(self, task: GroupTask) -> GroupPlan:
        """Return where the members go; one that fits leaves them in the snapshot, reserved."""
        ...


MAX_PLANS: Final = 400
"""Questions to the room for one group."""

SHARE: Final = 0.6
"""The share of the group's budget after which no question is answered any more."""


class OutOfPlansError(Exception):
    """So many plans were made, or so much time was used, that no more choices are looked at."""


class PlannedRoom:
    """A snapshot from which pods are removed as in a trial.

    Parameters
    ----------
    snapshot
        It must not be updated from the cache before :meth:`undo`.

    Notes
    -----
    *Concurrency*: scheduling thread only. *Cost*: of a question a copy of each node from which pods
    were removed, or put back, since the last one, and a plan.
    """

    def __init__(self, snapshot: Snapshot, planner: Planner, task: GroupTask) -> None:
        self._snapshot = snapshot
        self._planner = planner
        self._task = task
        self._removed: dict[str, set[str]] = {}
        self._stale: set[str] = set()
        self._originals: dict[str, NodeInfo] = {}
        self._left = MAX_PLANS

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods."""
        for info in pods:
            self._removed.setdefault(info.node_name, set()).add(info.uid)
            self._stale.add(info.node_name)

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Add pods again."""
        for info in pods:
            self._removed.setdefault(info.node_name, set()).discard(info.uid)
            self._stale.add(info.node_name)

    def empty(self, pods: Iterable[PodInfo]) -> None:
        """Put back everything, and remove some pods."""
        self._stale.update(name for name, removed in self._removed.items() if removed)
        self._removed.clear()
        self.remove(pods)

    @property
    def is_late(self) -> bool:
        """Whether no more questions are answered."""
        budget = self._task.budget
        return self._left <= 0 or budget.has_used(SHARE * budget.limit_s)

    def fits(self) -> bool:
        """Return whether the planner places enough members now.

        Raises
        ------
        OutOfPlansError
            When that was asked too often, or takes too long.
        """
        if self.is_late:
            raise OutOfPlansError
        self._left -= 1
        return self.plan().verdict is Verdict.FITS

    def plan(self) -> GroupPlan:
        """Return the plan without the removed pods; the snapshot holds no member afterwards."""
        self._follow()
        self._task.budget.check()
        nodes = list(self._snapshot.columns.node_infos)
        plan = self._planner.plan(self._task)
        framework, row_of = self._task.framework, self._snapshot.columns.row_of
        for placed in reversed(plan.placed):
            decision = placed.decision
            framework.run_unreserve(placed.state, decision.info, decision.node_name)
        for name in {placed.decision.node_name for placed in plan.placed}:
            self._snapshot.put(nodes[row_of[name]])
        return plan

    def undo(self) -> None:
        """Put back all pods that were removed."""
        for original in self._originals.values():
            self._snapshot.put(original)
        self._originals.clear()
        self._removed.clear()
        self._stale.clear()

    def _follow(self) -> None:
        for name in self._stale:
            original = self._originals.get(name)
            if original is None:
                original = self._snapshot.get(name)
                if original is None:
                    continue
                self._originals[name] = original
            changed = original.clone()
            for uid in self._removed.get(name, ()):
                if uid in changed.pods:
                    changed.remove_pod(uid)
            self._snapshot.put(changed)
        self._stale.clear()
