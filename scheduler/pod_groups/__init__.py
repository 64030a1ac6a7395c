"""Decide about groups of pods: which members go where, or why the group as a whole does not fit.

Only the trial over the snapshot is here; :mod:`scheduler.cycle.group_cycle` executes its result.
"""

from scheduler.pod_groups.domains import MemberDomain
from scheduler.pod_groups.plan import GroupPlan, GroupTask, PlacedMember, Verdict
from scheduler.pod_groups.planner import GroupPlanner

__all__ = ["GroupPlan", "GroupPlanner", "GroupTask", "MemberDomain", "PlacedMember", "Verdict"]
