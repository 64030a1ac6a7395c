"""Victims for groups: for the placement as a whole, or none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace as changed

from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupRules, GroupSource
from plugins.framework.attempt_budget import UNLIMITED, AttemptBudget
from plugins.framework.status import Status
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.pod_groups import GroupPlanner, GroupTask
from scheduler.pod_groups.preemption import GroupPreemption, GroupVictims
from tests.builders import node, pod
from tests.gangs.random_victims import large_case, random_case
from tests.gangs.victims import Tally, check, compare
from tests.plugins.default_preemption.stage import Stage
from tests.plugins.default_preemption.test_victims import budget
from tests.pod_group_builders import x_group
from tests.scheduler.pod_groups.test_undo import Ledger, profile

if TYPE_CHECKING:
    from scheduler.runtime.framework_runner import FrameworkRunner
    from tests.builders import NodeBuilder, PodBuilder

RULES = GroupRules(GroupKey("default", "mine", GroupSource.LABEL), "uid-mine")
NOW_S = 1_735_689_600.0
"""2025-01-01T00:00:00Z."""


def low(name: str, node_name: str, priority: int = 0, *, cpu: str = "1") -> PodBuilder:
    return pod(name).priority(priority).request(cpu=cpu).on(node_name)


def nodes(count: int, cpu: str = "2") -> list[NodeBuilder]:
    return [node(f"n{at}").capacity(cpu=cpu).label("rack", f"r{at % 2}") for at in range(count)]


def members(count: int, cpu: str = "1", priority: int = 10) -> list[PodBuilder]:
    made = (pod(f"m{at}").priority(priority).request(cpu=cpu) for at in range(count))
    return [each.label(GROUP_LABEL, "mine") for each in made]


def find(
    stage: Stage,
    group: list[PodBuilder],
    rules: GroupRules = RULES,
    limit: AttemptBudget = UNLIMITED,
    framework: FrameworkRunner | None = None,
) -> GroupVictims | Status:
    """Find victims for a group of which all members are needed."""
    snapshot = stage.snapshot
    planner = GroupPlanner(SchedulingCycle(snapshot, HostSelector(1)))
    infos = [each.info() for each in group]
    task = GroupTask(rules, framework or stage.framework, infos, len(infos), limit)
    preemption = GroupPreemption(snapshot, stage.plugin.handle, lambda: NOW_S)
    return preemption.find(task, planner)


def names(found: GroupVictims | Status) -> list[str]:
    """Return the names of victims, in alphabetical order."""
    assert isinstance(found, GroupVictims), found
    return sorted(info.name for info in found.pods)


def test_victims_are_chosen_for_all_members_and_each_member_has_a_node() -> None:
    stage = Stage(*nodes(2), *(low(f"p{at}", f"n{at % 2}") for at in range(4)))
    found = find(stage, members(3))
    assert len(names(found)) == 3
    assert isinstance(found, GroupVictims)
    assert sorted(info.name for info, _ in found.members) == ["m0", "m1", "m2"]
    free = dict.fromkeys(("n0", "n1"), 2)
    for at in range(4):
        free[f"n{at % 2}"] -= f"p{at}" not in names(found)
    for _, node_name in found.members:
        free[node_name] -= 1
    assert min(free.values()) >= 0


@pytest.mark.parametrize("alike", [True, False], ids=["alike", "unlike"])
def test_nobody_goes_where_one_member_cannot_fit_even_then(alike: bool) -> None:
    stage = Stage(*nodes(2), *(low(f"p{at}", f"n{at % 2}") for at in range(3)))
    group = members(5) if alike else [*members(1, "2"), *members(3)[1:], *members(4)[3:]]
    found = find(stage, group)
    assert isinstance(found, Status)
    assert found.message.startswith("preemption: without all pods of a priority below 10 ")


def test_the_snapshot_is_as_it_was() -> None:
    stage = Stage(*nodes(3), *(low(f"p{at}", f"n{at % 3}") for at in range(6)))
    before = [info.facts() for info in stage.snapshot.columns.node_infos]
    find(stage, [*members(2), *members(3, "2")[2:]])
    assert [info.facts() for info in stage.snapshot.columns.node_infos] == before


def test_nothing_stays_reserved() -> None:
    ledger = Ledger()
    stage = Stage(*nodes(3), *(low(f"p{at}", f"n{at % 3}") for at in range(6)))
    assert names(find(stage, members(2, "2"), framework=profile(ledger)))
    assert ledger.held == {}


def test_the_lowest_priorities_go() -> None:
    running = [low(f"p{at}", f"n{at}", at, cpu="2") for at in range(5)]
    assert names(find(Stage(*nodes(5), *running), members(2, "2"))) == ["p0", "p1"]


def test_budgets_are_respected_where_possible_and_violations_are_shown() -> None:
    running = [low(f"p{at}", f"n{at}", cpu="2") for at in range(3)]
    running[0], running[1] = (each.label("app", "db") for each in running[:2])
    stage = Stage(*nodes(3), *running, budget(1, app="db"))
    found = find(stage, members(2, "2"))
    assert "p2" in names(found)
    assert isinstance(found, GroupVictims)
    assert found.pdb_violations == 0
    found = find(stage, members(3, "2"))
    assert isinstance(found, GroupVictims)
    assert found.pdb_violations == 1


# --- who may preempt ------------------------------------------------------------------------------


def test_one_member_that_never_preempts_binds_the_group() -> None:
    stage = Stage(*nodes(1), low("p", "n0", cpu="2"))
    first, second = members(2)
    found = find(stage, [first, second.never_preempts()])
    assert isinstance(found, Status)
    assert found.message == (
        "preemption: pod default/m1: not eligible due to preemptionPolicy=Never."
    )


def test_a_group_that_never_preempts_has_no_victims() -> None:
    stage = Stage(*nodes(1), low("p", "n0", cpu="2"))
    found = find(stage, members(2), changed(RULES, never_preempts=True))
    assert isinstance(found, Status)
    assert found.message == "preemption: not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize(
    ("priority", "victims"),
    [(None, ["p3"]), (5, ["p3"]), (3, None)],
    ids=["own", "higher", "equal"],
)
def test_the_priority_is_the_groups_or_the_lowest_of_its_members(
    priority: int | None, victims: list[str] | None
) -> None:
    stage = Stage(*nodes(1), low("p3", "n0", 3, cpu="2"))
    group = [*members(1, priority=50), *members(2, priority=4)[1:]]
    found = find(stage, group, changed(RULES, priority=priority))
    assert isinstance(found, Status) if victims is None else names(found) == victims


# --- gangs as victims -----------------------------------------------------------------------------


def gang(stage: Stage, minimum: int, *node_names: str) -> None:
    """Let a gang run."""
    key = GroupKey("default", "g", GroupSource.LABEL)
    stage.cluster.known.pod_groups.x_pod_group_changed(None, x_group(minimum, key=key))
    for at, name in enumerate(node_names):
        stage.cluster.add_pod(low(f"g{at}", name, cpu="2").label(GROUP_LABEL, "g").build())


def test_a_gang_loses_its_surplus_or_everybody() -> None:
    stage = Stage(*nodes(3))
    gang(stage, 2, "n0", "n1", "n2")
    assert len(names(find(stage, members(1, "2")))) == 1
    found = find(stage, members(2, "2"))
    assert names(found) == ["g0", "g1", "g2"]
    assert isinstance(found, GroupVictims)
    assert (found.gang_members, len(found.gangs)) == (3, 1)


def test_pods_go_before_a_gang_of_their_priority() -> None:
    stage = Stage(*nodes(4), low("p2", "n2", cpu="2"), low("p3", "n3", cpu="2"))
    gang(stage, 2, "n0", "n1")
    assert names(find(stage, members(2, "2"))) == ["p2", "p3"]


def test_a_gang_below_its_minimum_goes_whole_too() -> None:
    stage = Stage(*nodes(3), low("p", "n2", 5, cpu="2"))
    gang(stage, 3, "n0", "n1")
    assert names(find(stage, members(1, "2"))) == ["g0", "g1"]


def test_members_of_the_group_itself_stay() -> None:
    stage = Stage(*nodes(2), low("p", "n0", 5, cpu="2"))
    key = RULES.key
    stage.cluster.known.pod_groups.x_pod_group_changed(None, x_group(2, key=key))
    own = low("own", "n1", cpu="2").label(GROUP_LABEL, "mine")
    stage.cluster.add_pod(own.build())
    assert names(find(stage, members(1, "2"))) == ["p"]


# --- topology -------------------------------------------------------------------------------------


def test_with_a_required_topology_the_cheapest_domain_is_taken() -> None:
    running = [low(f"p{at}", f"n{at}", at % 2, cpu="2") for at in range(4)]
    stage = Stage(*nodes(4), *running)
    found = find(stage, members(2, "2"), changed(RULES, topology_key="rack"))
    assert names(found) == ["p0", "p2"]
    assert isinstance(found, GroupVictims)
    assert (found.domain, {name for _, name in found.members}) == ("r0", {"n0", "n2"})


def test_equally_cheap_domains_come_in_the_order_of_nodes_whatever_labels_there_were() -> None:
    running = [low(f"p{at}", f"n{at}", cpu="2") for at in range(4)]
    renamed = [each.label("rack", f"r{1 - at % 2}") for at, each in enumerate(nodes(4))]
    old, new = Stage(*nodes(4), *running), Stage(*renamed, *running)
    old.snapshot.columns.labels.get("rack")
    for each in renamed:
        old.cluster.cache.update_node(each.build())
    ours, theirs = (
        find(stage, members(2, "2"), changed(RULES, topology_key="rack")) for stage in (old, new)
    )
    assert isinstance(ours, GroupVictims)
    assert isinstance(theirs, GroupVictims)
    assert (names(ours), ours.domain) == (names(theirs), theirs.domain) == (["p1", "p3"], "r0")


def test_rooms_of_several_domains_do_not_add_up() -> None:
    running = [low(f"p{at}", f"n{at}", cpu="2") for at in range(4)]
    found = find(Stage(*nodes(4), *running), members(3, "2"), changed(RULES, topology_key="rack"))
    assert isinstance(found, Status)
    assert "2 of 3 members would fit" in found.message


def test_members_that_run_fix_the_domain() -> None:
    running = [low(f"p{at}", f"n{at}", at % 2) for at in range(4)]
    own = low("own", "n1", 10).label(GROUP_LABEL, "mine")
    found = find(
        Stage(*nodes(4), *running, own), members(1, "2"), changed(RULES, topology_key="rack")
    )
    assert names(found) == ["p3"]


# --- members with terms ---------------------------------------------------------------------------


def test_members_that_keep_apart_get_a_node_each() -> None:
    running = [low(f"p{at}", f"n{at // 2}", at // 2) for at in range(6)]
    hosts = [each.label("kubernetes.io/hostname", f"n{at}") for at, each in enumerate(nodes(3))]
    group = [
        each.pod_anti_affinity("kubernetes.io/hostname", **{GROUP_LABEL: "mine"})
        for each in members(2)
    ]
    found = find(Stage(*hosts, *running), group)
    assert len(names(found)) == 2
    assert isinstance(found, GroupVictims)
    assert {name for _, name in found.members} == {"n0", "n1"}


# --- pods that leave anyway -----------------------------------------------------------------------


def test_a_group_waits_for_pods_that_leave_anyway() -> None:
    leaving = low("leaving", "n0", cpu="2").terminating("2025-01-01T00:00:30Z")
    stage = Stage(*nodes(2), leaving, low("p", "n1", cpu="2"))
    found = find(stage, members(2))
    assert names(found) == []
    assert isinstance(found, GroupVictims)
    assert [name for _, name in found.members] == ["n0", "n0"]


def test_unlike_members_wait_for_pods_that_leave_anyway() -> None:
    leaving = low("leaving", "n0", cpu="2").terminating("2025-01-01T00:00:30Z")
    stage = Stage(*nodes(2, "3"), leaving, low("p", "n1", 20, cpu="3"))
    assert names(find(stage, [*members(1), *members(2, "2")[1:]])) == []


def test_it_waits_for_victims_that_were_chosen_a_moment_ago() -> None:
    stage = Stage(*nodes(2), low("first", "n0", cpu="2"), low("p", "n1", cpu="2"))
    stage.preemption.about_to_leave.add(low("first", "n0").info().uid)
    assert names(find(stage, members(2))) == []
    assert names(find(stage, members(4))) == ["p"]


def test_a_pod_that_should_be_gone_is_not_waited_for() -> None:
    stuck = low("stuck", "n0", cpu="2").terminating("2024-12-31T23:00:00Z")
    stage = Stage(*nodes(2), stuck, low("p", "n1", cpu="2"))
    assert names(find(stage, members(2))) == ["p"]


@pytest.mark.parametrize(("taken", "victim"), [("n0", "p1"), ("n1", "p0")])
def test_room_that_others_are_nominated_for_is_not_counted(taken: str, victim: str) -> None:
    stage = Stage(*nodes(2), low("p0", "n0", cpu="2"), low("p1", "n1", cpu="2"))
    other = pod("other").priority(10).request(cpu="2").nominated(taken)
    stage.cluster.add_pod(other.build())
    assert names(find(stage, members(2))) == [victim]


# --- bounds ---------------------------------------------------------------------------------------


def test_many_pods_are_searched_by_columns() -> None:
    """More pods than all choices of which are looked at."""
    running = [low(f"p{at}", f"n{at % 40}", at % 40) for at in range(80)]
    stage = Stage(*nodes(40), *running)
    assert names(find(stage, members(3, "2"))) == sorted(f"p{at}" for at in (0, 1, 2, 40, 41, 42))


def test_unlike_members_evict_no_more_than_they_need_among_many_pods() -> None:
    running = [low(f"p{at}", f"n{at % 40}") for at in range(80)]
    group = [*members(3, "2"), *members(7)[3:]]
    assert len(names(find(Stage(*nodes(40), *running), group))) == 10


def test_a_search_without_time_ends_with_a_reason() -> None:
    ticks = iter(range(10**9))
    limit = AttemptBudget(3.0, lambda: float(next(ticks)))
    stage = Stage(*nodes(2), *(low(f"p{at}", f"n{at % 2}") for at in range(4)))
    found = find(stage, [*members(2), *members(3, "2")[2:]], limit=limit)
    assert isinstance(found, Status)
    assert found.message.startswith("preemption: ")


@pytest.mark.parametrize("block", range(4))
def test_victims_are_the_cheapest_of_all_choices(block: int) -> None:
    """`make gangs KIND=victims` compares more cases."""
    tally = Tally()
    for seed in range(30 * block, 30 * block + 30):
        compare(random_case(seed), f"seed {seed}", tally)
    assert tally.wrong == []
    assert tally.dearer == []


@pytest.mark.parametrize("block", range(2))
def test_victims_among_many_pods_are_minimal_and_leave_no_gang_below_its_minimum(
    block: int,
) -> None:
    tally = Tally()
    for seed in range(6 * block, 6 * block + 6):
        check(large_case(seed), f"seed {seed}", tally)
    assert tally.wrong == []
    assert tally.outcomes["large: victims"]
