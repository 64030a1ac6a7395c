from __future__ import annotations

import re

import numpy as np
import pytest

from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.framework.results import ALL_PASS, NodeVerdicts, PreFilterResult
from plugins.framework.status import SKIP, Code, Status, unresolvable, unschedulable
from plugins.priority_sort import PrioritySort
from scheduler.config.extension_points import POINTS, points_of
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.runtime.framework_runner import FrameworkRunner
from tests.builders import node, pod

NOT_LISTED = unschedulable("not on the list")
CANNOT_SAY = Status(Code.ERROR, ("out of order",))


class Handle:
    async def bind_pod(self, info, node_name):
        raise AssertionError("a cycle binds nothing")


class ByName(FilterPlugin):
    """Lets only nodes pass whose name is in ``names``."""

    name = "ByName"

    def __init__(self, *names: str, status: Status = NOT_LISTED) -> None:
        super().__init__(None, Handle())
        self.names = names
        self.status = status

    def filter_one(self, state, info, node_info):
        return Status(Code.SUCCESS) if node_info.name in self.names else self.status


class Points(ScorePlugin):
    """Gives each node the points that ``given`` says, 0 for others."""

    name = "Points"

    def __init__(self, **given: int) -> None:
        super().__init__(None, Handle())
        self.given = given

    def score_one(self, state, info, node_info):
        return self.given.get(node_info.name, 0)


class Narrow(PreFilterPlugin):
    """Limits the search to some names, or answers something else."""

    name = "Narrow"

    def __init__(self, result: PreFilterResult, name: str = "Narrow") -> None:
        super().__init__(None, Handle())
        self.result = result
        self.name = name

    def pre_filter(self, state, info, nodes):
        return self.result


class Broken(FilterPlugin):
    name = "Broken"

    def filter_one(self, state, info, node_info):
        raise RuntimeError("it fell over")


class BrokenOn(ByName):
    """Fails when it is asked about one of the nodes in ``names``, and rejects ``b``."""

    name = "BrokenOn"

    def filter_one(self, state, info, node_info):
        if node_info.name in self.names:
            raise RuntimeError("it fell over")
        return NOT_LISTED if node_info.name == "b" else Status(Code.SUCCESS)


def framework(*plugins: Plugin, weights=None, percentage: int = 0) -> FrameworkRunner:
    every = [PrioritySort(None, Handle()), *plugins, DefaultBinder(None, Handle())]
    points = {point: [p for p in every if point in points_of(type(p))] for point in POINTS}
    given = {"Points": 1, **(weights or {})}
    return FrameworkRunner("berth", points, given, percentage)


def cycle_over(*names: str, zones: int = 1, seed: int = 1) -> SchedulingCycle:
    infos = [
        node(name).zone(f"z{index % zones}").capacity(cpu="4").info()
        for index, name in enumerate(names)
    ]
    return SchedulingCycle(Snapshot.of(infos), HostSelector(seed))


def decide(cycle: SchedulingCycle, runner: FrameworkRunner):
    return cycle.decide(runner, CycleState(), pod("p").info())


def test_the_highest_score_wins():
    decision = decide(cycle_over("a", "b", "c"), framework(Points(a=1, b=7, c=3)))
    assert (decision.node_name, decision.score, decision.feasible_nodes) == ("b", 7, 3)


@pytest.mark.parametrize(
    ("points", "runner_up"),
    [
        pytest.param({"b": 7, "c": 5}, ("c", 5), id="it has less"),
        pytest.param({"b": 7}, ("a", 0), id="the others are equal"),
    ],
)
def test_the_second_best_node_is_named(points, runner_up):
    decision = decide(cycle_over("a", "b", "c"), framework(Points(**points)))
    assert (decision.node_name, decision.runner_up) == ("b", runner_up)


def test_a_single_feasible_node_has_no_second_best():
    decision = decide(cycle_over("a", "b"), framework(ByName("b"), Points(b=7)))
    assert decision.runner_up is None


def test_weights_multiply_scores():
    runner = framework(Points(a=10, b=7), weights={"Points": 5})
    assert decide(cycle_over("a", "b"), runner).score == 50


def test_only_feasible_nodes_are_scored():
    decision = decide(cycle_over("a", "b", "c"), framework(ByName("a", "c"), Points(a=1, b=9, c=3)))
    assert decision.node_name == "c"


def test_with_one_feasible_node_nothing_is_scored():
    class Never(ScorePlugin):
        name = "Points"

        def score_one(self, state, info, node_info):
            raise AssertionError("there is nothing to compare")

    decision = decide(cycle_over("a", "b"), framework(ByName("b"), Never(None, Handle())))
    assert (decision.node_name, decision.score) == ("b", None)


