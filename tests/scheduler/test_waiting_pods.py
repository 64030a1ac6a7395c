from __future__ import annotations

import asyncio

from plugins.framework.status import Code
from scheduler.waiting_pods import WaitingPod, WaitingPods
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
        return len(pods)

    assert asyncio.run(scene()) == 0
