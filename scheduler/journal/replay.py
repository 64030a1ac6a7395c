"""Decide everything again that a journal holds, with the real cycle, and compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from plugins.framework.attempt_budget import UNLIMITED, ReplayedBudget
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.late_members import decide_late_member
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.journal import forms
from scheduler.journal.frames import take_each
from scheduler.journal.records import OFF, POST_FILTER, SPENT
from scheduler.journal.replayed_profiles import ReplayedProfiles
from scheduler.journal.replayed_services import Answers, ReplayedRates, ReplayedServices
from scheduler.journal.replayed_state import ReplayedState, group_key_of
from scheduler.journal.ties import RecordedTies
from scheduler.pod_groups.plan import GroupTask
from scheduler.pod_groups.planner import GroupPlanner
from scheduler.pod_groups.preemption import GroupPreemption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.runtime.framework_runner import FrameworkRunner

_SWITCHED: Final = "a plugin was switched off, or on again, while the decision was made"
_UNCOUNTED: Final = "the attempt budget ran out in work that another attempt may have done"
_HURRIED: Final = "a group was decided in a hurry, or by an extender"
"""Of journals that do not say what was decided by time."""

Decide: TypeAlias = "Callable[[], Any]"
"""Makes a decision again, and returns its form."""


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
    as equal if it comes out the same with some number of these changes, in their order. Preemption
    sees those that had arrived when it began.

    *Concurrency*: confined to its owner.
    """

    def __init__(self, plugins: Mapping[str, type[Plugin]], counts: Counts | None = None) -> None:
        self.counts = counts or Counts()
        self._plugins = plugins
        self._begin()

    def _begin(self) -> None:
        self.state = ReplayedState()
        self.services = ReplayedServices(self.state)
        self.services.before_post_filter = self._reach_post_filter
        self.ties = RecordedTies(0)
        self.ties.others = ReplayedRates(self.services)
        self.cycle = SchedulingCycle(self.state.snapshot, self.ties, self.services)
        self.planner = GroupPlanner(self.cycle)
        self.preemption = GroupPreemption(self.state.snapshot, self.services, self.services.wall)
        self.profiles = ReplayedProfiles(self._plugins, self.services, self.state.cluster.nominator)
        self._meanwhile: list[Sequence[Any]] | None = None
        """Changes since the snapshot of the next decision; None before that snapshot."""
        self._late: list[Sequence[Any]] = []
        """The last change, where it may have been recorded only and not made."""
        self._num_late = 0
        """How many of the changes in the former were recorded before the snapshot."""
        self._task: GroupTask | None = None

    def file(self, frames: Iterable[list[Any]]) -> None:
        """Replay the records of a file, which begins with a checkpoint.

        Raises
        ------
        JournalError
            When a record makes no sense.
        """
        self._begin()
        take_each(frames, self.take)
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
            self._meanwhile, self._late = self._late, []
            self._num_late = len(self._meanwhile)
        elif self._meanwhile is None or what == "metric":
            self._apply(record)
        else:
            self._meanwhile.append(record)

    def settle(self) -> None:
        """Apply all changes that wait for a decision that did not come, or has been made."""
        waiting, self._meanwhile, self._task = self._meanwhile or [], None, None
        for record in waiting:
            self._apply(record)

    def _apply(self, record: Sequence[Any]) -> None:
        """Apply a change, but hold back the last one that may have been recorded only.

        Another thread records a change without a lock, and makes it then: the next decision may
        come before that. The thread has made it once it goes on to something else.
        """
        if record[0] not in _OF_THE_CYCLE and not _is_own(record):
            late, self._late = self._late, []
            for each in late:
                self.state.apply(each)
        if record[0] in _UNLOCKED and not _is_own(record):
            self._late = [record]
        else:
            self.state.apply(record)

    # --- one pod ------------------------------------------------------------------------------

    def _decision(self, record: Sequence[Any]) -> None:
        _, asked, number, name, group, asks_extenders, then, _, budget_s = record
        info = self.state.info(number)
        why = ""
        framework = self.profiles.get(asked[3], name)
        if asks_extenders:
            why = _reason(asks_extenders, "an extender was asked")
        elif _is_mixed(asked[4]):
            why = _SWITCHED
        elif framework is None:
            why = self.profiles.problem(asked[3], name)
        if why or framework is None:
            self.counts.skip(why)
            self.settle()
            return
        runner = framework

        def decide() -> Any:
            domain = None if group is None else self._domain(group)
            # One that ran out does so again at the same place, however long that takes now.
            ran_out_at = then[forms.RAN_OUT_AT]
            state = CycleState(ReplayedBudget(budget_s, ran_out_at) if ran_out_at else UNLIMITED)
            if domain is None:
                decision = self.cycle.decide(runner, state, info)
            else:
                decision = decide_late_member(self.cycle, runner, state, info, domain)
            return plain(forms.decision_form(decision))

        if then[forms.RAN_OUT_AT] is None:
            self._compare(info.key, asked, then, decide)
        else:
            self._compare_stopped(info.key, asked, then, decide)
        self.counts.placed += bool(then[forms.NODE])
        self.settle()

    def _compare_stopped(self, about: str, asked: Sequence[Any], then: Any, decide: Decide) -> None:
        """Decide, and count whether an attempt stops where it stopped for its budget.

        Only once: a second time finds what the first has left, with fewer looks at the budget. For
        the same reason it may not stop there at all, after what earlier attempts have left.
        """
        answers = self._answer(asked)
        now = decide()
        if now[forms.RAN_OUT_AT] != then[forms.RAN_OUT_AT]:
            self.counts.skip(_UNCOUNTED)
        elif now == then and not answers.others:
            self.counts.equal += 1
        else:
            number = self.counts.decisions + 1
            self.counts.different += 1
            self._keep(Difference(number, about, then, now, answers.others))

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
        self, about: str, asked: Sequence[Any], then: Any, decide: Decide, unsure: str = ""
    ) -> bool:
        """Decide, count whether it comes out as recorded, and return that.

        Parameters
        ----------
        unsure
            Why it may come out otherwise, and is not compared if it does.
        """
        number = self.counts.decisions + 1
        seen, others, now = self._decide(then, decide, lambda: self._answer(asked))
        if seen is None and unsure:
            self.counts.skip(unsure)
        elif seen is None:
            self.counts.different += 1
            self._keep(Difference(number, about, then, now, others))
        else:
            self.counts.equal += 1
            self.counts.reordered += seen > self._num_late
        return seen is not None

    def _decide(
        self, then: Any, decide: Decide, answer: Callable[[], Answers]
    ) -> tuple[int | None, Sequence[str], Any]:
        """Decide, with more and more of what arrived meanwhile, until it comes out as recorded.

        Returns
        -------
        How many of these changes it took, or None; and what the first try came to.
        """
        first: tuple[Sequence[str], Any] | None = None
        seen = 0
        while True:
            answers = answer()
            now = decide()
            if now == then and not answers.others:
                return seen, (), now
            first = first or (answers.others, now)
            if not self._see(1):
                return None, *first
            seen += 1

    def _see(self, most: int) -> int:
        """Apply some of the changes that arrived meanwhile, and return how many."""
        meanwhile = self._meanwhile or []
        seen = [record for record in meanwhile if not _is_own(record)][:most]
        for record in seen:
            meanwhile.remove(record)
            self.state.apply(record)
        return len(seen)

    def _reach_post_filter(self) -> None:
        """Apply what had arrived by the time at which preemption began."""
        meanwhile = self._meanwhile or []
        places = [place for place, record in enumerate(meanwhile) if record[0] == POST_FILTER]
        if places:
            self._see(sum(not _is_own(record) for record in meanwhile[: places[0] + 1]))

    def _keep(self, difference: Difference) -> None:
        if len(self.counts.differences) < MOST_DIFFERENCES:
            self.counts.differences.append(difference)

    def _answer(self, asked: Sequence[Any]) -> Answers:
        number, next_start, now_s, _, reads = asked
        self.ties.begin(number)
        self.ties.group_number = number
        self.cycle.next_start = next_start
        self.state.cluster.nominator.freeze()
        answers = self.services.answers = Answers(reads, now_s)
        return answers

    # --- groups -------------------------------------------------------------------------------

    def _plan(self, record: Sequence[Any]) -> None:
        _, asked, numbers, name, key, needed, is_unsure, preempts, then = record
        self.counts.groups += 1
        framework = self.profiles.get(asked[3], name)
        rules = self.state.cluster.known.pod_groups.rules(group_key_of(key))
        why = ""
        if is_unsure and not _told_of_time(is_unsure, asked[4]):
            why = _reason(is_unsure, _HURRIED)
        elif _is_mixed(asked[4]):
            why = _SWITCHED
        elif framework is None:
            why = self.profiles.problem(asked[3], name)
        elif rules is None:
            why = "the rules of a group are not known"
        if why or framework is None or rules is None:
            self.counts.skip(why)
            self.settle()
            return
        members = [self.state.info(number) for number in numbers]
        runner = framework

        def decide() -> Any:
            # A change that arrived meanwhile may be one of the rules.
            latest = self.state.cluster.known.pod_groups.rules(group_key_of(key)) or rules
            budget = self.services.answers.budget()
            task = self._task = GroupTask(latest, runner, members, needed, budget)
            return self._planned(runner, task)

        unsure = _UNCOUNTED if _ran_out(asked[4]) else ""
        is_equal = self._compare(f"{key[0]}/{key[1]}", asked, then, decide, unsure)
        if not preempts or not is_equal:
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
        _, reads, then, is_late = record
        task = self._task
        if task is None:
            return
        is_hurried = is_late and not _told_of_time(is_late, reads)
        if is_hurried or _is_mixed(reads):
            self.counts.equal -= 1
            self.counts.skip(_reason(is_late, _HURRIED) if is_hurried else _SWITCHED)
            self.settle()
            return
        now_s = self.services.answers.now_s

        def answer() -> Answers:
            answers = self.services.answers = Answers(reads, now_s)
            return answers

        def decide() -> Any:
            timed = replace(task, budget=self.services.answers.budget())
            return plain(forms.victims_form(self.preemption.find(timed, self.planner)))

        seen, others, now = self._decide(then, decide, answer)
        if seen is None and _ran_out(reads):
            self.counts.equal -= 1
            self.counts.skip(_UNCOUNTED)
        elif seen is None:
            self.counts.different += 1
            self.counts.equal -= 1
            about = f"victims for {task.rules.key}"
            self._keep(Difference(self.counts.decisions, about, then, now, others))
        self.settle()