def test_the_first_filter_that_rejects_a_node_is_blamed_for_it():
    second = ByName("b", status=unresolvable("second"))
    runner = framework(ByName("a", status=unschedulable("first")), second)
    diagnosis = decide(cycle_over("a", "b", "c"), runner).diagnosis
    assert {(g.status.message, g.node_names) for g in diagnosis.rejected} == {
        ("first", ("b", "c")),
        ("second", ("a",)),
    }


def test_a_cluster_without_nodes_is_a_rejection():
    decision = decide(cycle_over(), framework())
    assert decision.status.is_rejection
    assert decision.message() == "no nodes available to schedule pods"


class TestPreFilters:
    def test_narrowing_leaves_the_named_nodes(self):
        runner = framework(Narrow(PreFilterResult(node_names=frozenset({"b", "gone"}))))
        assert decide(cycle_over("a", "b", "c"), runner).node_name == "b"

    def test_nodes_narrowed_away_are_told_with_the_plugin(self):
        narrow = Narrow(PreFilterResult(node_names=frozenset({"b"})))
        decision = decide(cycle_over("a", "b", "c"), framework(narrow, ByName()))
        assert decision.message() == (
            "0/3 nodes are available: 1 not on the list, "
            "2 node(s) didn't satisfy plugin(s) [Narrow]."
        )

    def test_names_that_do_not_exist_leave_no_node(self):
        runner = framework(Narrow(PreFilterResult(node_names=frozenset({"gone"}))))
        decision = decide(cycle_over("a", "b"), runner)
        assert decision.message() == (
            "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [Narrow]."
        )

    def test_limits_that_leave_nothing_name_their_plugins(self):
        one = Narrow(PreFilterResult(node_names=frozenset({"a"})), "One")
        two = Narrow(PreFilterResult(node_names=frozenset({"b"})), "Two")
        decision = decide(cycle_over("a", "b"), framework(one, two))
        assert decision.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert decision.message() == (
            "0/2 nodes are available: node(s) didn't satisfy plugin(s) [One Two] simultaneously."
        )
        assert decision.diagnosis.unschedulable_plugins == {"One", "Two"}

    def test_a_rejection_holds_for_all_nodes(self):
        runner = framework(Narrow(PreFilterResult(unresolvable("no such volume"))))
        decision = decide(cycle_over("a"), runner)
        assert decision.message() == "0/1 nodes are available: no such volume."
        assert decision.diagnosis.unschedulable_plugins == {"Narrow"}

    def test_skip_passes_over_the_plugin_s_filter(self):
        class SkipsItself(ByName, PreFilterPlugin):
            name = "SkipsItself"

            def pre_filter(self, state, info, nodes):
                return PreFilterResult(SKIP)

        assert decide(cycle_over("a"), framework(SkipsItself())).is_placed


class TestFailures:
    def test_a_filter_may_fail_on_nodes_that_are_out_already(self):
        decision = decide(cycle_over("a", "b"), framework(ByName("b"), BrokenOn("a")))
        who = {each.status.plugin: each.node_names for each in decision.diagnosis.rejected}
        assert who == {"ByName": ("a",), "BrokenOn": ("b",)}

    def test_a_filter_that_fails_on_a_node_that_counts_ends_the_cycle(self):
        decision = decide(cycle_over("a", "b", "c"), framework(ByName("a", "b"), BrokenOn("a")))
        assert decision.status.code is Code.ERROR

    def test_a_filter_that_cannot_say_of_any_node_that_is_left_ends_the_cycle(self):
        runner = framework(ByName("b"), ByName(status=CANNOT_SAY))
        decision = decide(cycle_over("a", "b"), runner)
        assert decision.status == Status(
            Code.ERROR, ('running "ByName" filter plugin: out of order',), "ByName"
        )
        assert decision.nominated_node_name == ""

    def test_where_another_node_is_feasible_it_is_taken(self):
        decision = decide(cycle_over("a", "b"), framework(ByName("b", status=CANNOT_SAY)))
        assert decision.node_name == "b"

    def test_a_filter_that_raises_is_an_error_of_ours(self):
        decision = decide(cycle_over("a"), framework(Broken(None, Handle())))
        assert decision.status.code is Code.ERROR
        assert decision.status.plugin == "Broken"
        assert "it fell over" in decision.message()

    @pytest.mark.parametrize(
        ("scores", "told"),
        [
            pytest.param(np.array([1, 101]), "invalid score 101", id="above 100"),
            pytest.param(np.array([-1, 5]), "invalid score -1", id="below 0"),
            pytest.param(np.array([1]), r"shape \(1,\)", id="wrong shape"),
            pytest.param(np.array([0.5, 1.0]), "float64", id="not integers"),
            pytest.param([1, 2], "list", id="not an array"),
        ],
    )
    def test_scores_that_are_none_are_refused(self, scores, told):
        class Odd(ScorePlugin):
            name = "Points"

            def score(self, state, info, nodes):
                return scores

        decision = decide(cycle_over("a", "b"), framework(Odd(None, Handle())))
        assert decision.status.code is Code.ERROR
        assert re.search(told, decision.message())

    def test_pre_score_that_raises_is_an_error_of_ours(self):
        class Odd(PreScorePlugin, Points):
            name = "Points"

            def pre_score(self, state, info, nodes):
                raise ValueError("no")

        decision = decide(cycle_over("a", "b"), framework(Odd()))
        assert decision.status.code is Code.ERROR


