"""Pods that an extender binds."""

from __future__ import annotations

import pytest

from plugins.framework.status import SUCCESS, Code
from scheduler.config import Extender, ManagedResource
from tests.builders import pod
from tests.scheduler.extenders.scripted_extender import Reply, says

INFO = pod("web", namespace="shop").info()
GPU = ManagedResource("example.com/gpu")


def bind(stage, *configs):
    return stage.call(stage.chain(*configs).bind(INFO, "n1"))


def test_it_is_told_which_pod_and_which_node(stage):
    server = stage.serve(bind=says({}))
    assert bind(stage, Extender(server.url, bind_verb="bind")) is SUCCESS
    told = {"PodName": "web", "PodNamespace": "shop", "PodUID": "uid-shop-web", "Node": "n1"}
    assert server.asked == [("bind", told)]


def fenced_bind(stage, granted_s, **script):
    server = stage.serve(**script)
    config = Extender(server.url, bind_verb="bind")
    chain = stage.chain(config, write_fence=lambda timeout_s: min(timeout_s, granted_s))
    return server, stage.call(chain.bind(INFO, "n1"))


def test_it_is_not_asked_by_who_may_not_write(stage):
    server, status = fenced_bind(stage, 0.0, bind=says({}))
    assert status.code is Code.ERROR
    assert "may not write" in status.message
    assert server.asked == []


def test_a_leader_lets_it_bind(stage):
    server, status = fenced_bind(stage, 60.0, bind=says({}))
    assert status is SUCCESS
    assert len(server.asked) == 1


def test_it_has_no_more_time_than_the_leader_has(stage):
    _, status = fenced_bind(stage, 0.05, bind=lambda asked: Reply(holds=True))
    assert "no answer within 0.05 s" in status.message


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"filter_verb": "filter"}, id="it does not bind"),
        pytest.param({"bind_verb": "bind", "managed_resources": (GPU,)}, id="not interested"),
    ],
)
def test_others_leave_it_to_the_plugins(stage, how):
    server = stage.serve(bind=says({}))
    assert bind(stage, Extender(server.url, **how)) is None
    assert server.asked == []


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        pytest.param(Reply(b'{"Error":"out of tea"}'), "out of tea", id="its own error"),
        pytest.param(Reply(status=500), "code 500", id="a wrong status"),
        pytest.param(Reply(b""), "with garbage", id="no answer"),
    ],
)
def test_a_failure_is_the_pods(stage, reply, why):
    server = stage.serve(bind=lambda asked: reply)
    status = bind(stage, Extender(server.url, bind_verb="bind"))
    assert status.code is Code.ERROR
    assert why in status.message
    assert len(server.asked) == 1


def test_an_ignorable_one_that_fails_leaves_it_to_the_plugins(stage):
    server = stage.serve(bind=lambda asked: Reply(status=500))
    assert bind(stage, Extender(server.url, bind_verb="bind", ignorable=True)) is None


def test_a_pod_that_was_bound_all_the_same_is_bound(stage):
    stage.settled = SUCCESS
    server = stage.serve(bind=lambda asked: Reply(status=500))
    assert bind(stage, Extender(server.url, bind_verb="bind")) is SUCCESS
