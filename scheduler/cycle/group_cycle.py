"""The cycle of a group: plan, then assume all members that fit, ask Permit, and start all bindings.

    plan: fits  -> assume all -> permit all -> the bindings start
               a "no" before that -> everything is undone
    plan: else  -> the group goes back to the queue as one; nothing is held

The counterpart of :mod:`scheduler.cycle.schedule_one` for groups.

# Differs: kube-scheduler undoes the trial, and lets the members assume and reserve once more, one
by one; those that are done hold their nodes in Permit, up to five minutes, until enough of the
others are.

*Source*: pkg/scheduler/schedule_one_podgroup.go (1.36).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import structlog

from cache.pod_group_objects import ignored_label
from cache.scheduler_cache import CacheConflictError, PlacedPod
from cache.value import Value
from plugins.framework.attempt_budget import AttemptBudget
from plugins.framework.status import Code, Status, failure
from plugins.names import DEFAULT_PREEMPTION
from scheduler.cycle.binding_cycle import BindingJob
from scheduler.cycle.failure_handler import (
    REASON_SCHEDULER_ERROR,
    REASON_UNSCHEDULABLE,
    Failure,
)
from scheduler.cycle.gang import Gang
from scheduler.decision.profile_origin import DEFAULT_ORIGIN
from scheduler.decision.recent_decisions import RecentDecisions
from scheduler.metrics.pod_group_metrics import (
    ERROR,
    SCHEDULED,
    UNSCHEDULABLE,
    WAITING_ON_PREEMPTION,
)
from scheduler.pod_groups.plan import GroupTask, Verdict
from scheduler.queueing import GROUP_GATE, Refusers
from scheduler.runtime.waiting_pods import WaitingPod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey
    from scheduler.cycle.binding_cycle import BindingCycles
    from scheduler.cycle.decision_journal import DecisionJournal
    from scheduler.cycle.group_reports import GroupReports
    from scheduler.cycle.preemption_executor import PreemptionExecutor
    from scheduler.cycle.schedule_one import Outcomes
    from scheduler.cycle.scheduling_cycle import SchedulingCycle
    from scheduler.decision.profile_origin import PolicyOrigin
    from scheduler.metrics.pod_group_metrics import PodGroupMetrics
    from scheduler.pod_groups.domains import MemberDomain
    from scheduler.pod_groups.plan import GroupPlan, PlacedMember
    from scheduler.pod_groups.planner import GroupPlanner
    from scheduler.pod_groups.preemption import GroupPreemption, GroupVictims
    from scheduler.process.ports import Ports
    from scheduler.queueing import QueuedGroup, QueuedPod
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.known_pods import KnownPods

log = structlog.get_logger(__name__)


class GroupDeciders(Value, frozen=True):
    """The objects that find nodes, and victims, for groups.

    Attributes
    ----------
    cycle
        Decides about single members.
    journal
        Records what is found; None for no journal.
    """

    cycle: SchedulingCycle
    planner: GroupPlanner
    preemption: GroupPreemption
    journal: DecisionJournal | None = None


class GroupOutcomes(Value, frozen=True):
    """The handlers of plans, and those that tell of them.

    Attributes
    ----------
    preemptions
        Evicts the victims of groups.
    nominate
        Writes for which node a pod is nominated; the empty name takes the nomination away.
    reports
        Says what becomes of each group.
    recent
        Keeps refusals for those who ask later.
    """

    outcomes: Outcomes
    preemptions: PreemptionExecutor
    nominate: Callable[[Pod, str], None]
    reports: GroupReports
    metrics: PodGroupMetrics
    recent: RecentDecisions = msgspec.field(default_factory=RecentDecisions)


class GroupCycles:
    """Run one attempt of a group after another.

    Notes
    -----
    *Concurrency*: scheduling thread.
    """

    def __init__(
        self,
        ports: Ports[object],
        pods: KnownPods,
        deciders: GroupDeciders,
        outcomes: GroupOutcomes,
    ) -> None:
        self._executor = ports.executor
        self._clock = ports.clock
        self._cache = pods.cache
        self._queue = pods.queue
        self._groups = pods.groups
        self._waiting_pods = pods.waiting
        self._snapshot = deciders.planner.snapshot
        self._cycle = deciders.cycle
        self._journal = deciders.journal
        self._planner = deciders.planner
        self._preemption = deciders.preemption
        self._preemptions = outcomes.preemptions
        self._nominate = outcomes.nominate
        self._bindings: BindingCycles = outcomes.outcomes.bindings
        self._failures = outcomes.outcomes.failures
        self._reports = outcomes.reports
        self._metrics = outcomes.metrics
        self._recent = outcomes.recent
        # What has to be undone if the attempt fails: the members that are assumed, and those of
        # them whose bindings have not started.
        self._assumed: Sequence[PlacedMember] = ()
        self._to_start: list[BindingJob] = []

    def attempt(self, entry: QueuedGroup, framework: FrameworkRunner | None) -> None:
        """Run one attempt; every popped member ends in exactly one of bound, queued, deleted.

        Raises
        ------
        Exception
            When an attempt that failed cannot be taken back.
        """
        self._assumed, self._to_start = (), []
        tried = [queued for queued in entry.tried if not self._skip(queued)]
        for queued in tried:
            label = ignored_label(queued.info.pod)
            if label and queued.attempts == 1:
                self._reports.names_two(queued.info.pod, label)
        rules = self._groups.rules(entry.key)
        if framework is None or rules is None or not tried:
            self._queue.group_refused(entry, {}, is_error=True)
            return
        missing = self._groups.standing(entry.key).missing
        task = GroupTask(
            rules,
            framework,
            [queued.info for queued in tried],
            max(missing, 1),
            AttemptBudget(entry.allowance_s, self._clock.thread_cpu),
        )
        began = perf_counter()
        plan = self._plan(task)
        planned_s = perf_counter() - began
        log.debug(
            "group cycle",
            group=str(entry.key),
            verdict=plan.verdict.value,
            members=len(task.members),
            placed=len(plan.placed),
            duration_s=planned_s,
        )
        self._metrics.decided(planned_s)
        if plan.verdict is Verdict.FITS:
            result = self._carry_out(entry, task, plan)
        else:
            result = self._refuse(entry, task, plan)
        took_s = perf_counter() - began
        self._metrics.attempt(framework.profile_name, result, took_s)
        self._charge(entry, task, took_s)

    def _plan(self, task: GroupTask) -> GroupPlan:
        self._cache.update_snapshot(self._snapshot)
        self._queue.nominator.freeze()
        if self._journal is None:
            return self._planner.plan(task)
        self._journal.begin(self._cycle)
        plan = self._planner.plan(task)
        self._journal.planned(task, plan, preempts=may_preempt(task, plan))
        return plan

    def domain_of(self, key: GroupKey) -> MemberDomain | None:
        """Return where one more member of a group that has begun may go; None for anywhere.

        *Cost*: O(members) for a group with a topology.
        """
        rules = self._groups.rules(key)
        if rules is None or not (rules.topology_key or rules.preferred_topology_key):
            return None
        names = {
            each.node_name or self._cache.assumed_node(each.uid) or ""
            for each in self._groups.members(key).values()
        }
        return self._planner.domain_of(rules, names - {""})

    def failed(self, entry: QueuedGroup, error: Exception) -> None:
        """End an attempt that an internal error ended."""
        status = failure(error, "scheduling")
        for job in self._to_start:
            self._waiting_pods.remove(job.decision.info.uid)
            self._bindings.undo(job, status)
        for each in self._assumed:
            self._cache.forget_pod(each.decision.info)
        self._cache.renew(self._snapshot.names())
        self._queue.group_refused(entry, {}, is_error=True)
        self._report_refusal(entry, status, DEFAULT_ORIGIN)

    def _skip(self, queued: QueuedPod) -> bool:
        """Return whether a member needs no decision: it is being deleted, or placed already."""
        info = queued.info
        if info.is_terminating or self._cache.is_placed_pod(info.uid):
            self._queue.done(info.uid)
            return True
        return False

    def _charge(self, entry: QueuedGroup, task: GroupTask, took_s: float) -> None:
        used_s, over = task.budget.used_s(), task.budget.has_used(task.budget.limit_s)
        if entry.prepaid_s or over:
            self._queue.settle_budget(entry, used_s, over=over)
        if self._queue.shares_attempts:
            self._queue.charge(entry, used_s or took_s)

    # --- a group that fits --------------------------------------------------------------------

    def _carry_out(self, entry: QueuedGroup, task: GroupTask, plan: GroupPlan) -> str:
        """Assume and permit all, and start the bindings; return the result for the metrics."""
        placed = plan.placed
        try:
            self._cache.assume_pods(
                [PlacedPod(each.decision.info, each.decision.node_name) for each in placed]
            )
        except CacheConflictError as error:
            log.warning("a member is placed already", group=str(entry.key), error=str(error))
            self._unreserve(task, placed)
            self._cache.renew(each.decision.node_name for each in placed)
            self._queue.group_refused(entry, {}, is_error=True)
            return ERROR
        self._assumed = placed
        for each in placed:
            self._queue.nominator.delete(each.decision.info.uid)
        jobs, refused = self._permit(entry, task, placed)
        if refused is None and self._num_present(task, placed) < task.needed:
            why = Status(Code.UNSCHEDULABLE, ("a member that is needed was deleted",))
            refused = placed[0].decision.info.uid, why
        if refused is not None:
            self._take_back(entry, task, placed, refused)
            return UNSCHEDULABLE if refused[1].is_rejection else ERROR
        self._groups.assume(entry.key, [each.decision.info.uid for each in placed])
        self._queue.group_placed(entry)
        self._assumed, self._to_start = (), jobs
        where = _where(task, plan)
        message = f"{len(placed)} of {len(task.members)} waiting members are placed{where}"
        self._reports.scheduled(entry.key, message, policy=task.framework.policy)
        self._metrics.placed(plan.counted, len(placed) - plan.counted)
        self._leave_over(entry, task, plan)
        self._start(task, jobs)
        return SCHEDULED

    def _num_present(self, task: GroupTask, placed: Sequence[PlacedMember]) -> int:
        """Return how many of the placed members are still there, after the time of the plan."""
        members = self._groups.members(task.rules.key)
        return sum(
            (member := members.get(each.decision.info.uid)) is not None
            and not member.is_terminating
            for each in placed
        )

    def _permit(
        self, entry: QueuedGroup, task: GroupTask, placed: Sequence[PlacedMember]
    ) -> tuple[list[BindingJob], tuple[str, Status] | None]:
        """Ask whether the members may be bound.

        Returns
        -------
        The jobs, and None; or the member that may not, with the reason.
        """
        framework = task.framework
        queued_of = {queued.info.uid: queued for queued in entry.tried}
        jobs: list[BindingJob] = []
        for each in placed:
            info, node_name = each.decision.info, each.decision.node_name
            job = BindingJob(queued_of[info.uid], each.decision, each.state, framework)
            if framework.has_permits:
                status, waits = framework.run_permit(each.state, info, node_name)
                if status.code is Code.WAIT:
                    longest_s = task.rules.timeout_s
                    waits = {plugin: min(wait_s, longest_s) for plugin, wait_s in waits.items()}
                    executor, clock = self._executor, self._clock.monotonic
                    loop, lock = executor.loop, executor.lock
                    job.waiting = WaitingPod(info, node_name, waits, loop, clock, lock)
                    self._waiting_pods.add(job.waiting)
                elif not status.is_success:
                    return jobs, (info.uid, status)
            each.state.marks = None
            jobs.append(job)
        return jobs, None

    def _take_back(
        self,
        entry: QueuedGroup,
        task: GroupTask,
        placed: Sequence[PlacedMember],
        refused: tuple[str, Status],
    ) -> None:
        """Undo a group of which a member may not be bound, before any binding has started."""
        uid, status = refused
        self._assumed = ()
        self._unreserve(task, placed)
        for each in placed:
            self._waiting_pods.remove(each.decision.info.uid)
            self._cache.forget_pod(each.decision.info)
        by = frozenset({status.plugin}) if status.is_rejection and status.plugin else frozenset()
        self._queue.group_refused(entry, {uid: Refusers(by)}, is_error=not by)
        self._report_refusal(entry, status, task.framework.policy)

    def _unreserve(self, task: GroupTask, placed: Sequence[PlacedMember]) -> None:
        for each in reversed(placed):
            info, node_name = each.decision.info, each.decision.node_name
            for problem in task.framework.run_unreserve(each.state, info, node_name):
                log.error("unreserve failed", pod=info.key, error=problem.message)

    def _leave_over(self, entry: QueuedGroup, task: GroupTask, plan: GroupPlan) -> None:
        """Return the members that no room was found for to the queue, each for itself."""
        placed = {each.decision.info.uid for each in plan.placed}
        for queued in entry.tried:
            uid = queued.info.uid
            if uid in placed:
                continue
            decision = plan.refused.get(uid)
            if decision is None:
                why = "the other members of the pod group left no room that was looked for"
                status = Status(Code.UNSCHEDULABLE, (why,))
                left = Failure.of_status(task.framework.profile_name, status)
            else:
                left = Failure.of_decision(decision)
            self._failures.handle(queued, left)

    def _start(self, task: GroupTask, jobs: list[BindingJob]) -> None:
        members = [job.decision.info for job in jobs]
        held = [job.decision.info.uid for job in jobs if job.waiting is not None]
        until_s = self._clock.monotonic() + task.rules.timeout_s
        spare = max(len(members) - task.needed, 0)
        gang = Gang(task.rules.key, members, held, until_s, self._groups, spare)
        for job in jobs:
            job.gang = gang
        jobs.reverse()
        while jobs:
            self._bindings.start(jobs[-1])
            jobs.pop()

    # --- a group that does not ----------------------------------------------------------------

    def _refuse(self, entry: QueuedGroup, task: GroupTask, plan: GroupPlan) -> str:
        """Return the group to the queue, and look for victims; return the result."""
        status, victims = plan.status, None
        if plan.verdict is Verdict.NOT_FOUND:
            self._metrics.out_of_time()
        # One for which no place was found in the time given may fit without any victim.
        if may_preempt(task, plan):
            found = self._preemption.find(task, self._planner)
            if self._journal is not None:
                self._journal.found_victims(task, found)
            if isinstance(found, Status):
                status = Status(status.code, (f"{status.message}. {found.message}",), status.plugin)
            else:
                victims = found
                goes = f"{len(victims.pods)} pods to be evicted"
                why = goes if victims.pods else "pods that are being deleted"
                text = f"{status.message}. preemption: waits for {why}"
                status = Status(status.code, (text,), status.plugin)
                # Before the entry can be active again: it is kept out while this goes on.
                self._preemptions.start_group(entry.key, task.rules.uid, victims)
                self._metrics.victims(len(victims.pods))
        is_error = plan.verdict is not Verdict.DOES_NOT_FIT
        self._queue.group_refused(entry, refusers_of(task, plan), is_error=is_error)
        self._nominate_members(task, {} if victims is None else dict(_nodes(victims)))
        self._report_refusal(entry, status, task.framework.policy)
        if victims is not None:
            return WAITING_ON_PREEMPTION
        return ERROR if plan.verdict is Verdict.FAILED else UNSCHEDULABLE

    def _nominate_members(self, task: GroupTask, nodes: Mapping[str, str]) -> None:
        """Keep rooms for the members that have one there, by UID, and for no others."""
        nominator = self._queue.nominator
        for info in task.members:
            node_name = nodes.get(info.uid, "")
            if (nominator.node_of(info.uid) or "") != node_name:
                nominator.add(info, node_name)
                self._nominate(info.pod, node_name)

    def _report_refusal(self, entry: QueuedGroup, status: Status, policy: PolicyOrigin) -> None:
        reason = REASON_UNSCHEDULABLE if status.is_rejection else REASON_SCHEDULER_ERROR
        members = [queued.info for queued in entry.tried]
        self._reports.refused(entry.key, members, reason, status.message, policy=policy)
        self._recent.add(
            "",
            "",
            members[0].pod.spec.scheduler_name if members else "",
            message=status.message,
            plugins=(status.plugin,) if status.plugin else (),
            attempts=entry.attempts,
            group=str(entry.key),
        )


def _where(task: GroupTask, plan: GroupPlan) -> str:
    """Return the domains that were chosen, for a message."""
    rules = task.rules
    where = f" in {rules.topology_key}={plan.domain}" if plan.domain else ""
    if plan.preferred_domain:
        where += f" in {rules.preferred_topology_key}={plan.preferred_domain}"
    elif rules.preferred_topology_key:
        where += f", no single {rules.preferred_topology_key} had room for the minimum"
    return where


def may_preempt(task: GroupTask, plan: GroupPlan) -> bool:
    """Return whether victims are looked for: the profile evicts, and the group does not fit."""
    plugins = task.framework.points.get("postFilter", ())
    return plan.verdict is Verdict.DOES_NOT_FIT and any(
        each.name == DEFAULT_PREEMPTION for each in plugins
    )


def _nodes(victims: GroupVictims) -> Iterator[tuple[str, str]]:
    return ((info.uid, node_name) for info, node_name in victims.members)


def refusers_of(task: GroupTask, plan: GroupPlan) -> Mapping[str, Refusers]:
    """Return who rejected members, by the UID of the member.

    No plugin knows what would help where a topology is asked for, or where the group was refused
    before a plugin was asked: then every event counts.
    """
    found = {}
    for uid, decision in plan.refused.items():
        by, pending = decision.diagnosis.unschedulable_plugins, decision.diagnosis.pending_plugins
        if task.rules.topology_key or not by | pending:
            by |= {GROUP_GATE}
        found[uid] = Refusers(by, pending)
    return found
