"""What pods that need more than their budget may take of the thread, and what others notice."""

from __future__ import annotations

from collections import Counter
from itertools import cycle, pairwise
from math import log2
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plugins.framework.cluster_events import NODE_ADD
from scheduler.queueing import QueueState
from scheduler.queueing.budget_accounts import (
    COSTLY,
    CREDIT,
    CREDIT_STEPS,
    SHARE,
    SMALL,
    STEP,
    STEPS,
)
from tests.builders import node, pod
from tests.fakes.clock import FakeClock
from tests.scheduler.queueing.stage import START_S, Stage, version

if TYPE_CHECKING:
    from scheduler.queueing import QueuedPod
    from tests.builders import PodBuilder

LIMIT_S = 0.25
COSTLY_S = LIMIT_S / COSTLY
INNOCENT_S = LIMIT_S / SMALL
"""What a pod may use at least whose namespace owes nothing, until others owe very much."""


def berth(name: str, namespace: str = "default") -> PodBuilder:
    return pod(name, namespace=namespace).scheduler("berth")


def break_off(stage: Stage, queued: QueuedPod) -> QueuedPod:
    """End an attempt that has used all it might."""
    stage.queue.settle_budget(queued, queued.allowance_s, over=True)
    return stage.fail(queued)


def wait_for(stage: Stage, limit_s: float = 1_000.0) -> QueuedPod:
    """Let time pass until a pod can be tried."""
    until_s = stage.now_s + limit_s
    while (queued := stage.queue.pop(0)) is None:
        stage.now_s += 0.05
        assert stage.now_s < until_s, "nobody goes"
    return queued


def test_a_pod_that_exceeds_its_budget_gets_twice_as_much_when_that_is_paid():
    stage = Stage()
    stage.add(berth("web"))
    queued = break_off(stage, stage.pop())
    broken_off_s = stage.now_s
    assert stage.state(berth("web")) is QueueState.BACKOFF
    assert wait_for(stage) is queued
    # Half of the income pays the debt of 0.25 s: 5 s, after which 0.25 s are saved; then all of it.
    assert stage.now_s - broken_off_s == pytest.approx(7.5, abs=0.2)
    assert queued.allowance_s == 0.5
    break_off(stage, queued)
    broken_off_s = stage.now_s
    assert wait_for(stage) is queued
    assert stage.now_s - broken_off_s == pytest.approx(10, abs=0.2)
    assert queued.allowance_s == 1.0


def test_nothing_that_happens_shortens_the_pause():
    stage = Stage()
    stage.add(berth("web"))
    queued = break_off(stage, stage.pop())
    uid = queued.info.uid
    stage.queue.move_all(NODE_ADD, None, node("n").build())
    stage.queue.activate([uid])
    stage.queue.update(queued.info.pod, version(berth("web").label("hurry"), 9))
    stage.queue.flush_backoff()
    stage.queue.flush_unschedulable_leftover()
    stage.queue.policy_changed(frozenset({"berth"}), frozenset({"berth"}))
    stage.now_s += 5
    assert stage.queue.pop(0) is None
    assert stage.queue.counts().backoff == 1


def test_a_gate_does_not_shorten_it_either():
    stage = Stage()
    stage.add(berth("web"))
    queued = break_off(stage, stage.pop())
    stage.queue.update(queued.info.pod, version(berth("web").label("door"), 9))
    stage.queue.policy_changed(frozenset({"berth"}), frozenset({"berth"}))
    assert stage.state(berth("web")) is QueueState.GATED
    stage.door_is_shut = False
    stage.queue.activate([queued.info.uid])
    assert stage.state(berth("web")) is QueueState.BACKOFF
    assert stage.queue.pop(0) is None


def test_a_verdict_that_was_cheap_makes_a_pod_ordinary_again():
    stage = Stage()
    stage.add(berth("web"))
    break_off(stage, stage.pop())
    queued = wait_for(stage)
    stage.queue.settle_budget(queued, LIMIT_S, over=False)
    stage.refuse(queued, "Fit")
    assert stage.state(berth("web")) is QueueState.UNSCHEDULABLE
    stage.queue.move_all(NODE_ADD, None, node("n").build())
    stage.now_s += 10
    assert wait_for(stage, 1) is queued


def test_a_pod_whose_verdict_was_dear_pays_for_the_next_one_too():
    stage = Stage()
    stage.add(berth("web"))
    break_off(stage, stage.pop())
    queued = wait_for(stage)
    stage.queue.settle_budget(queued, 0.4, over=False)
    stage.refuse(queued, "Fit")
    stage.queue.move_all(NODE_ADD, None, node("n").build())
    woken_s = stage.now_s
    assert wait_for(stage) is queued
    assert stage.now_s - woken_s > 3


