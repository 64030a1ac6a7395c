"""The other policy at work: decides about pods and groups in its own cluster.

    decide -> placed: count it on its node, reserve
           -> refused: nominate, return the victims of a preemption

Who is tried when, and what becomes of the victims, is for :mod:`scheduler.policy_replay.replay`.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SUCCESS, Code, Status
from scheduler.cycle.group_cycle import may_preempt
from scheduler.cycle.late_members import decide_late_member
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.decision.decision import Diagnosis, RejectedNodes
from scheduler.journal.replayed_services import Answers, ReplayedRates
from scheduler.journal.ties import RecordedTies
from scheduler.pod_groups import GroupPlan, GroupPlanner, GroupTask, Verdict
from scheduler.pod_groups.preemption import GroupPreemption
from scheduler.policy_replay.frameworks import frameworks_of
from scheduler.policy_replay.other_services import OtherServices
from scheduler.runtime.nominated_nodes import NominatedNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.pod_group_objects import GroupKey, GroupRules
    from cache.pod_info import PodInfo
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.decision.decision import Decision
    from scheduler.pod_groups.preemption import GroupVictims
    from scheduler.policy_replay.fates import Fate
    from scheduler.policy_replay.other_world import OtherWorld
    from scheduler.runtime.framework_runner import FrameworkRunner


class Turn(NamedTuple):
    """What an attempt begins with, besides the cluster.

    Attributes
    ----------
    number
        Decides between equal nodes.
    next_start
        Where a partial search starts; None to go on where the last one ended.
    now_s
        Seconds since the epoch.
    reads
        What the scheduler's own parts were asked in the recorded decision, with their answers.
    """

    number: int
    next_start: int | None
    now_s: float
    reads: Sequence[Sequence[Any]] = ()


class Tried(NamedTuple):
    """An attempt of a pod.

    Attributes
    ----------
    victims
        Those to evict for it.
    as_then
        Those that leave as recorded: the same were chosen then.
    """

    decision: Decision
    victims: tuple[PodInfo, ...] = ()
    as_then: tuple[PodInfo, ...] = ()


class TriedGroup(NamedTuple):
    """An attempt of a group: ``victims`` were found, and nothing is done about them yet."""

    task: GroupTask
    plan: GroupPlan
    victims: GroupVictims | None


class OtherScheduler:
    """Decide by the other policy, and give pods their nodes.

    Parameters
    ----------
    world
        The cluster of the other policy.
    profiles, plugins
        The other policy.
    on_cost
        Receives the seconds of each decision, after the name of its profile.

    Attributes
    ----------
    send_away
        Receives the UIDs of pods that lost their nomination to a more important one.
    on_permit_wait
        Receives the name of the profile when a Permit plugin would hold a pod.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(
        self,
        world: OtherWorld,
        profiles: Sequence[EffectiveProfile],
        plugins: Mapping[str, type[Plugin]],
        on_cost: Callable[[str, float], object],
    ) -> None:
        self._world = world
        self._services = OtherServices(world)
        self._ties = RecordedTies(0)
        self._ties.others = ReplayedRates(self._services)
        self._cycle = SchedulingCycle(world.snapshot, self._ties, self._services)
        self._planner = GroupPlanner(self._cycle)
        self._group_preemption = GroupPreemption(
            world.snapshot, self._services, self._services.wall
        )
        self._on_cost = on_cost
        nominated = NominatedNodes(world.cluster.nominator.latest)
        self.frameworks = frameworks_of(profiles, plugins, self._services, nominated)
        self.send_away: Callable[[Sequence[str]], object] = lambda _: None
        self.on_permit_wait: Callable[[str], object] = lambda _: None

    def turn(self, name: str, now_s: float) -> Turn:
        """Return the turn of an attempt that was not recorded."""
        return Turn(self._ties.number_of(name), None, now_s)

    def _begin(self, turn: Turn) -> None:
        self._world.begin_attempt()
        self._ties.begin(turn.number)
        self._ties.group_number = turn.number
        if turn.next_start is not None:
            self._cycle.next_start = turn.next_start
        self._services.answers = Answers(turn.reads, turn.now_s)

    # --- pods ---------------------------------------------------------------------------------

    def try_pod(self, fate: Fate, turn: Turn) -> Tried:
        """Decide about a pod, and place it if it fits."""
        framework = self.frameworks[fate.profile]
        self._begin(turn)
        info = self._services.trying = self._world.info_now(fate)
        state = CycleState(UNLIMITED)
        began = perf_counter()
        decision = self._decide(framework, state, info)
        self._on_cost(fate.profile, perf_counter() - began)
        chosen = self._services.chosen.take()
        if decision.is_placed:
            return Tried(self._place(framework, state, fate, decision, turn.now_s))
        tried = Tried(decision)
        if chosen is not None:
            node_name, victims = chosen
            self.take_nominations(node_name, info.priority)
            started = ["start", node_name, [each.uid for each in victims.pods]]
            if any(list(read[:3]) == started for read in turn.reads):
                self.leave_as_then(victims.pods, victims.gangs)
                tried = Tried(decision, as_then=victims.pods)
            else:
                tried = Tried(decision, victims.pods)
        if decision.nominated_node_name is not None:
            self.nominate(fate, info, decision.nominated_node_name)
        return tried

    def _decide(self, framework: FrameworkRunner, state: CycleState, info: PodInfo) -> Decision:
        known, cache = self._world.cluster.known, self._world.cluster.cache
        groups = known.pod_groups
        key = groups.key_of(info.pod) if groups.has_any else None
        rules = None if key is None else groups.rules(key)
        if key is None or rules is None:
            return self._cycle.decide(framework, state, info)
        if not (rules.topology_key or rules.preferred_topology_key):
            return self._cycle.decide(framework, state, info)
        names = {
            each.node_name or cache.assumed_node(each.uid) or ""
            for each in groups.members(key).values()
        }
        domain = self._planner.domain_of(rules, names - {""})
        return decide_late_member(self._cycle, framework, state, info, domain)

    def _place(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        fate: Fate,
        decision: Decision,
        now_s: float,
    ) -> Decision:
        world, info, node_name = self._world, decision.info, decision.node_name
        world.place(fate, node_name, now_s)
        status = framework.run_reserve(state, info, node_name)
        if status.is_success:
            status = self._permit(framework, state, decision)
        if status.is_success:
            world.keep_claims(fate)
            return decision
        framework.run_unreserve(state, info, node_name)
        world.displace(fate)
        return _refused(decision, status)

    def _permit(self, framework: FrameworkRunner, state: CycleState, decision: Decision) -> Status:
        """Ask whether a pod may be bound. One that has to wait is taken for one that may."""
        if not framework.has_permits:
            return SUCCESS
        status, _ = framework.run_permit(state, decision.info, decision.node_name)
        if status.code is not Code.WAIT:
            return status
        self.on_permit_wait(framework.profile_name)
        return SUCCESS

    # --- victims and nominations --------------------------------------------------------------

    def leave_as_then(self, victims: Sequence[PodInfo], gangs: frozenset[GroupKey]) -> None:
        """Let victims leave as recorded: the same were chosen then."""
        self._world.leaving.update((each.uid, None) for each in victims)
        self._world.evictions_as_then.update(
            (key.namespace, key.name, key.source.value) for key in gangs
        )

    def take_nominations(self, node_name: str, priority: int) -> None:
        """Take the nominations for a node from less important pods."""
        nominator = self._world.cluster.nominator
        lower = [
            each.uid
            for each in nominator.nominated_pods_for_node(node_name)
            if each.priority < priority
        ]
        for uid in lower:
            nominator.delete(uid)
            fate = self._world.fates.get(uid)
            if fate is not None:
                fate.nominated = ""
        if lower:
            self.send_away(lower)

    def nominate(self, fate: Fate, info: PodInfo, node_name: str) -> None:
        """Nominate a pod for a node; the empty name takes the nomination away."""
        fate.nominated = node_name
        self._world.cluster.nominator.add(info, node_name)

    # --- groups -------------------------------------------------------------------------------

    def try_group(self, rules: GroupRules, members: Sequence[Fate], turn: Turn) -> TriedGroup:
        """Decide about the waiting members of a group, and place them if enough of them fit."""
        world = self._world
        self._begin(turn)
        framework = self.frameworks[members[0].profile]
        missing = world.cluster.known.pod_groups.standing(rules.key).missing
        infos = [world.info_now(fate) for fate in members]
        task = GroupTask(rules, framework, infos, max(missing, 1), UNLIMITED)
        began = perf_counter()
        plan = self._planner.plan(task)
        self._on_cost(framework.profile_name, perf_counter() - began)
        if plan.verdict is Verdict.FITS:
            return TriedGroup(task, self._place_group(task, plan, members, turn.now_s), None)
        if not may_preempt(task, plan):
            return TriedGroup(task, plan, None)
        found = self._group_preemption.find(task, self._planner)
        return TriedGroup(task, plan, None if isinstance(found, Status) else found)

    def _place_group(
        self, task: GroupTask, plan: GroupPlan, members: Sequence[Fate], now_s: float
    ) -> GroupPlan:
        """Place the members of a plan; return it as refused if one of them may not be bound."""
        world, framework = self._world, task.framework
        by_uid = {fate.uid: fate for fate in members}
        placed = [(by_uid[each.decision.info.uid], each) for each in plan.placed]
        for fate, each in placed:
            world.place(fate, each.decision.node_name, now_s)
        for _, each in placed:
            status = self._permit(framework, each.state, each.decision)
            if not status.is_success:
                for fate, other in reversed(placed):
                    decision = other.decision
                    framework.run_unreserve(other.state, decision.info, decision.node_name)
                    world.displace(fate)
                refused = {each.decision.info.uid: _refused(each.decision, status)}
                return GroupPlan(Verdict.DOES_NOT_FIT, status, (), refused, plan.fitting)
        for fate, _ in placed:
            world.keep_claims(fate)
        return plan

    def nominate_members(self, members: Sequence[Fate], victims: GroupVictims | None) -> None:
        """Keep the nodes that victims free for the members of their group, and no others."""
        nodes: dict[str, str] = {}
        if victims is not None:
            nodes = {info.uid: node_name for info, node_name in victims.members}
            for node_name in nodes.values():
                self.take_nominations(node_name, victims.priority)
        for fate in members:
            node_name = nodes.get(fate.uid, "")
            if fate.nominated != node_name:
                self.nominate(fate, self._world.info_now(fate), node_name)


def _refused(decision: Decision, status: Status) -> Decision:
    """Return what becomes of a decision that a plugin refused after it."""
    rejected = (RejectedNodes(status, (decision.node_name,)),)
    diagnosis = Diagnosis(1, rejected=rejected)
    return replace(decision, status=status, node_name="", node_uid="", diagnosis=diagnosis)
