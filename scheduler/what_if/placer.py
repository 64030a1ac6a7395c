"""Places pods one after another as the scheduler would, by its own cycles.

    pods in queue order -> decide -> reserve and bind at once -> the next pod
                             | refused, but preemption helps: evict, decide again

Groups of pods that have not begun are placed as one by the planner of
:mod:`scheduler.pod_groups`; see :mod:`scheduler.what_if.queue_order`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from cache.pod_info import PodInfo, is_terminal
from cache.resources import MalformedObjectError
from cache.snapshot import Snapshot
from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.late_members import decide_late_member
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.decision.decision import Diagnosis, RejectedNodes
from scheduler.offline.offline_framework import OfflineServices
from scheduler.pod_groups import GroupPlanner
from scheduler.runtime.nominated_nodes import NominatedNodes
from scheduler.runtime.profile_builder import build_framework
from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.known_refusals import KnownRefusals
from scheduler.what_if.recorded_preemption import RecordedPreemption
from scheduler.what_if.result import Preempted
from scheduler.what_if.staying_selector import StayingSelector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from plugins.framework.results import RowArray
    from plugins.framework.status import Status
    from scheduler.config import EffectiveProfile
    from scheduler.decision.decision import Decision
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.judgement import LikePods
    from scheduler.what_if.changed_cluster import ChangedCluster

DEFAULT_CPU_S: Final = 60.0
"""CPU seconds for one question."""

MAX_ROUNDS: Final = 3
"""Preemptions for one pod: the first one frees what the pod needs, unless plugins disagree."""


class Outcome(NamedTuple):
    """What becomes of a pod.

    Attributes
    ----------
    node_name
        Its node; empty if it has none.
    reason
        Why it has no node; empty if that was not decided.
    """

    node_name: str
    reason: str = ""


UNDECIDED: Final = Outcome("")
"""Of a pod that the time did not suffice for."""


@dataclass(slots=True)
class Record:
    """What happened on the way, besides the placements.

    Attributes
    ----------
    preempted
        The victims of preemption.
    victims
        Those that nobody has looked at yet, each with what its controller creates in its place.
    displaced
        The nodes of those victims that were placed in this forecast themselves.
    notes
        Sentences for the user, each once.
    """

    preempted: list[Preempted] = field(default_factory=list)
    victims: list[tuple[Pod, Pod | None]] = field(default_factory=list)
    displaced: list[str] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)


class Placer:
    """Decides about pods and gives them their nodes.

    Parameters
    ----------
    changed
        The cluster, which is changed with each placement.
    profiles
        The profiles that decide.
    plugins
        The available plugins by name.
    seed
        Breaks ties.
    cpu_s
        CPU seconds of this thread for everything together.

    Raises
    ------
    ConfigError
        When a plugin's arguments cannot be used.

    Notes
    -----
    *Concurrency*: confined to its owner.

    *Cost*: some 0.15 ms for each pod that is like the one before it.
    """

    def __init__(
        self,
        changed: ChangedCluster,
        profiles: Sequence[EffectiveProfile],
        plugins: Mapping[str, type[Plugin]],
        seed: int,
        cpu_s: float = DEFAULT_CPU_S,
    ) -> None:
        self.changed = changed
        self.cluster = changed.cluster
        self._order = np.random.default_rng(seed)
        if seed:
            # Among equally good nodes for a preemption, the first row counts, and the rows of the
            # scheduler that runs have an order that nobody knows.
            self.cluster.cache.renew(self._order.permutation(list(self.cluster.nodes)).tolist())
        self.record = Record()
        self.preemption = RecordedPreemption()
        self.services = OfflineServices(self.cluster)
        self.services.preemption = self.preemption
        self.snapshot = Snapshot()
        self.selector = StayingSelector(seed)
        self.cycle = SchedulingCycle(self.snapshot, self.selector)
        self.planner = GroupPlanner(self.cycle)
        self._frameworks: dict[str, FrameworkRunner] = {}
        for index, profile in enumerate(profiles):
            framework = build_framework(profile, index, plugins, self.services)
            framework.nominated = NominatedNodes(self.cluster.nominator.latest)
            self._frameworks[profile.scheduler_name] = framework
        self._refusals = KnownRefusals(changed)
        self._placed: set[str] = set()
        self._first = profiles[0].scheduler_name
        self._budget = AttemptBudget(cpu_s)

    # --- time ---------------------------------------------------------------------------------

    def is_out_of_time(self) -> bool:
        """Return whether nothing more may be decided."""
        try:
            self._budget.check()
        except AttemptBudgetExceededError:
            return True
        return False

    def budget(self) -> AttemptBudget:
        """Return the budget of each decision: all that is left."""
        return self._budget

    # --- profiles and order -------------------------------------------------------------------

    def serves(self, pod: Pod) -> bool:
        """Return whether a profile has the pod's schedulerName."""
        return pod.spec.scheduler_name in self._frameworks

    def framework(self, pod: Pod) -> FrameworkRunner:
        """Return the profile that decides about a pod: the first one if none serves it."""
        wanted = pod.spec.scheduler_name
        found = self._frameworks.get(wanted)
        if found is None:
            found = self._frameworks[self._first]
            self.note(
                f"Pods of the scheduler {wanted or 'default-scheduler'!r} are judged by the "
                f"profile {self._first!r}: the scheduler itself may decide otherwise."
            )
        return found

    def in_order(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return pods in the order of the queue; those given first are the oldest."""
        keyed = [
            (self.framework(pod).sort_key(pod, float(number)), number, pod)
            for number, pod in enumerate(pods)
        ]
        keyed.sort(key=lambda each: each[:2])
        return [pod for _, _, pod in keyed]

    def shuffled(self, rows: RowArray) -> RowArray:
        """Return rows in an order that the seed decides."""
        return self._order.permutation(rows)

    def note(self, sentence: str) -> None:
        """Keep a sentence for the user."""
        self.record.notes[sentence] = None

    # --- single pods --------------------------------------------------------------------------

    def place(self, pod: Pod, like: LikePods | None = None) -> Outcome:
        """Give a pending pod of the cluster its node, or return why it has none.

        Parameters
        ----------
        like
            Pods that it is one of, if many of them are to be placed.
        """
        if self.is_out_of_time():
            return UNDECIDED
        try:
            info = PodInfo(pod)
        except MalformedObjectError as error:
            return Outcome("", f"the pod cannot be read: {error}")
        framework = self.framework(pod)
        gate = framework.pre_enqueue(pod)
        if not gate.is_success:
            return Outcome("", gate.message)
        known = self._refusals.get(framework, info)
        if known:
            return Outcome("", known)
        state = CycleState(self.budget())
        decision = self._try(framework, state, info, like)
        if decision.is_placed:
            return Outcome(decision.node_name)
        if decision.is_over_budget:
            return UNDECIDED
        self._refusals.add(framework, state, decision)
        return Outcome("", decision.message())

    def _try(
        self, framework: FrameworkRunner, state: CycleState, info: PodInfo, like: LikePods | None
    ) -> Decision:
        """Decide about a pod, with preemption; bind it where it fits."""
        decision = self._attempt(framework, state, info, like)
        for _ in range(MAX_ROUNDS):
            victims = self.preemption.take()
            if decision.is_placed or not victims or not decision.nominated_node_name:
                return decision
            node_name = decision.nominated_node_name
            self.evict(victims, info.key)
            self._send_lower_away(info, node_name)
            self.cluster.nominator.add(info, node_name)
            state.reset()
            decision = self._attempt(framework, state, info)
        return decision

    def _attempt(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        info: PodInfo,
        like: LikePods | None = None,
    ) -> Decision:
        self.cluster.cache.update_snapshot(self.snapshot)
        decision = self._decide(framework, state, info, like)
        if decision.is_placed:
            decision = self._reserve(framework, state, decision)
        return decision

    def _decide(
        self, framework: FrameworkRunner, state: CycleState, info: PodInfo, like: LikePods | None
    ) -> Decision:
        groups = self.cluster.known.pod_groups
        key = groups.key_of(info.pod) if groups.has_any else None
        rules = None if key is None else groups.rules(key)
        if key is None or rules is None:
            return self.cycle.decide(framework, state, info, like=like)
        if not (rules.topology_key or rules.preferred_topology_key):
            return self.cycle.decide(framework, state, info)
        nodes = {member.node_name for member in groups.members(key).values()}
        domain = self.planner.domain_of(rules, nodes - {""})
        return decide_late_member(self.cycle, framework, state, info, domain)

    def _reserve(
        self, framework: FrameworkRunner, state: CycleState, decision: Decision
    ) -> Decision:
        info, node_name = decision.info, decision.node_name
        status = framework.run_reserve(state, info, node_name)
        if not status.is_success:
            framework.run_unreserve(state, info, node_name)
            return _refused_at_reserve(decision, status)
        self.bind(info, node_name)
        return decision

    def bind(self, info: PodInfo, node_name: str) -> None:
        """Give a pod its node."""
        self.changed.bind(info, node_name)
        self._placed.add(info.uid)

    def bind_alike(self, infos: Iterable[PodInfo]) -> None:
        """Store pods that are alike and have their nodes already."""
        for info in infos:
            self.changed.add_bound(info)
            self._placed.add(info.uid)

    def would_fit(self, info: PodInfo) -> Decision:
        """Decide about one more pod, and change nothing."""
        self.cluster.cache.update_snapshot(self.snapshot)
        state = CycleState(self.budget())
        return self.cycle.decide(self.framework(info.pod), state, info, post_filters=False)

    # --- preemption ---------------------------------------------------------------------------

    def evict(self, victims: Iterable[PodInfo], preemptor: str) -> None:
        """Evict the victims of a preemption; their controllers replace them later."""
        for victim in victims:
            known = self.cluster.pods.get(victim.key)
            pod = victim.pod if known is None else known
            self.record.preempted.append(Preempted(victim.key, pod.spec.node_name, preemptor))
            if pod.metadata.uid in self._placed:
                self.record.displaced.append(pod.spec.node_name)
            self.record.victims.append((pod, self._replaced(pod)))

    def _replaced(self, pod: Pod) -> Pod | None:
        """Delete a pod; return what its controller creates in its place."""
        if drain_kind(pod) is not DrainKind.MANAGED:
            self.changed.delete(pod)
            return None
        successor, why = self.changed.replace(pod)
        if why:
            self.note(f"A preempted pod cannot be created again: {why}")
        return successor

    def _send_lower_away(self, info: PodInfo, node_name: str) -> None:
        nominator = self.cluster.nominator
        for each in nominator.nominated_pods_for_node(node_name):
            if each.priority < info.priority:
                nominator.delete(each.uid)

    def pending_pods(self) -> list[Pod]:
        """Return the pods of the cluster that wait for a node, the oldest first."""
        pods = [
            pod
            for pod in self.cluster.pods.values()
            if not pod.spec.node_name
            and not is_terminal(pod)
            and pod.metadata.deletion_timestamp is None
        ]
        pods.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
        return pods


def _refused_at_reserve(decision: Decision, status: Status) -> Decision:
    """Return what becomes of a decision that a Reserve plugin refused."""
    rejected = (RejectedNodes(status, (decision.node_name,)),)
    diagnosis = Diagnosis(1, rejected=rejected)
    return replace(decision, status=status, node_name="", node_uid="", diagnosis=diagnosis)