class TestSearch:
    NAMES = tuple(f"n{i:03}" for i in range(300))

    def test_by_default_every_node_is_scored(self):
        decision = decide(cycle_over(*self.NAMES), framework(Points()))
        assert (decision.evaluated_nodes, decision.feasible_nodes) == (300, 300)

    @pytest.mark.parametrize(
        ("percentage", "found"),
        [
            pytest.param(50, 150, id="half"),
            pytest.param(10, 100, id="never fewer than 100"),
            pytest.param(100, 300, id="all"),
        ],
    )
    def test_a_share_of_the_nodes_is_enough_if_the_profile_says_so(self, percentage, found):
        runner = framework(Points(), percentage=percentage)
        assert decide(cycle_over(*self.NAMES), runner).feasible_nodes == found

    def test_the_search_moves_on_so_that_every_node_has_its_turn(self):
        cycle = cycle_over(*self.NAMES, zones=3)
        runner = framework(Points(), percentage=34)
        starts = []
        for _ in range(3):
            starts.append(cycle.next_start)
            decide(cycle, runner)
        assert starts == [0, 102, 204]

    def test_infeasible_nodes_do_not_count_as_found(self):
        wanted = ByName(*self.NAMES[::2])
        decision = decide(cycle_over(*self.NAMES), framework(wanted, Points(), percentage=34))
        assert decision.feasible_nodes == 102
        assert decision.evaluated_nodes > 200

    def test_without_scoring_the_first_feasible_node_will_do(self):
        decision = decide(cycle_over(*self.NAMES), framework(ByName(*self.NAMES[5:])))
        assert decision.feasible_nodes == 1

    def test_ties_are_broken_by_the_seed(self):
        def places(seed: int) -> list[str]:
            cycle = cycle_over(*self.NAMES, seed=seed)
            return [decide(cycle, framework(Points())).node_name for _ in range(20)]

        assert places(7) == places(7)
        assert places(7) != places(8)
        assert len(set(places(7))) > 10


def test_verdicts_without_any_rejection_cost_no_mask():
    class Easy(FilterPlugin):
        name = "Easy"

        def filter(self, state, info, nodes) -> NodeVerdicts:
            return ALL_PASS

    runner = framework(Easy(None, Handle()), Points())
    assert decide(cycle_over("a", "b"), runner).feasible_nodes == 2


class TestWhatIfs:
    """The scalar forms, over one node and with pods put on it or taken off."""

    NODE = node("a").capacity(cpu="4").info()

    def test_the_first_filter_that_rejects_a_node_speaks(self):
        runner = framework(ByName("a"), ByName("b", status=unresolvable("second")))
        status = runner.judges.filter_one(CycleState(), pod("p").info(), self.NODE)
        assert (status.message, status.plugin) == ("second", "ByName")

    def test_a_filter_that_raises_is_an_error_of_its_own(self):
        runner = framework(Broken(None, Handle()))
        status = runner.judges.filter_one(CycleState(), pod("p").info(), self.NODE)
        assert (status.code, status.plugin) == (Code.ERROR, "Broken")

    @pytest.mark.parametrize("skipped", [False, True], ids=["asked", "skipped"])
    def test_pre_filters_are_told_of_pods_unless_they_skipped(self, skipped):
        told = []

        class Listens(Narrow):
            def add_pod(self, state, info, added, node_info):
                told.append(("add", added.name))
                return unschedulable("no")

            def remove_pod(self, state, info, removed, node_info):
                told.append(("remove", removed.name))
                return Status(Code.SUCCESS)

        state = CycleState()
        state.skip_filter = {"Narrow"} if skipped else set()
        runner = framework(Listens(PreFilterResult()))
        mine, other = pod("p").info(), pod("other").info()
        added = runner.judges.add_pod(state, mine, other, self.NODE)
        removed = runner.judges.remove_pod(state, mine, other, self.NODE)
        assert told == ([] if skipped else [("add", "other"), ("remove", "other")])
        assert added.code is (Code.SUCCESS if skipped else Code.UNSCHEDULABLE)
        assert removed.is_success


def test_a_plugin_must_have_one_form():
    with pytest.raises(TypeError, match="filter or filter_one"):

        class Neither(FilterPlugin):
            name = "Neither"


def test_a_status_is_neither_true_nor_false():
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(SKIP)
