"""How long the decision about a gang takes, by members, nodes and racks.

``python -m tests.bench.gang_plans``

Only the planner is measured: placing all members in the snapshot, or finding out that they do not
fit. Each figure is the median of several plans after a first one, all undone in between.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from plugins.framework.attempt_budget import UNLIMITED
from scheduler.pod_groups import GroupTask
from scheduler.pod_groups.planner import GroupPlanner
from tests.builders import node, pod
from tests.scheduler.pod_groups.groups import Cluster, default_framework, rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scheduler.pod_groups import GroupPlan
    from tests.builders import PodBuilder

RACK = "rack"
RUNNING = 10
"""Pods that run on each node."""


@dataclass(frozen=True)
class Size:
    """A gang and a cluster.

    Parameters
    ----------
    kind
        ``like`` members, an ``indexed`` job whose labels all differ, ``shapes`` of ten sizes, or
        members that keep ``apart``.
    spare
        Members that fit: fewer than there are for a refusal.
    racks
        Required when not 0.
    """

    kind: str
    members: int
    nodes: int = 5_000
    racks: int = 0
    fits: bool = True

    def text(self) -> str:
        """Return the row's heading."""
        racks = f", {self.racks} racks" if self.racks else ""
        refused = "" if self.fits else ", one too many"
        return f"{self.kind}: {self.members} on {self.nodes}{racks}{refused}"


def sizes() -> Iterator[Size]:
    """Yield what is measured."""
    for members in (10, 100, 500, 1_000, 2_000, 5_000):
        yield Size("like", members)
    for members in (100, 500, 1_000):
        yield Size("like", members, fits=False)
    for nodes in (500, 1_000, 2_000, 10_000):
        yield Size("like", 500, nodes)
    for racks in (10, 50, 250):
        yield Size("like", 500 if racks < 250 else 100, racks=racks)
    yield Size("like", 500, racks=50, fits=False)
    yield Size("indexed", 500)
    yield Size("indexed", 1_000)
    yield Size("shapes", 500)
    yield Size("shapes", 500, racks=50)
    yield Size("shapes", 500, fits=False)
    yield Size("apart", 500)
    yield Size("apart", 500, 499, fits=False)


def gang(size: Size) -> list[PodBuilder]:
    """Return the members of a gang."""
    base = pod("x").label("app", "gang").request(cpu="900m", memory="1Gi").default_tolerations()
    if size.kind == "apart":
        base = base.pod_anti_affinity("kubernetes.io/hostname", app="gang")
    members = []
    for index in range(size.members):
        made = base.named(f"gang-{index}")
        if size.kind == "indexed":
            made = made.label("batch.kubernetes.io/job-completion-index", str(index))
        if size.kind == "shapes":
            made = made.request(cpu=f"{500 + 100 * (index % 10)}m")
        members.append(made)
    return members


def cluster(size: Size) -> Cluster:
    """Return a cluster in which the gang fits, or all but one of its members do."""
    nodes = []
    running = [pod("x").request(cpu="100m", memory="128Mi").named(f"r{i}") for i in range(RUNNING)]
    slots = 12 if size.racks else 3
    room = size.members - 1
    for index in range(size.nodes):
        cpu = 1_000 + 900 * slots
        if not size.fits and size.kind != "apart":
            rack = index % size.racks if size.racks else 0
            here = min(slots, room) if rack == 0 else 0
            room -= here
            cpu = 1_000 + 900 * here
        made = node(f"n{index}").capacity(cpu=f"{cpu}m", memory="64Gi", pods="110")
        made = made.label("kubernetes.io/hostname", f"n{index}").zone(f"z{index % 3}")
        if size.racks:
            made = made.label(RACK, f"r{index % size.racks}")
        own = [each.named(f"{each.build().metadata.name}-{index}") for each in running]
        nodes.append(made.info(*own))
    return Cluster(nodes, framework=FRAMEWORK)


FRAMEWORK = default_framework()


def measure(size: Size, rounds: int) -> tuple[float, float, float, GroupPlan]:
    """Return the first and the median time, the least CPU time in ms, and the last plan."""
    made = cluster(size)
    group = rules(size.members, topology=RACK if size.racks else "")
    infos = [member.info() for member in gang(size)]
    task = GroupTask(group, FRAMEWORK, infos, size.members, UNLIMITED)
    times, used = [], []
    for _ in range(rounds + 1):
        planner = GroupPlanner(made.cycle)
        began, cpu = perf_counter(), thread_time()
        plan = planner.plan(task)
        used.append((thread_time() - cpu) * 1e3)
        times.append((perf_counter() - began) * 1e3)
        _undo(made, plan)
    return times[0], statistics.median(times[1:]), min(used), plan


def _undo(made: Cluster, plan: GroupPlan) -> None:
    for member in plan.placed:
        decision = member.decision
        FRAMEWORK.run_unreserve(member.state, decision.info, decision.node_name)
        before = made.snapshot.get(decision.node_name)
        assert before is not None
        after = before.clone()
        after.remove_pod(decision.info.uid)
        made.snapshot.put(after)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gang_plans")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose heading contains this")
    options = parser.parse_args(arguments)
    print(f"{'':<44}{'first ms':>9}{'median ms':>10}{'CPU ms':>8}{'us/member':>10}  verdict")
    for size in sizes():
        if options.only not in size.text():
            continue
        first, median, cpu, plan = measure(size, options.rounds)
        each = cpu * 1e3 / size.members
        figures = f"{first:9.1f}{median:10.1f}{cpu:8.1f}{each:10.1f}"
        verdict = f"{plan.verdict.value} ({plan.counted} counted)"
        print(f"{size.text():<44}{figures}  {verdict}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
