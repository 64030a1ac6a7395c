"""Compare the victims that Berth chooses for a group with the cheapest ones.

``make gangs KIND=victims SEED=1 ARGS="--cases 2000"``
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from cache.pod_group_objects import GroupKey, GroupSource, PodGroup
from plugins.framework.attempt_budget import UNLIMITED
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.pod_groups import GroupPlanner, GroupTask, Verdict
from scheduler.pod_groups.preemption import GroupPreemption, GroupVictims
from tests.gangs.random_victims import Running, large_case, random_case
from tests.plugins.default_preemption.stage import Stage
from tests.plugins.default_preemption.test_victims import budget
from tests.pod_group_builders import x_group

if TYPE_CHECKING:
    from rich.console import Console

    from cache.objects import Pod
    from plugins.framework.status import Status
    from tests.gangs.random_victims import Case

CASES = 2000
"""So many by default."""

LARGE = 10
"""For so many small cases there is one with a hundred pods."""

EXPLAINED = 0.95
"""The share of the cases in which the victims must be as cheap as the cheapest."""


@dataclass
class Tally:
    """What became of the cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    dearer: list[str] = field(default_factory=list)

    @property
    def cheapest_share(self) -> float:
        """The share of the cheapest among the cases with victims."""
        equal, dearer = self.outcomes["cheapest"], self.outcomes["dearer"]
        return equal / max(equal + dearer + self.outcomes["missed"], 1)

    def text(self) -> str:
        """Return lines for a terminal."""
        lines = [f"{count:6} {name}" for name, count in self.outcomes.most_common()]
        lines.append(f"cost equal to the search's in {self.cheapest_share:.2%}")
        return "\n".join([*lines, *self.dearer[:20], *self.wrong[:20]])


def compare(case: Case, name: str, tally: Tally) -> None:
    """Let Berth choose victims in one case, and hold them against the cheapest ones."""
    found = _find(case, name, tally)
    if found is None:
        tally.outcomes["fits without victims"] += 1
        return
    cheapest = case.cheapest()
    if not isinstance(found, GroupVictims):
        tally.outcomes["none possible" if cheapest is None else "missed"] += 1
        if cheapest is not None:
            tally.dearer.append(f"{name}: missed {sorted(cheapest)}: {found.message}")
        return
    gone = frozenset(info.name for info in found.pods)
    problem = _problem(case, found, gone)
    if problem:
        tally.wrong.append(f"{name}: {problem}")
    if cheapest is None:
        tally.wrong.append(f"{name}: {sorted(gone)} go for nothing")
        return
    best, ours = case.harm(cheapest), case.harm(gone)
    if ours < best:
        tally.wrong.append(f"{name}: {ours} is less than {best}")
    tally.outcomes["cheapest" if ours == best else "dearer"] += 1
    if ours > best:
        tally.dearer.append(f"{name}: {sorted(gone)} {ours} instead of {sorted(cheapest)} {best}")


def check(case: Case, name: str, tally: Tally) -> None:
    """Let Berth choose victims in a case with too many pods to find the cheapest ones."""
    found = _find(case, name, tally)
    if found is None:
        tally.outcomes["large: fits without victims"] += 1
    elif not isinstance(found, GroupVictims):
        tally.outcomes["large: none"] += 1
        lower = [each.name for each in case.may_go() if not each.gang]
        if case.fits(lower):
            tally.wrong.append(f"{name}: victims without a gang suffice: {found.message}")
    else:
        tally.outcomes["large: victims"] += 1
        gone = frozenset(info.name for info in found.pods)
        problem = _problem(case, found, gone)
        units = [{each} for each in gone]
        units += [{one.name for one in case.running if one.gang == gang} for gang in case.gangs]
        for unit in units:
            left = gone - unit
            if not problem and left != gone and case.is_allowed(left) and case.fits(left):
                problem = f"{sorted(unit & gone)} go for nothing among {sorted(gone)}"
        if problem:
            tally.wrong.append(f"{name}: {problem}")


def _find(case: Case, name: str, tally: Tally) -> GroupVictims | Status | None:
    """Return what Berth finds; None when the group fits without victims."""
    stage = Stage(*case.nodes(), *(each.build() for each in case.running))
    _describe(stage, case)
    snapshot = stage.snapshot
    planner = GroupPlanner(SchedulingCycle(snapshot, HostSelector(1)))
    infos = [each.info() for each in case.members()]
    task = GroupTask(case.rules(), stage.framework, infos, case.needed, UNLIMITED)
    plan = planner.plan(task)
    if plan.verdict is Verdict.FITS:
        return None
    before = [info.facts() for info in snapshot.columns.node_infos]
    found = GroupPreemption(snapshot, stage.plugin.handle).find(task, planner)
    if before != [info.facts() for info in snapshot.columns.node_infos]:
        tally.wrong.append(f"{name}: the snapshot was changed")
    return found


def _describe(stage: Stage, case: Case) -> None:
    known = stage.cluster.known
    known.disruption_budgets.budget_changed(None, budget(case.allowed, app="db"))
    for name, gang in case.gangs.items():
        if name.startswith("f"):
            mode = {"disruptionMode": "PodGroup"} if gang.whole else {}
            policy = {"gang": {"minCount": gang.minimum}}
            raw = {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"schedulingPolicy": policy, **mode},
            }
            known.pod_groups.pod_group_changed(None, msgspec.convert(raw, PodGroup))
        else:
            key = GroupKey("default", name, GroupSource.LABEL)
            known.pod_groups.x_pod_group_changed(None, x_group(gang.minimum, key=key))
    for name, gang in case.gangs.items():
        for at in range(gang.succeeded):
            stage.cluster.add_pod(_succeeded(name, at))


def _succeeded(gang: str, number: int) -> Pod:
    made = Running(f"done-{gang}-{number}", "n0", 1, 0, 0, gang).build()
    return made._status(phase="Succeeded").build()


def _problem(case: Case, found: GroupVictims, gone: frozenset[str]) -> str:
    """Return what is wrong with victims; empty for nothing."""
    lower = {each.name for each in case.may_go()}
    if not gone <= lower:
        return f"{sorted(gone - lower)} are too important"
    if not case.is_allowed(gone):
        return f"{sorted(gone)} leave a gang below its minimum"
    if not case.fits(gone):
        return f"the group does not fit without {sorted(gone)}"
    if len(found.members) < case.needed:
        return f"only {len(found.members)} members have nodes"
    if found.pdb_violations != case.harm(gone)[0]:
        return f"{found.pdb_violations} violations are shown for {sorted(gone)}"
    free = dict(case.capacity)
    for each in case.running:
        if each.name not in gone:
            free[each.node] -= each.cpu
    for info, node_name in found.members:
        free[node_name] -= info.requests["cpu"] // 1000
    if min(free.values()) < 0:
        return f"{found.members} do not fit"
    zones = {case.zones[node_name] for _, node_name in found.members}
    return "two zones" if case.in_one_zone and len(zones) != 1 else ""


def campaign(console: Console, cases: int, seed: int) -> int:
    """Compare so many cases; return 0 when all promises are kept, 1 otherwise."""
    tally = Tally()
    for at in range(cases):
        compare(random_case(seed * 1_000_003 + at), f"case {at}", tally)
        if at % LARGE == 0:
            check(large_case(seed * 1_000_003 + at), f"large case {at}", tally)
    console.print(tally.text(), markup=False)
    return int(bool(tally.wrong) or tally.cheapest_share < EXPLAINED)
