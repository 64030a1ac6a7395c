"""Decides whether a pod may preempt other pods now.

*Source*: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (1.36)
(PodEligibleToPreemptOthers, podTerminatingByPreemption).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.api_times import parsed_time_s
from cache.value import Value
from plugins.framework.status import Code

if TYPE_CHECKING:
    from cache.columns import NodesView
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.node_statuses import NodeStatuses

NEVER: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_ARE_LEAVING: Final = "not eligible due to a terminating pod on the nominated node."

STUCK_VICTIM_LIMIT_S: Final = 60.0
"""How long after the end of its grace period a victim may still be there before it counts as
stuck. A kubelet that is well needs a few seconds for the last kill and for volumes; one that is
not well may never end a pod."""

_DISRUPTION_TARGET: Final = "DisruptionTarget"
_BY_SCHEDULER: Final = "PreemptionByScheduler"


class Eligibility(Value, frozen=True):
    """Whether a pod may preempt.

    Parameters
    ----------
    refusal
        The reason why the pod may not preempt; empty when it may.
    avoided_node
        A node that must not be chosen again, because a victim on it does not terminate; else empty.
    """

    refusal: str = ""
    avoided_node: str = ""


def eligibility(
    info: PodInfo, nodes: NodesView, verdicts: NodeStatuses, wall_s: float
) -> Eligibility:
    """Return whether a pod may preempt.

    A pod whose victims are about to leave its nominated node has to wait for them.

    # Differs: it does not wait for a victim that still exists ``STUCK_VICTIM_LIMIT_S`` after its
    grace period ended, and considers other nodes instead; kube-scheduler waits without limit
    (kubernetes/kubernetes#95752).

    Parameters
    ----------
    info
        The pod as the API has it now.
    nodes
        All nodes.
    verdicts
        The results of the filters for them.
    wall_s
        The time, in seconds since the epoch.
    """
    if info.pod.spec.preemption_policy == "Never":
        return Eligibility(NEVER)
    nominated = info.pod.status.nominated_node_name
    if not nominated:
        return Eligibility()
    if verdicts.status_of(nominated).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return Eligibility()
    row = nodes.row(nominated)
    if row is None:
        return Eligibility()
    leaving = [
        other.pod
        for other in nodes.node_info(row).pods.values()
        if other.priority < info.priority and is_preempted(other.pod)
    ]
    if not leaving:
        return Eligibility()
    if any(is_stuck(pod, wall_s) for pod in leaving):
        return Eligibility(avoided_node=nominated)
    return Eligibility(VICTIMS_ARE_LEAVING)


def is_preempted(pod: Pod) -> bool:
    """Return whether the pod is being deleted because a scheduler preempted it."""
    if pod.metadata.deletion_timestamp is None:
        return False
    for condition in pod.status.conditions:
        if condition.type == _DISRUPTION_TARGET:
            return condition.status == "True" and condition.reason == _BY_SCHEDULER
    return False


def is_stuck(pod: Pod, wall_s: float) -> bool:
    """Return whether a pod should have terminated long ago.

    Its grace period ends at its deletion timestamp.
    """
    deadline = pod.metadata.deletion_timestamp
    return deadline is not None and parsed_time_s(deadline) + STUCK_VICTIM_LIMIT_S < wall_s