_UNLOCKED: Final = frozenset({"object", "assumed", "claim", "group"})
"""Changes that are recorded before they are made."""

_OF_THE_CYCLE: Final = frozenset({"assume", "forget", "renew", "nominate", "not_nominated", "cut"})
"""Changes that the scheduling thread makes, besides others."""


def _reason(told: bool | str, why: str) -> str:
    """Return why a decision is not compared: a redacted journal says it itself."""
    return told if isinstance(told, str) else why


def _told_of_time(is_unsure: bool | str, reads: Sequence[Sequence[Any]]) -> bool:
    """Return whether the journal says what was decided by time, which is why it may be unsure."""
    return not isinstance(is_unsure, str) and any(read[0] == SPENT for read in reads)


def _ran_out(reads: Sequence[Sequence[Any]]) -> bool:
    """Return whether the budget of a group was used up."""
    return any(read[0] == SPENT and read[2] is not None for read in reads)


def _is_mixed(reads: Sequence[Sequence[Any]]) -> bool:
    """Return whether some calls into a plugin were made, and others of the same kind were not."""
    return any(read[0] == OFF and read[3] is None for read in reads)


def _is_own(record: Sequence[Any]) -> bool:
    """Return whether the scheduling thread itself made a change."""
    return record[0] in _UNLOCKED and bool(record[2])


def plain(form: Any) -> Any:
    """Return a form as it is after it was written and read."""
    if isinstance(form, list | tuple):
        return [plain(each) for each in form]
    return form