def test_ordinary_pods_of_a_namespace_in_debt_go_on_with_a_small_budget():
    stage = Stage()
    stage.add(berth("web"), berth("a"), berth("b", "other"))
    break_off(stage, stage.pop())
    ordinary = stage.pop()
    assert ordinary.info.name == "a"
    assert ordinary.allowance_s == LIMIT_S / SMALL / 2
    assert stage.pop().allowance_s == LIMIT_S / COSTLY, "the other namespace owes nothing"


def test_the_deeper_the_debt_the_smaller_the_budget_and_then_new_pods_wait():
    stage = Stage()
    allowances = Counter[float]()
    for index in range(2_000):
        stage.queue.add(berth(f"web-{index}").info())
        queued = stage.queue.pop(0)
        if queued is None:
            break
        allowances[queued.allowance_s] += 1
        break_off(stage, queued)
    small_s = LIMIT_S / SMALL
    assert list(allowances) == [LIMIT_S, small_s / 2]
    spent_s = sum(allowance * count for allowance, count in allowances.items())
    assert spent_s == pytest.approx(STEPS * STEP * LIMIT_S, rel=0.01)


def test_an_ordinary_pod_behind_a_deep_debt_waits_its_turn_and_costs_nothing():
    stage = Stage()
    while True:
        stage.queue.add(berth(f"web-{stage.queue.counts().backoff}").info())
        queued = stage.queue.pop(0)
        if queued is None:
            break
        break_off(stage, queued)
    stage.now_s += 3
    ordinary = [berth(f"ordinary-{index}") for index in range(50)]
    for each in ordinary:
        stage.queue.add(each.info())
    tried = 0
    while tried < 50:
        queued = wait_for(stage, 20)
        if not queued.info.name.startswith("ordinary"):
            break_off(stage, queued)
            continue
        tried += 1
        if queued.prepaid_s:
            stage.queue.settle_budget(queued, 0.0002, over=False)
        stage.queue.done(queued.info.uid)
    assert stage.now_s < START_S + 30


def run(stage: Stage, costs: dict[str, float], seconds: float, made_again: bool) -> Counter[str]:
    """Play the scheduling thread; return what each namespace took of it, in CPU seconds.

    ``costs`` is what a pod of each namespace needs. A pod that was tried is made again at once.
    """
    used: Counter[str] = Counter()
    end_s, count = stage.now_s + seconds, 0
    while stage.now_s < end_s:
        queued = stage.queue.pop(0)
        if queued is None:
            stage.now_s += 0.05
            continue
        namespace = queued.info.namespace
        needs_s = costs[namespace]
        used_s = min(needs_s, queued.allowance_s)
        over = needs_s > queued.allowance_s
        used[namespace] += used_s
        stage.now_s += used_s
        if over or queued.prepaid_s:
            stage.queue.settle_budget(queued, used_s, over=over)
        if over and not made_again:
            stage.fail(queued)
            continue
        count += 1
        stage.queue.done(queued.info.uid)
        stage.queue.delete(queued.info.uid)
        stage.queue.add(berth(f"again-{count}", namespace).info())
    return used


@pytest.mark.parametrize("made_again", [True, False], ids=["made again", "waiting"])
@pytest.mark.parametrize("namespaces", [1, 3])
@pytest.mark.parametrize("needs_s", [0.3, 5.0])
def test_all_that_is_over_budget_takes_its_share_and_namespaces_take_the_same(
    made_again, namespaces, needs_s
):
    stage = Stage()
    costs = {f"ns-{index}": needs_s for index in range(namespaces)}
    for namespace in costs:
        for index in range(20):
            stage.queue.add(berth(f"web-{index}", namespace).info())
    seconds = 1_000.0
    used = run(stage, costs, seconds, made_again)
    # What is owed at the end was used on credit; what was paid in advance may be under way.
    credit_s = namespaces * (STEPS * STEP * LIMIT_S + LIMIT_S)
    assert used.total() <= SHARE * seconds + credit_s + 64 * LIMIT_S
    assert used.total() >= 0.5 * SHARE * seconds, "and it is not starved"
    assert max(used.values()) <= 1.3 * min(used.values())


def test_every_pod_is_decided_in_the_end_whatever_comes_behind_it():
    stage = Stage()
    dear = berth("dear", "shared")
    stage.add(dear)
    count, cost_s = 0, 3.0
    while True:
        queued = wait_for(stage)
        needs_s = cost_s if queued.info.name == "dear" else 99.0
        over = needs_s > queued.allowance_s
        used_s = min(needs_s, queued.allowance_s)
        stage.now_s += used_s
        if over or queued.prepaid_s:
            stage.queue.settle_budget(queued, used_s, over=over)
        if queued.info.name == "dear" and not over:
            break
        if queued.info.name == "dear":
            stage.fail(queued)
        else:
            stage.queue.done(queued.info.uid)
        if count < 5_000:
            count += 1
            stage.queue.add(berth(f"web-{count}", "shared").info())
    assert stage.now_s - START_S < 2_000


