"""Decide about a member of a group that has begun: alone, in the domain that the others fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plugins.framework.status import unschedulable
from scheduler.decision.decision import Decision, Diagnosis
from scheduler.queueing import GROUP_GATE

if TYPE_CHECKING:
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from scheduler.cycle.scheduling_cycle import SchedulingCycle
    from scheduler.pod_groups.domains import MemberDomain
    from scheduler.runtime.framework_runner import FrameworkRunner


def decide_late_member(
    cycle: SchedulingCycle,
    framework: FrameworkRunner,
    state: CycleState,
    info: PodInfo,
    domain: MemberDomain,
) -> Decision:
    """Return the decision about a member: in its preferred domain if one fits there.

    Where a topology is required, no other domain will do, and preemption looks at no other.
    """
    if domain.reason:
        status = unschedulable(domain.reason).by(GROUP_GATE)
        return Decision(
            cycle=0,
            profile=framework.profile_name,
            info=info,
            status=status,
            diagnosis=Diagnosis(len(cycle.snapshot), pre_filter=status),
            policy=framework.policy,
        )
    if domain.preferred is not None:
        decision = cycle.decide(framework, state, info, among=domain.preferred, post_filters=False)
        if decision.is_placed:
            return decision
        state.reset()
    decision = cycle.decide(framework, state, info, among=domain.among)
    if decision.is_placed or not domain.value:
        return decision
    diagnosis = decision.diagnosis
    why = f'The other members of its pod group are in "{domain.value}".'
    told = f"{diagnosis.post_filter_message} {why}".strip()
    return replace(decision, diagnosis=replace(diagnosis, post_filter_message=told))
