"""Gangs on random small clusters: they are placed exactly where an exhaustive search places them.

``make gangs KIND=placements SEED=1 ARGS="--cases 5000"``. :mod:`tests.gangs.shares` gives the same
cases to schedulers on a real API server.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from cache.columns import Columns
from plugins.framework.attempt_budget import UNLIMITED
from scheduler.pod_groups import GroupTask, Verdict
from tests.gangs.exhaustive import Exhaustive
from tests.gangs.random_gangs import random_case
from tests.scheduler.pod_groups.groups import Cluster, default_framework

if TYPE_CHECKING:
    from rich.console import Console

    from cache.snapshot import Snapshot
    from scheduler.pod_groups import GroupPlan
    from scheduler.runtime.framework_runner import FrameworkRunner
    from tests.gangs.random_gangs import Case

CASES = 5000
EXPECTED = {True: Verdict.FITS, False: Verdict.DOES_NOT_FIT}


@dataclass
class Tally:
    """What a campaign has seen."""

    cases: int = 0
    placed: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    slowest: int = 0
    plan_s: float = 0.0
    looks: int = 0

    def text(self) -> str:
        """Return the summary."""
        share = self.placed / max(self.cases, 1)
        lines = [
            f"{self.cases} cases, {share:.1%} fit, {len(self.differences)} differences",
            f"plans: {self.plan_s:.1f} s in all, the slowest {self.slowest_s * 1e3:.0f} ms "
            f"(seed {self.slowest}); the exhaustive search asked {self.looks} times",
            "verdicts: " + ", ".join(f"{n} {v}" for v, n in sorted(self.verdicts.items())),
            "with: " + ", ".join(f"{n} {v}" for v, n in sorted(self.notes.items())),
        ]
        return "\n".join([*lines, *self.differences])


def compare(seed: int, framework: FrameworkRunner, tally: Tally) -> None:
    """Plan one case in both orders of creation, and note what differs from the truth."""
    case = random_case(seed)
    search = Exhaustive(framework, case)
    fits = search.fits()
    tally.cases += 1
    tally.placed += fits
    tally.looks += search.looks
    tally.notes.update(case.notes)
    for order in (1, -1):
        cluster = Cluster(case.infos(), seed, framework)
        infos = [member.info() for member in case.members[::order]]
        before = cluster.facts()
        task = GroupTask(case.rules, framework, infos, case.rules.minimum, UNLIMITED)
        began = perf_counter()
        plan = cluster.planner.plan(task)
        took = perf_counter() - began
        tally.plan_s += took
        if took > tally.slowest_s:
            tally.slowest_s, tally.slowest = took, seed
        tally.verdicts[plan.verdict.value] += 1
        for problem in problems(case, cluster, plan, fits, before):
            tally.differences.append(f"seed {seed}, order {order}: {problem}")


def problems(
    case: Case, cluster: Cluster, plan: GroupPlan, fits: bool, before: list[dict[str, object]]
) -> list[str]:
    """Return what is wrong with a plan."""
    found = []
    if plan.verdict is not EXPECTED[fits]:
        found.append(
            f"{plan.verdict.value}, expected {EXPECTED[fits].value}; {plan.status.message}"
        )
    if plan.verdict is Verdict.FITS:
        found += _wrong_placement(case, cluster, plan)
    else:
        if cluster.facts() != before:
            found.append("a refusal left something in the snapshot")
        if plan.placed or not plan.refused or len(plan.status.message) >= 1024:
            found.append(f"a refusal without its facts: {plan}")
    found += _wrong_columns(cluster.snapshot)
    return found


def _wrong_placement(case: Case, cluster: Cluster, plan: GroupPlan) -> list[str]:
    found = []
    if len(plan.placed) < case.rules.minimum:
        found.append(f"only {len(plan.placed)} members")
    key = case.rules.topology_key
    values = set()
    for member in plan.placed:
        info = cluster.snapshot.get(member.decision.node_name)
        assert info is not None
        values.add(info.labels.get(key))
        if member.decision.info.uid not in info.pods:
            found.append("a member is not in the snapshot")
    if key and (len(values) > 1 or values == {None}):
        found.append(f"members in the domains {values}")
    return found


def _wrong_columns(snapshot: Snapshot) -> list[str]:
    anew = Columns()
    for info in snapshot.columns.node_infos:
        anew.put(info.clone())
    for name in ("allocatable", "requested", "nonzero_requested"):
        if not np.array_equal(getattr(anew, name), getattr(snapshot.columns, name)):
            return [f"the column {name} is not what it would be when built anew"]
    return []


def campaign(console: Console, cases: int, seed: int) -> int:
    """Compare so many cases; return 0 when nothing differs, 1 otherwise."""
    framework, tally = default_framework(), Tally()
    for index in range(cases):
        compare(seed * 1_000_000 + index, framework, tally)
    console.print(f"seed {seed}: {tally.text()}", markup=False, highlight=False)
    return 1 if tally.differences else 0