def test_accounts_are_closed_when_nothing_is_owed_and_nobody_waits():
    stage = Stage()
    for index in range(100):
        stage.queue.add(berth("web", f"ns-{index}").info())
        queued = stage.queue.pop(0)
        if queued is None:
            continue
        break_off(stage, queued)
        stage.queue.delete(queued.info.uid)
    accounts = stage.queue._accounts
    assert len(accounts._accounts)
    assert len(accounts) == 0
    for _ in range(100):
        stage.now_s += 10
        stage.queue.add(berth("ordinary").info())
        stage.queue.done(stage.pop().info.uid)
    assert len(accounts._accounts) == 0


def test_time_for_which_the_thread_waits_for_a_processor_is_nobodys_income():
    worked = FakeClock()
    stage = Stage(cpu_clock=worked)
    stage.add(berth("web"))
    break_off(stage, stage.pop())
    stage.now_s += 1_000
    assert stage.queue.pop(0) is None
    worked.advance(7.6)
    stage.now_s += 8
    assert stage.pop().allowance_s == 0.5


@pytest.mark.parametrize("needs_s", [0.2, 5.0])
@pytest.mark.parametrize(
    ("namespaces", "most_s"), [(1, 0.6), (2, 0.8), (10, 1.1), (200, 2.8), (2_000, 8.2)]
)
def test_first_attempts_of_many_namespaces_take_some_seconds_together(namespaces, most_s, needs_s):
    stage = Stage()
    for index in range(min(50 * namespaces, 10_000)):
        stage.queue.add(berth(f"web-{index}", f"ns-{index % namespaces}").info())
    spent_s = 0.0
    while (queued := stage.queue.pop(0)) is not None:
        spent_s += end(stage, queued, needs_s)
    assert spent_s < most_s


def end(stage: Stage, queued: QueuedPod, needs_s: float) -> float:
    """End an attempt of a pod that fits nowhere; return what it took, without time passing."""
    used_s = min(needs_s, queued.allowance_s)
    over = needs_s > used_s
    if over or queued.prepaid_s or used_s > stage.queue.costly_s:
        stage.queue.settle_budget(queued, used_s, over=over)
    stage.refuse(queued, *(() if over else ("Fit",)))
    return used_s


def most_credit_s(namespaces: int) -> float:
    """Return what so many namespaces, 2 000 at most, may take before any of it is paid."""
    return 1.1 + CREDIT * LIMIT_S * log2(1 + namespaces * INNOCENT_S / (CREDIT * LIMIT_S))


@given(
    namespaces=st.integers(1, 300),
    needs_s=st.lists(st.sampled_from([0.0003, 0.01, 0.05, 0.1, 0.2, 1.0, 90.0]), min_size=1),
    pauses_s=st.lists(st.sampled_from([0.0, 0.0, 0.01, 0.2, 20.0]), min_size=1),
)
@example(namespaces=300, needs_s=[90.0], pauses_s=[0.0])
@example(namespaces=12, needs_s=[90.0], pauses_s=[0.0])
@settings(max_examples=20, deadline=None)
def test_what_others_owe_breaks_off_no_ordinary_pod_until_they_owe_two_seconds_together(
    namespaces, needs_s, pauses_s
):
    stage = Stage()
    accounts = stage.queue._accounts
    dear_s = 0.0
    for index, need_s, pause_s in zip(
        range(2 * namespaces), cycle(needs_s), cycle(pauses_s), strict=False
    ):
        stage.now_s += pause_s
        stage.queue.add(berth(f"web-{index}", f"ns-{index % namespaces}").info())
        stage.queue.add(berth(f"ordinary-{index}", "innocent").info())
        while (queued := stage.pop()).info.namespace != "innocent":
            used_s = end(stage, queued, need_s)
            stage.now_s += used_s
            dear_s += used_s if used_s == queued.allowance_s else max(0.0, used_s - COSTLY_S)
        steps = min(int(accounts._owed_s / (CREDIT * LIMIT_S)), CREDIT_STEPS)
        assert queued.allowance_s >= INNOCENT_S / 2**steps
        stage.queue.done(queued.info.uid)
        credit_s = most_credit_s(namespaces)
        assert accounts._owed_s <= credit_s
        assert dear_s <= SHARE * (stage.now_s - START_S) + credit_s


