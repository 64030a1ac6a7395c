"""Try a group as a whole: over one snapshot, all of the members that fit if enough do, else none.

    minResources -> domains, judged at once -> one domain after another, the best first:
        members in order of scarcity, each decided like a single pod
        other orders and packings, then a bounded search

Nothing is preempted, and whatever was tried is undone before the next try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.framework.attempt_budget import AttemptBudgetExceededError
from scheduler.pod_groups.attempt import GroupAttempt
from scheduler.pod_groups.domains import MemberDomain, domain_of
from scheduler.pod_groups.refusals import broken_off, failed
from scheduler.pod_groups.trial_placements import TrialPlacements
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from collections.abc import Collection

    from cache.pod_group_objects import GroupRules
    from cache.snapshot import Snapshot
    from scheduler.pod_groups.plan import GroupPlan, GroupTask
    from scheduler.pod_groups.trial_placements import Cycle

SEARCH_STEPS: Final = 20_000
"""Runs of the filters that the searches of one plan may take, some seconds on small clusters."""


class GroupPlanner:
    """Find nodes for groups of pods.

    Parameters
    ----------
    cycle
        Decides about single members. The caller brings its snapshot up to date before each
        :meth:`plan`, and does not update it before the plan is committed or undone.
    search_steps
        The runs of the filters that one plan may spend on searching.

    Notes
    -----
    *Concurrency*: scheduling thread only.
    """

    def __init__(self, cycle: Cycle, search_steps: int = SEARCH_STEPS) -> None:
        self._cycle = cycle
        self._search_steps = search_steps

    @property
    def snapshot(self) -> Snapshot:
        """The nodes that are planned with."""
        return self._cycle.snapshot

    def plan(self, task: GroupTask) -> GroupPlan:
        """Return where the members go, or why too few of them fit. Never raises for a plugin.

        After a refusal everything is undone: the snapshot is as it was, and nothing is reserved.

        *Cost*: some 80 us for each member that is placed; a refusal costs less where members are
        counted. Everything else is paid from the budget of the task.
        """
        trial = TrialPlacements(self._cycle, task)
        try:
            with self._cycle.ties_by(str(task.rules.key)) as pick:
                attempt = GroupAttempt(trial, task, pick, self._search_steps)
                try:
                    return attempt.run()
                except AttemptBudgetExceededError:
                    trial.undo()
                    return attempt.cut_short() or broken_off(task)
                except PluginError as error:
                    trial.undo()
                    return failed(task, error.status, attempt.refused)
        except BaseException:
            trial.undo()
            raise

    def domain_of(self, rules: GroupRules, node_names: Collection[str]) -> MemberDomain:
        """Return where one more member of a group may go whose satisfied members have nodes.

        *Cost*: some vector operations over the nodes.
        """
        return domain_of(self._cycle.snapshot.columns, rules, node_names)
