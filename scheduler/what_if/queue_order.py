"""Places pods in the order of the queue: single pods one by one, groups as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.pod_group_objects import MAX_MEMBERS
from cache.resources import MalformedObjectError
from plugins import names
from plugins.framework.status import Status
from scheduler.explain.group_explanation import waiting_members
from scheduler.pod_groups import GroupTask, Verdict
from scheduler.pod_groups.preemption import GroupPreemption
from scheduler.queueing.group_readiness import lack_of
from scheduler.what_if.placer import UNDECIDED, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from scheduler.pod_groups import GroupPlan
    from scheduler.runtime.judgement import LikePods
    from scheduler.what_if.placer import Placer


def place_all(
    placer: Placer, pods: Iterable[Pod], like: LikePods | None = None
) -> Iterator[tuple[Pod, Outcome]]:
    """Place pending pods; yield what becomes of each.

    A group that has not begun is placed when its first member is due, with all of its waiting
    members: those that are not among ``pods`` are yielded as well.

    Parameters
    ----------
    like
        Pods that all of these are like.
    """
    groups = placer.cluster.known.pod_groups
    done: set[str] = set()
    for pod in placer.in_order(pods):
        if pod.metadata.uid in done:
            continue
        key = groups.key_of(pod) if groups.has_any else None
        if key is None or pod.spec.scheduling_gates or groups.standing(key).has_begun:
            yield pod, placer.place(pod, like)
            continue
        placed = False
        for member, outcome in place_group(placer, key):
            done.add(member.metadata.uid)
            placed = placed or member.metadata.uid == pod.metadata.uid
            yield member, outcome
        if not placed:
            yield pod, placer.place(pod)


def place_group(placer: Placer, key: GroupKey) -> Iterator[tuple[Pod, Outcome]]:
    """Place the waiting members of a group; yield what becomes of each."""
    groups = placer.cluster.known.pod_groups
    try:
        members = waiting_members(placer.cluster, key)
    except MalformedObjectError as error:
        why = f"a member of pod group {key} cannot be read: {error}"
        for member in groups.members(key).values():
            pod = placer.cluster.pods.get(f"{key.namespace}/{member.name}")
            if pod is not None and not pod.spec.node_name:
                yield pod, Outcome("", why)
        return
    standing = groups.standing(key)
    if standing.has_begun:
        for info in members:
            yield info.pod, placer.place(info.pod)
        return
    lack = lack_of(key, standing, len(members), MAX_MEMBERS)
    if lack is not None or standing.rules is None or not members:
        why = "no member waits for a node" if lack is None else lack.text
        for info in members:
            yield info.pod, Outcome("", why)
        return
    if placer.is_out_of_time():
        for info in members:
            yield info.pod, UNDECIDED
        return
    framework = placer.framework(members[0].pod)
    needed = max(standing.missing, 1)
    yield from _decide(
        placer, GroupTask(standing.rules, framework, members, needed, placer.budget())
    )


def _decide(placer: Placer, task: GroupTask) -> Iterator[tuple[Pod, Outcome]]:
    for info in task.members:
        placer.cluster.nominator.delete(info.uid)  # it is tried, so that nothing is kept for it
    plan = _plan(placer, task)
    if plan.verdict is not Verdict.FITS and _preempts(task) and _make_room(placer, task):
        plan = _plan(placer, task)
    placed = {each.decision.info.uid: each.decision.node_name for each in plan.placed}
    for each in plan.placed:
        placer.bind(each.decision.info, each.decision.node_name)
    for info in task.members:
        placer.cluster.nominator.delete(info.uid)
        node_name = placed.get(info.uid)
        if node_name is not None:
            yield info.pod, Outcome(node_name)
        else:
            yield info.pod, _refused(placer, plan, info)


def group_would_fit(placer: Placer, key: GroupKey) -> str | None:
    """Return why a group of the cluster would not fit, empty if it would; change nothing.

    None if that cannot be decided.
    """
    standing = placer.cluster.known.pod_groups.standing(key)
    members = waiting_members(placer.cluster, key)
    if standing.rules is None or not members or placer.is_out_of_time():
        return None
    framework = placer.framework(members[0].pod)
    task = GroupTask(standing.rules, framework, members, standing.missing, placer.budget())
    plan = _plan(placer, task)
    for each in reversed(plan.placed):
        decision = each.decision
        framework.run_unreserve(each.state, decision.info, decision.node_name)
    placer.cluster.cache.renew(each.decision.node_name for each in plan.placed)
    return "" if plan.verdict is Verdict.FITS else plan.status.message


def _plan(placer: Placer, task: GroupTask) -> GroupPlan:
    placer.cluster.cache.update_snapshot(placer.snapshot)
    return placer.planner.plan(task)


def _refused(placer: Placer, plan: GroupPlan, info: PodInfo) -> Outcome:
    if plan.verdict is not Verdict.FITS:
        is_over = placer.is_out_of_time() and plan.verdict is Verdict.NOT_FOUND
        return UNDECIDED if is_over else Outcome("", plan.status.message)
    decision = plan.refused.get(info.uid)
    if decision is not None:
        return Outcome("", decision.message())
    return Outcome("", "the other members of the pod group left no room that was looked for")


def _preempts(task: GroupTask) -> bool:
    plugins: Sequence[object] = task.framework.points.get("postFilter", ())
    return any(getattr(plugin, "name", "") == names.DEFAULT_PREEMPTION for plugin in plugins)


def _make_room(placer: Placer, task: GroupTask) -> bool:
    """Evict pods for a group where that helps; return whether anybody was evicted."""
    found = GroupPreemption(placer.snapshot, placer.services).find(task, placer.planner)
    if isinstance(found, Status) or not found.pods:
        return False
    placer.evict(found.pods, str(task.rules.key))
    for info, node_name in found.members:
        placer.cluster.nominator.add(info, node_name)
    return True
