"""Decide everything again that a journal holds, with the real cycle, and compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.late_members import decide_late_member
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.journal import forms
from scheduler.journal.frames import JournalError
from scheduler.journal.replayed_profiles import ReplayedProfiles
from scheduler.journal.replayed_services import Answers, ReplayedServices
from scheduler.journal.replayed_state import ReplayedState, group_key_of
from scheduler.journal.ties import RecordedTies
from scheduler.pod_groups.plan import GroupTask, Verdict
from scheduler.pod_groups.planner import GroupPlanner
from scheduler.pod_groups.preemption import GroupPreemption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.runtime.framework_runner import FrameworkRunner

_NOT_FOUND: Final = Verdict.NOT_FOUND.value


@dataclass(frozen=True, slots=True)
class Difference:
    """A decision that came out otherwise.

    Attributes
    ----------
    about
        The pod or group, as namespace/name.
    then, now
        The form of the decision as recorded, and as decided again.
    others
        What else was not as recorded.
    """

    number: int
    about: str
    then: Any
    now: Any
    others: Sequence[str] = ()


@dataclass(slots=True)
class Counts:
    """What a replay found.

    Attributes
    ----------
    equal, different
        Decisions that came out as recorded, and others.
    reordered
        Those of the equal ones that saw a change which arrived while they were made.
    not_compared
        Decisions that cannot be made again, by the reason.
    differences
        The first different decisions.
    """

    equal: int = 0
    different: int = 0
    reordered: int = 0
    placed: int = 0
    groups: int = 0
    not_compared: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def decisions(self) -> int:
        """All decisions."""
        return self.equal + self.different + sum(self.not_compared.values())

    def skip(self, why: str) -> None:
        """Count a decision that cannot be made again."""
        self.not_compared[why] = self.not_compared.get(why, 0) + 1


MOST_DIFFERENCES: Final = 100


class Replay:
    """Replay the records of one file after another.

    Parameters
    ----------
    plugins
        The plugins that profiles may name.
    counts
        What is found is added here.

    Notes
    -----
    A change that arrives while a decision is made may have been seen or not. The decision counts
    as equal if it comes out the same with some number of these changes, in their order.

    *Concurrency*: confined to its owner.
    """

    def __init__(self, plugins: Mapping[str, type[Plugin]], counts: Counts | None = None) -> None:
        self.counts = counts or Counts()
        self._plugins = plugins
        self._begin()

    def _begin(self) -> None:
        self.state = ReplayedState()
        self.services = ReplayedServices(self.state)
        self.ties = RecordedTies(0)
        self.cycle = SchedulingCycle(self.state.snapshot, self.ties, self.services)
        self.planner = GroupPlanner(self.cycle)
        self.preemption = GroupPreemption(self.state.snapshot, self.services, self.services.wall)
        self.profiles = ReplayedProfiles(self._plugins, self.services, self.state.cluster.nominator)
        self._meanwhile: list[Sequence[Any]] | None = None
        """Changes since the snapshot of the next decision; None before that snapshot."""
        self._task: GroupTask | None = None

    def file(self, frames: Iterable[list[Any]]) -> None:
        """Replay the records of a file, which begins with a checkpoint.

        Raises
        ------
        JournalError
            When a record makes no sense.
        """
        self._begin()
        for records in frames:
            for record in records:
                try:
                    self.take(record)
                except (LookupError, TypeError, ValueError, AttributeError) as error:
                    why = f"{type(error).__name__}: {error}"
                    raise JournalError(f"a record of kind {record[0]!r}: {why}") from error
        self.settle()

    def take(self, record: Sequence[Any]) -> None:
        """Replay one record."""
        what = record[0]
        if self.state.decoder.is_about_objects(record):
            return
        if what == "decision":
            self._decision(record)
        elif what == "plan":
            self._plan(record)
        elif what == "victims":
            self._victims(record)
        elif what == "config":
            self.profiles.configure(record[1], record[2])
        elif what == "snapshot":
            self.settle()
            self.state.apply(record)
            self._meanwhile = []
        elif self._meanwhile is None or what == "metric":
            self.state.apply(record)
        else:
            self._meanwhile.append(record)

    def settle(self) -> None:
        """Apply all changes that wait for a decision that did not come, or has been made."""
        waiting, self._meanwhile, self._task = self._meanwhile or [], None, None
        for record in waiting:
            self.state.apply(record)

    # --- one pod ------------------------------------------------------------------------------

    def _decision(self, record: Sequence[Any]) -> None:
        _, asked, number, name, group, asks_extenders, then, _ = record
        info = self.state.info(number)
        why = ""
        framework = self.profiles.get(asked[3], name)
        if asks_extenders:
            why = "an extender was asked"
        elif then[forms.RAN_OUT_AT] is not None:
            why = "the attempt budget ran out"
        elif framework is None:
            why = self.profiles.problem(asked[3], name)
        if why or framework is None:
            self.counts.skip(why)
            self.settle()
            return
        runner = framework

        def decide() -> Any:
            domain = None if group is None else self._domain(group)
            state = CycleState(UNLIMITED)
            if domain is None:
                decision = self.cycle.decide(runner, state, info)
            else:
                decision = decide_late_member(self.cycle, runner, state, info, domain)
            return plain(forms.decision_form(decision))

        self._compare(info.key, asked, then, decide)
        self.counts.placed += bool(then[forms.NODE])
        self.settle()

    def _domain(self, told: Sequence[str]) -> Any:
        known, cache = self.state.cluster.known, self.state.cluster.cache
        key = group_key_of(told)
        rules = known.pod_groups.rules(key)
        if rules is None or not (rules.topology_key or rules.preferred_topology_key):
            return None
        names = {
            each.node_name or cache.assumed_node(each.uid) or ""
            for each in known.pod_groups.members(key).values()
        }
        return self.planner.domain_of(rules, names - {""})

    def _compare(
        self, about: str, asked: Sequence[Any], then: Any, decide: Callable[[], Any]
    ) -> None:
        """Decide, with more and more of what arrived meanwhile, until it comes out as recorded."""
        first: Difference | None = None
        number = self.counts.decisions + 1
        others = [r for r in self._meanwhile or () if not _is_own(r)]
        for seen in range(len(others) + 1):
            if seen:
                record = others[seen - 1]
                if self._meanwhile is not None:
                    self._meanwhile.remove(record)
                self.state.apply(record)
            answers = self._answer(asked)
            now = decide()
            if now == then and not answers.others:
                self.counts.equal += 1
                self.counts.reordered += seen > 0
                return
            first = first or Difference(number, about, then, now, answers.others)
        self.counts.different += 1
        if first is not None and len(self.counts.differences) < MOST_DIFFERENCES:
            self.counts.differences.append(first)

    def _answer(self, asked: Sequence[Any]) -> Answers:
        number, next_start, now_s, _, reads = asked
        self.ties.begin(number)
        self.ties.group_number = number
        self.cycle.next_start = next_start
        answers = self.services.answers = Answers(reads, now_s)
        return answers

    # --- groups -------------------------------------------------------------------------------

    def _plan(self, record: Sequence[Any]) -> None:
        _, asked, numbers, name, key, needed, is_unsure, preempts, then = record
        self.counts.groups += 1
        framework = self.profiles.get(asked[3], name)
        rules = self.state.cluster.known.pod_groups.rules(group_key_of(key))
        why = ""
        if is_unsure or then[0] == _NOT_FOUND:
            why = "a group was decided in a hurry, or by an extender"
        elif framework is None:
            why = self.profiles.problem(asked[3], name)
        elif rules is None:
            why = "the rules of a group are not known"
        if why or framework is None or rules is None:
            self.counts.skip(why)
            self.settle()
            return
        members = [self.state.info(number) for number in numbers]
        task = GroupTask(rules, framework, members, needed, UNLIMITED)
        self._compare(f"{key[0]}/{key[1]}", asked, then, lambda: self._planned(framework, task))
        if preempts:
            self._task = task
        else:
            self.settle()

    def _planned(self, framework: FrameworkRunner, task: GroupTask) -> Any:
        """Plan, and take back what the plan has reserved; the records tell what was."""
        plan = self.planner.plan(task)
        for each in reversed(plan.placed):
            decision = each.decision
            framework.run_unreserve(each.state, decision.info, decision.node_name)
        if plan.placed:
            cache, snapshot = self.state.cluster.cache, self.state.snapshot
            for name in {each.decision.node_name for each in plan.placed}:
                info = cache.node_info(name)
                if info is not None:
                    snapshot.put(info)
        return plain(forms.plan_form(plan))

    def _victims(self, record: Sequence[Any]) -> None:
        _, reads, then = record
        task = self._task
        if task is None:
            return
        answers = self.services.answers = Answers(reads, self.services.answers.now_s)
        found = self.preemption.find(task, self.planner)
        now = plain(forms.victims_form(found))
        if now != then or answers.others:
            self.counts.different += 1
            self.counts.equal -= 1
            about = f"victims for {task.rules.key}"
            if len(self.counts.differences) < MOST_DIFFERENCES:
                number = self.counts.decisions
                self.counts.differences.append(Difference(number, about, then, now, answers.others))
        self.settle()


def _is_own(record: Sequence[Any]) -> bool:
    """Return whether the scheduling thread itself made a change."""
    return record[0] in ("object", "assumed", "claim", "group") and bool(record[2])


def plain(form: Any) -> Any:
    """Return a form as it is after it was written and read."""
    if isinstance(form, list | tuple):
        return [plain(each) for each in form]
    return form
