"""Who is next when attempts are shared between namespaces. Costs are given, no clock is read."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.framework.args import ArgsError
from plugins.namespace_fair_sort import NamespaceFairSort, NamespaceFairSortArgs
from scheduler.queueing import QueuedPod
from scheduler.queueing.fair_pods import FairPods
from tests.builders import PodBuilder, pod
from tests.plugins.conformance import RecordingHandle
from tests.scheduler.queueing.stage import Stage

WEIGHTS = {"heavy": 3.0}


def sort(**weights: float) -> NamespaceFairSort:
    return NamespaceFairSort(NamespaceFairSortArgs(weights=weights), RecordingHandle())


def fair_stage(**weights: float) -> Stage:
    return Stage({"Fit": ()}, account=sort(**weights).account)


def of(namespace: str, index: int, priority: int = 0) -> PodBuilder:
    made = pod(f"{namespace}-{index}", namespace=namespace).uid(f"{namespace}-{index}")
    return made.priority(priority)


def popped(stage: Stage, count: int, cost_s: dict[str, float] | None = None) -> list[str]:
    """Take so many pods, each charged with what its namespace's attempts cost, and refused."""
    names = []
    for _ in range(count):
        queued = stage.pop()
        namespace = queued.info.namespace
        stage.queue.charge(queued, (cost_s or {}).get(namespace, 0.001))
        stage.refuse(queued, "Fit")
        names.append(namespace)
    return names


def test_a_tenant_of_fifty_thousand_pods_leaves_every_second_attempt_to_one_of_a_hundred():
    stage = fair_stage()
    for index in range(50_000):
        stage.queue.add(of("many", index).info())
    popped(stage, 10)
    for index in range(100):
        stage.queue.add(of("few", index).info())
    assert Counter(popped(stage, 200)) == {"few": 100, "many": 100}


def test_the_default_tries_them_in_the_order_in_which_they_came():
    stage = Stage({"Fit": ()})
    for index in range(500):
        stage.queue.add(of("many", index).info())
    stage.queue.add(of("few", 0).info())
    assert "few" not in popped(stage, 500)
    assert popped(stage, 1) == ["few"]


def test_what_is_shared_is_time_and_not_attempts():
    stage = fair_stage()
    for index in range(100):
        stage.queue.add(of("dear", index).info())
        stage.queue.add(of("cheap", index).info())
    counts = Counter(popped(stage, 110, {"dear": 0.01, "cheap": 0.001}))
    assert counts["cheap"] == pytest.approx(10 * counts["dear"], abs=10)


def test_a_weight_buys_more_time():
    stage = fair_stage(**WEIGHTS)
    for index in range(100):
        stage.queue.add(of("heavy", index).info())
        stage.queue.add(of("light", index).info())
    counts = Counter(popped(stage, 80))
    assert counts["heavy"] == pytest.approx(3 * counts["light"], abs=4)


def test_priority_goes_before_fairness():
    stage = fair_stage()
    for index in range(5):
        stage.queue.add(of("important", index, priority=1).info())
        stage.queue.add(of("other", index).info())
    assert popped(stage, 10) == ["important"] * 5 + ["other"] * 5


def test_idle_time_is_not_saved_up_and_debts_are_not_forgotten():
    stage = fair_stage()
    for index in range(100):
        stage.queue.add(of("busy", index).info())
    popped(stage, 50)
    for index in range(40):
        stage.queue.add(of("new", index).info())
    assert Counter(popped(stage, 40)) == {"new": 20, "busy": 20}


def test_deleted_pods_leave_no_debt():
    stage = fair_stage()
    for index in range(1000):
        stage.queue.add(of("a", index).info())
    for index in range(1000):
        stage.queue.delete(f"a-{index}")
    for index in range(10):
        stage.queue.add(of("b", index).info())
        stage.queue.add(of("a", 2000 + index).info())
    assert Counter(popped(stage, 10)) == {"a": 5, "b": 5}


def test_accounts_are_forgotten():
    pods = FairPods(sort().account)
    for index in range(1000):
        queued = QueuedPod(of(f"n{index}", 0).info(), 0.0, index, (0.0, 0.0))
        pods.push(queued, queued.sort_key)
        assert pods.pop() is queued
        pods.charge(queued, 0.0)
    assert len(pods._served_s) < 200
    assert not pods._heaps
    assert len(pods._order) < 200


def test_the_pods_that_come_are_the_first_of_each_account_or_those_of_the_only_one():
    pods = FairPods(sort().account)
    for number, namespace in enumerate(["a", "a", "a", "b", "c", "b"]):
        key = (0.0, float(number))
        pods.push(QueuedPod(of(namespace, number).info(), 0.0, number, key), key)
    assert [each.info.name for each in pods.coming(2)] == ["a-0", "b-3"]
    for name in ("b-3", "b-5", "c-4"):
        pods.remove(name)
    assert [each.info.name for each in pods.coming(2)] == ["a-0", "a-1"]


def test_an_account_that_has_its_former_rank_again_comes_once():
    pods = FairPods(sort().account)
    for number, (namespace, priority) in enumerate([("a", 0), ("a", 1), ("b", 1)]):
        key = (-float(priority), float(number))
        pods.push(QueuedPod(of(namespace, number).info(), 0.0, number, key), key)
    assert pods.pop().info.name == "a-1"
    assert [each.info.name for each in pods.coming(3)] == ["b-2", "a-0"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["push", "pop", "remove", "charge"]), st.integers(0, 11)),
        max_size=80,
    )
)
def test_each_pod_that_is_in_comes_out_once_and_in_order_within_its_account(steps):
    pods = FairPods(sort().account)
    inside: dict[str, QueuedPod] = {}
    for number, (what, index) in enumerate(steps):
        uid = f"n{index % 3}-{index}"
        if what == "push":
            key = (-float(index % 2), float(number))
            info = of(f"n{index % 3}", index).info()
            inside[uid] = QueuedPod(info, 0.0, number, key)
            pods.push(inside[uid], key)
        elif what == "remove":
            assert pods.remove(uid) is (inside.pop(uid, None) is not None)
        elif what == "pop":
            queued = pods.pop()
            assert (queued is None) is (not inside)
            if queued is not None:
                assert inside.pop(queued.info.uid) is queued
                rest = list(inside.values())
                assert all(queued.sort_key[0] <= each.sort_key[0] for each in rest)
                own = [each for each in rest if each.info.namespace == queued.info.namespace]
                assert all(queued.sort_key < each.sort_key for each in own)
        elif uid in inside:
            pods.charge(inside[uid], 0.001 * index)
        assert len(pods) == len(inside) == len(list(pods))
        coming = pods.coming(3)
        assert all(inside[each.info.uid] is each for each in coming)
        assert len({each.info.uid for each in coming}) == len(coming) <= 3


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan"), 1001.0])
def test_a_weight_that_cannot_be_one_is_refused(weight):
    with pytest.raises(ArgsError, match=r"weights\[a\]: must be above 0 and at most 1000"):
        sort(a=weight)
