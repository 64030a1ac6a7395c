"""An explanation of a group of pods: what it waits for, or what a trial of it finds.

The trial is that of the live cycle, over a cluster that is read only: a group that does not fit is
asked for victims, and nobody is evicted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cache.pod_group_objects import MAX_MEMBERS
from cache.pod_groups import MemberState
from cache.pod_info import PodInfo
from plugins import names
from plugins.framework.attempt_budget import AttemptBudget
from plugins.framework.status import Status
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.offline.offline_framework import OfflineServices
from scheduler.pod_groups.plan import GroupTask, Verdict
from scheduler.pod_groups.planner import GroupPlanner
from scheduler.pod_groups.preemption import GroupPreemption
from scheduler.queueing.group_readiness import lack_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import GroupStanding
    from scheduler.offline.cluster import Cluster
    from scheduler.pod_groups.plan import GroupPlan
    from scheduler.runtime.framework_runner import FrameworkRunner

BUDGET_S: Final = 60.0
"""CPU seconds of a trial."""

FITS: Final = "fits"
DOES_NOT_FIT: Final = "doesNotFit"
NOT_FOUND: Final = "notFound"
FAILED: Final = "failed"
HELD: Final = "held"
BEGUN: Final = "begun"
NOBODY_WAITS: Final = "nobodyWaits"

_OF_VERDICT: Final = {
    Verdict.FITS: FITS,
    Verdict.DOES_NOT_FIT: DOES_NOT_FIT,
    Verdict.NOT_FOUND: NOT_FOUND,
    Verdict.FAILED: FAILED,
}


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """The explanation of one group.

    Parameters
    ----------
    verdict
        ``held``: it cannot be tried. ``begun``: a member has, or had, a node, and those that wait
        are placed one by one. ``nobodyWaits``. Otherwise how its trial ended: ``fits``,
        ``doesNotFit``, ``notFound`` (in the time given), or ``failed``.
    cause
        What a held group lacks: see :class:`scheduler.queueing.group_readiness.Lack`.
    message
        The reason in one sentence; empty for a group that fits.
    waiting
        The members that wait, by name.
    needed, fitting
        How many of them have to fit, and how many do together.
    placed
        The nodes of the members that fit, by name.
    refused
        Why members do not fit, by name: one of each shape.
    domain
        The value of the topology key that was chosen.
    victims
        The pods that would be evicted for the group, the most important first, each with its node.
    preemption
        Why preemption does not help; empty if it does, and where nobody was asked.
    """

    key: GroupKey
    standing: GroupStanding
    verdict: str
    message: str = ""
    cause: str = ""
    waiting: tuple[str, ...] = ()
    needed: int = 0
    fitting: int = 0
    placed: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    domain: str = ""
    victims: Mapping[str, str] = field(default_factory=dict)
    preemption: str = ""


def waiting_members(cluster: Cluster, key: GroupKey) -> list[PodInfo]:
    """Return the members of a group that wait without gates, the oldest first.

    Raises
    ------
    MalformedObjectError
        When one of them cannot be read.
    """
    members = cluster.known.pod_groups.members(key).values()
    waiting = [each.name for each in members if each.state is MemberState.WAITING]
    pods = [cluster.pods[f"{key.namespace}/{name}"] for name in waiting]
    pods = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    pods.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    return [PodInfo(pod) for pod in pods]


def explain_group(
    framework: FrameworkRunner, cluster: Cluster, key: GroupKey, members: Sequence[PodInfo]
) -> GroupExplanation:
    """Return what a group waits for, or what a trial of it finds; the cluster stays as it is.

    Parameters
    ----------
    framework
        The profile that the members name.
    members
        Those of :func:`waiting_members`.

    *Cost*: that of an attempt, at most `BUDGET_S`.
    """
    standing = cluster.known.pod_groups.standing(key)
    waiting = tuple(info.name for info in members)
    lack = lack_of(key, standing, len(members), MAX_MEMBERS)
    if lack is not None and not standing.has_begun:
        return GroupExplanation(key, standing, HELD, lack.text, lack.cause, waiting)
    if not members:
        return GroupExplanation(key, standing, NOBODY_WAITS, "no member waits for a node")
    rules = standing.rules
    if standing.has_begun or rules is None:
        why = "members have, or had, nodes: those that wait are placed one by one"
        return GroupExplanation(key, standing, BEGUN, why, waiting=waiting, needed=standing.missing)
    for info in members:
        cluster.nominator.delete(info.uid)  # it is tried, so that nothing is kept for it
    budget = AttemptBudget(BUDGET_S)
    task = GroupTask(rules, framework, members, max(standing.missing, 1), budget)
    snapshot = cluster.snapshot()
    planner = GroupPlanner(SchedulingCycle(snapshot, HostSelector(seed=0)))
    plan = planner.plan(task)
    for member in reversed(plan.placed):
        decision = member.decision
        framework.run_unreserve(member.state, decision.info, decision.node_name)
    explanation = _of_plan(key, standing, task, plan)
    if plan.verdict in (Verdict.FITS, Verdict.FAILED) or not _preempts(framework):
        return explanation
    found = GroupPreemption(snapshot, OfflineServices(cluster)).find(task, planner)
    if isinstance(found, Status):
        return replace(explanation, preemption=found.message)
    victims = {info.key: info.pod.spec.node_name for info in found.pods}
    return replace(explanation, victims=victims)


def _preempts(framework: FrameworkRunner) -> bool:
    plugins = framework.points.get("postFilter", ())
    return any(plugin.name == names.DEFAULT_PREEMPTION for plugin in plugins)


def _of_plan(
    key: GroupKey, standing: GroupStanding, task: GroupTask, plan: GroupPlan
) -> GroupExplanation:
    name_of = {info.uid: info.name for info in task.members}
    placed = {each.decision.info.name: each.decision.node_name for each in plan.placed}
    return GroupExplanation(
        key,
        standing,
        _OF_VERDICT[plan.verdict],
        plan.status.message,
        waiting=tuple(name_of.values()),
        needed=task.needed,
        fitting=len(placed) or plan.fitting,
        placed=dict(sorted(placed.items())),
        refused={name_of[uid]: decision.message() for uid, decision in plan.refused.items()},
        domain=plan.domain,
    )