def test_a_hundred_namespaces_each_second_that_were_never_seen_take_the_share():
    stage, rate, spent_s = Stage(), 100, 0.0
    for index in range(30 * rate):
        stage.now_s = max(stage.now_s, START_S + index / rate)
        stage.queue.add(berth("web", f"ns-{index}").info())
        while (queued := stage.queue.pop(0)) is not None:
            used_s = end(stage, queued, 90.0)
            stage.now_s += used_s
            spent_s += used_s
    # What was borrowed until the budget was as small as it gets is not the share.
    assert spent_s - CREDIT_STEPS * CREDIT * LIMIT_S <= SHARE * (stage.now_s - START_S)


def test_a_costly_verdict_stands_and_the_next_one_is_paid_in_advance():
    stage = Stage()
    stage.add(berth("web"))
    queued = stage.pop()
    end(stage, queued, 0.2)
    assert stage.state(berth("web")) is QueueState.UNSCHEDULABLE
    assert stage.queue._accounts._accounts["default"].debt_s == pytest.approx(
        0.2 - LIMIT_S / COSTLY
    )
    stage.now_s += 1_000
    stage.queue.move_all(NODE_ADD, None, node("n").build())
    stage.queue.activate([queued.info.uid])
    woken_s = stage.now_s
    assert wait_for(stage) is queued
    assert queued.allowance_s == LIMIT_S
    assert LIMIT_S / SHARE <= stage.now_s - woken_s <= 4, "and half pays the debt first"
    end(stage, queued, 0.01)
    stage.queue.move_all(NODE_ADD, None, node("n").build())
    stage.now_s += 10
    assert wait_for(stage, 1) is queued, "it is an ordinary pod again"


def test_the_time_of_the_thread_before_a_pod_was_woken_is_not_its_savings():
    worked = FakeClock()
    stage = Stage(cpu_clock=worked)
    stage.add(berth("web"))
    queued = stage.pop()
    end(stage, queued, 0.2)
    for _ in range(2):
        worked.advance(100)
        stage.add(berth("next"))
        stage.queue.done(stage.pop().info.uid)
    assert len(stage.queue._accounts._accounts) == 0
    worked.advance(1_000)
    stage.queue.move_all(NODE_ADD, None, node("n").build())
    stage.queue.flush_backoff()
    worked.advance(0.1)
    stage.now_s += 1
    assert stage.queue.pop(0) is None
    worked.advance(3)
    stage.now_s += 3
    assert stage.pop() is queued


def test_attempts_that_many_namespaces_have_saved_for_do_not_follow_one_another():
    stage = Stage()
    names = [f"ns-{index}" for index in range(10)]
    queued = []
    for name in names:
        stage.queue.add(berth("web", name).info())
        queued.append(wait_for(stage))
        queued[-1].allowance_s = LIMIT_S
        end(stage, queued[-1], 0.2)
        stage.now_s += 100
    stage.queue.move_all(NODE_ADD, None, node("n").build())
    began_s, tried = stage.now_s, []
    while len(tried) < 10:
        each = wait_for(stage)
        tried.append(stage.now_s)
        end(stage, each, 0.2)
    pauses = [later - earlier for earlier, later in pairwise(tried)]
    assert min(pauses) >= 0.2 / (2 * SHARE) - 0.01
    assert tried[-1] - began_s < 60


def test_without_a_limit_nothing_is_booked():
    stage = Stage(attempt_budget_s=float("inf"))
    stage.add(berth("web"))
    assert stage.pop().allowance_s == float("inf")
    assert len(stage.queue._accounts._accounts) == 0


@pytest.mark.parametrize("namespaces", [1, 10])
def test_a_steady_load_waits_for_one_budget_at_most_beside_ten_costly_pods(namespaces):
    stage, seconds, pause_s = Stage(), 30.0, 0.01
    for index in range(10):
        stage.queue.add(berth(f"web-{index}", f"ns-{index % namespaces}").info())
    waits_s: list[float] = []
    while stage.now_s < START_S + seconds:
        came_s = START_S + pause_s * len(waits_s)
        stage.now_s = max(stage.now_s, came_s)
        stage.queue.add(berth(f"steady-{len(waits_s)}", "steady").info())
        while (queued := stage.pop()).info.namespace != "steady":
            stage.now_s += end(stage, queued, 0.2)
            stage.queue.activate([queued.info.uid])
        if queued.prepaid_s:
            stage.queue.settle_budget(queued, 0.0, over=False)
        stage.queue.done(queued.info.uid)
        waits_s.append(stage.now_s - came_s)
    waits_s.sort()
    assert waits_s[-len(waits_s) // 100] <= LIMIT_S
    assert waits_s[-1] < 1
