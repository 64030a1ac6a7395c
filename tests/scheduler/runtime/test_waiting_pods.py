from __future__ import annotations

import asyncio

import pytest

from plugins.framework.status import Code
from scheduler.runtime.waiting_pods import WaitingPod, WaitingPods
from tests.builders import pod


def hold(timeouts_s, act):
    async def scene():
        waiting = WaitingPod(pod("a").info(), "n1", timeouts_s, asyncio.get_running_loop())
        act(waiting)
        return await waiting.wait()

    return asyncio.run(scene())


def test_a_pod_goes_on_once_nobody_holds_it():
    def act(waiting):
        waiting.allow("one")
        waiting.allow("two")

    assert hold({"one": 60, "two": 60}, act).is_success


def test_the_first_rejection_stands():
    def act(waiting):
        waiting.reject("two", "no room for the group")
        waiting.allow("one")
        waiting.allow("two")

    status = hold({"one": 60, "two": 60}, act)
    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "two")
    assert status.message == "no room for the group"


def test_the_plugin_whose_time_runs_out_rejects_the_pod():
    status = hold({"quick": 0.01, "patient": 60}, lambda waiting: None)
    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "quick")


@pytest.mark.parametrize(
    ("timeout_s", "waited"),
    [
        pytest.param(0, "0s", id="at once"),
        pytest.param(-1, "-1s", id="less than nothing"),
        pytest.param(0.01, "10ms", id="soon"),
    ],
)
def test_who_waited_for_whom_is_told(timeout_s, waited):
    status = hold({"p": timeout_s}, lambda waiting: None)
    assert status.message == f"rejected due to timeout after waiting {waited} at plugin p"


def test_time_counts_from_the_decision_on():
    async def scene():
        now_s = [100.0]
        waiting = WaitingPod(
            pod("a").info(), "n1", {"p": 60}, asyncio.get_running_loop(), lambda: now_s[0]
        )
        now_s[0] += 60
        return await waiting.wait()

    assert asyncio.run(scene()).plugin == "p"


def test_a_preempted_pod_is_not_unschedulable():
    status = hold({"p": 60}, lambda waiting: waiting.preempt("DefaultPreemption", "preempted"))
    assert status.code is Code.ERROR
    assert status.message == "waiting on permit for pod: preempted"


def test_only_the_first_verdict_counts():
    def act(waiting):
        assert waiting.reject("one", "no")
        assert not waiting.reject("two", "no")
        assert not waiting.preempt("three", "no")

    assert hold({"one": 60}, act).plugin == "one"


def test_a_plugin_that_has_allowed_cannot_time_out():
    async def scene():
        loop = asyncio.get_running_loop()
        waiting = WaitingPod(pod("a").info(), "n1", {"quick": 0.01, "patient": 60}, loop)
        waiting.allow("quick")
        loop.call_later(0.05, waiting.allow, "patient")
        return await waiting.wait()

    assert asyncio.run(scene()).is_success


def test_held_pods_are_found_by_uid():
    async def scene():
        pods = WaitingPods()
        waiting = WaitingPod(pod("a").uid("u1").info(), "n1", {"p": 1}, asyncio.get_running_loop())
        pods.add(waiting)
        assert pods.get("u1") is waiting
        pods.remove("u1")
        return len(pods.list())

    assert asyncio.run(scene()) == 0
