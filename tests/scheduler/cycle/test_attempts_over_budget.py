"""An attempt that takes too much of the thread is broken off, and can be replayed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.attempt_budget import AttemptBudget, ReplayedBudget
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, Plugin, ScorePlugin
from plugins.framework.status import SUCCESS, Code, unschedulable
from plugins.priority_sort import PrioritySort
from scheduler.config.extension_points import POINTS, points_of
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import BROKEN_OFF, SchedulingCycle
from scheduler.metrics import Metrics
from scheduler.runtime.framework_runner import FrameworkRunner
from tests.builders import node, pod
from tests.fakes.clock import FakeClock
from tests.scheduler.parts import NoBinding
from tests.scheduler.queueing.stage import Stage

if TYPE_CHECKING:
    from scheduler.decision.decision import Decision

WEB = pod("web").info()


class Dear(FilterPlugin, ScorePlugin):
    """Needs a tenth of a second for each question about nodes, and looks at the budget in it."""

    name = "Dear"

    def __init__(self, clock: FakeClock, name: str = "Dear", *, signs: bool = False) -> None:
        super().__init__(None, NoBinding())
        self.name = name
        self.clock = clock
        self.signs = signs
        self.asked = 0

    def signature(self, info):
        return () if self.signs else None

    def filter_one(self, state, info, node_info):
        self.asked += 1
        self.clock.advance(0.1)
        return SUCCESS

    def score_one(self, state, info, node_info):
        self.clock.advance(0.1)
        return 1


def framework(*plugins: Plugin) -> FrameworkRunner:
    every = [PrioritySort(None, NoBinding()), *plugins, DefaultBinder(None, NoBinding())]
    points = {point: [p for p in every if point in points_of(type(p))] for point in POINTS}
    return FrameworkRunner("berth", points, {each.name: 1 for each in plugins})


def cycle() -> SchedulingCycle:
    infos = [node(name).capacity(cpu="4").info() for name in "abcd"]
    return SchedulingCycle(Snapshot.of(infos), HostSelector(1))


def outcome(decision: Decision) -> tuple[object, ...]:
    return decision.node_name, decision.status, decision.budget_s, decision.ran_out_at


@pytest.mark.parametrize("signs", [True, False], ids=["shared verdicts", "asked anew"])
def test_an_attempt_that_exceeds_its_budget_has_no_verdict(signs):
    clock = FakeClock()
    runner = framework(Dear(clock, signs=signs), Dear(clock, "Dearer", signs=signs))
    decision = cycle().decide(runner, CycleState(AttemptBudget(0.25, clock)), WEB)
    assert decision.is_over_budget
    assert decision.status.code is Code.ERROR
    assert decision.message().startswith(BROKEN_OFF)
    assert "0.25 s" in decision.message()
    assert decision.nominated_node_name == ""
    assert decision.used_s >= 0.25


@pytest.mark.parametrize("signs", [True, False], ids=["shared verdicts", "asked anew"])
def test_enough_is_enough_and_nothing_half_done_is_used(signs):
    clock = FakeClock()
    plugin = Dear(clock, signs=signs)
    runner, decider = framework(plugin, Dear(clock, "Dearer", signs=signs)), cycle()
    assert decider.decide(runner, CycleState(AttemptBudget(0.25, clock)), WEB).is_over_budget
    asked = plugin.asked
    decision = decider.decide(runner, CycleState(AttemptBudget(60, clock)), WEB)
    assert decision.is_placed
    assert plugin.asked >= 2 * asked, "what was asked before is asked again"
    assert decision.ran_out_at is None


@pytest.mark.parametrize("signs", [True, False], ids=["shared verdicts", "asked anew"])
@pytest.mark.parametrize("limit_s", [0.05, 0.25, 0.45, 0.85, 60.0])
def test_a_replay_ends_where_the_attempt_ended(signs, limit_s):
    clock = FakeClock()
    dear = Dear(clock, signs=signs), Dear(clock, "Dearer", signs=signs)
    lived = cycle().decide(framework(*dear), CycleState(AttemptBudget(limit_s, clock)), WEB)

    still = FakeClock()
    again = Dear(still, signs=signs), Dear(still, "Dearer", signs=signs)
    budget = ReplayedBudget(limit_s, lived.ran_out_at)
    replayed = cycle().decide(framework(*again), CycleState(budget), WEB)
    assert replayed.is_over_budget == lived.is_over_budget
    if lived.is_over_budget:
        assert outcome(replayed) == outcome(lived)
    assert replayed.node_name == lived.node_name
    assert [each.asked for each in again] == [each.asked for each in dear]


def test_an_ordinary_pod_does_not_wait_for_eighty_whose_first_attempts_are_costly():
    clock = FakeClock()
    stage = Stage({"Dear": ()}, attempt_budget_s=0.25)
    dear, ordinary = Dear(clock), framework()
    dear.filter_one = partial(refuse_slowly, clock)
    costly, decider = framework(dear), cycle()
    for index in range(80):
        stage.queue.add(pod(f"dear-{index}", namespace="tenant").scheduler("berth").info())
    waits_s, worked_s, began_s = [], 0.0, stage.now_s
    while stage.now_s < began_s + 30:
        stage.queue.add(pod("web", namespace="other").scheduler("berth").info())
        came_s = stage.now_s
        while True:
            queued = stage.pop()
            budget, before_s = AttemptBudget(queued.allowance_s, clock), clock()
            is_dear = queued.info.namespace == "tenant"
            runner = costly if is_dear else ordinary
            decision = decider.decide(runner, CycleState(budget), queued.info)
            over, used_s = decision.is_over_budget, clock() - before_s
            if over or queued.prepaid_s or budget.has_used(stage.queue.costly_s):
                stage.queue.settle_budget(queued, used_s, over=over)
            stage.now_s += used_s
            worked_s += used_s
            if not is_dear:
                break
            stage.refuse(queued, *(() if over else ("Dear",)))
            stage.queue.activate([queued.info.uid])
        waits_s.append(stage.now_s - came_s)
        stage.queue.done(queued.info.uid)
        stage.now_s += 0.01
    assert max(waits_s) < 0.25 + 0.5
    assert sorted(waits_s)[len(waits_s) * 98 // 100] <= 0.25
    assert worked_s <= 0.1 * 30 + 1.0


def refuse_slowly(clock, state, info, node_info):
    """Need 200 ms for four nodes, in small steps."""
    for _ in range(10):
        state.budget.check()
        clock.advance(0.005)
    return unschedulable("no")


def test_the_budget_of_an_attempt_is_not_that_of_the_next_one_like_it():
    clock = FakeClock()
    runner, decider = framework(Dear(clock, signs=True)), cycle()
    for _ in range(3):
        budget = AttemptBudget(1.0, clock)
        assert decider.decide(runner, CycleState(budget), WEB).is_placed
        clock.advance(60)


def test_namespaces_in_the_metric_are_few():
    metrics = Metrics()
    for index in range(80):
        metrics.over_budget(f"ns-{index}")
    lines = [
        line
        for line in metrics.render()[0].decode().splitlines()
        if line.startswith("berth_attempts_over_budget_total{")
    ]
    assert len(lines) == 51
    assert 'berth_attempts_over_budget_total{namespace="other"} 30' in lines
