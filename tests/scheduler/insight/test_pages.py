from __future__ import annotations

import asyncio
import io
import json

import pytest

from scheduler.config import default_config, running_profiles
from scheduler.decision.recent_decisions import RecentDecisions
from scheduler.insight.pages import (
    COUNT_S,
    HIDDEN,
    MAX_LIMIT,
    MAX_QUESTION_BYTES,
    InsightPages,
    Sources,
)
from scheduler.insight.worker import InsightWorker, WorkerSources
from tests.builders import node, pod
from tests.fakes.clock import FakeClock
from tests.scheduler.insight.asked import visit
from tests.scheduler.insight.informed import Informed
from tests.scheduler.parts import Parts
from tests.scheduler.what_if.clusters import manifest


class Leader:
    """A leader with a placed pod in each of two namespaces, and one that waits."""

    def __init__(self, *, leads: bool = True) -> None:
        self.parts = Parts()
        self.recent = RecentDecisions(lambda: 1.0)
        for namespace in ("a", "b"):
            self.recent.add(f"{namespace}/runs", f"uid-{namespace}", "berth", node="node-1")
        self.parts.queue.add(pod("waits", namespace="a").scheduler("berth").gate("later").info())
        self.clock = FakeClock()
        informed = Informed()
        informed.put(informed.nodes, node("node-1").capacity(cpu="4", pods="9").build())
        informed.put(informed.pods, pod("waits", namespace="a").scheduler("berth").build())
        self.worker = InsightWorker(
            WorkerSources(
                lambda: informed.all, dict, lambda: running_profiles(default_config("berth"))
            )
        )
        self.sources = Sources(
            self.recent,
            self.parts.queue,
            self.worker,
            informed.pods.get,
            lambda each: "gated",
            lambda: leads,
            lambda: {"profiles": []},
            self.clock,
        )

    def pages(self):
        return InsightPages(self.sources).pages()


def get(path: str, token: str | None = "admin", leader: Leader | None = None):
    status, body, _ = visit((leader or Leader()).pages(), lambda fetch: fetch(path, token))
    return status, body


@pytest.mark.parametrize(
    ("path", "statuses"),
    [
        pytest.param("decisions", {"admin": 200, "tenant": 403, "viewer": 403}, id="all decisions"),
        pytest.param("decisions?namespace=a", {"admin": 200, "tenant": 200}, id="own decisions"),
        pytest.param(
            "decisions?namespace=b", {"admin": 200, "tenant": 403}, id="others' decisions"
        ),
        pytest.param("pending", {"admin": 200, "tenant": 403}, id="all that wait"),
        pytest.param("pending?namespace=a", {"admin": 200, "tenant": 200}, id="own that wait"),
        pytest.param("pending?namespace=b", {"admin": 200, "tenant": 403}, id="others that wait"),
        pytest.param("why?namespace=a&name=gone", {"admin": 404, "tenant": 404}, id="no such pod"),
        pytest.param("why?namespace=b&name=gone", {"admin": 404, "tenant": 403}, id="others' pod"),
        pytest.param("policies", {"admin": 200, "tenant": 403, "viewer": 403}, id="policies"),
    ],
)
def test_who_may_ask_what(path, statuses):
    async def scene(fetch):
        users = (*statuses, "nobody", "doubtful", "unknown", None)
        return {user: (await fetch(path, user))[0] for user in users}

    expected = {**statuses, "nobody": 403, "doubtful": 500, "unknown": 401, None: 401}
    assert visit(Leader().pages(), scene) == expected


@pytest.mark.parametrize(
    ("token", "node"),
    [
        pytest.param("viewer", "node-1", id="who may get nodes"),
        pytest.param("tenant", HIDDEN, id="who may not"),
    ],
)
def test_names_of_nodes_are_for_those_who_may_get_nodes(token, node):
    _, body = get("decisions?namespace=a", token)
    assert [each["node"] for each in body["decisions"]] == [node]


def test_a_namespace_has_its_own_decisions_only():
    _, body = get("decisions?namespace=a")
    assert [each["pod"] for each in body["decisions"]] == ["a/runs"]


def test_decisions_are_read_on_from_the_last_number():
    _, body = get("decisions?after=1")
    assert (body["last"], [each["seq"] for each in body["decisions"]]) == (2, [2])


def test_pending_pods_are_counted_by_reason():
    _, body = get("pending")
    (reason,) = body["reasons"]
    assert (body["pods"], reason["plugins"], reason["sample"]) == (
        1,
        ["SchedulingGates"],
        ["a/waits"],
    )


def test_one_count_of_all_pending_pods_serves_everybody_for_a_while():
    leader = Leader()

    async def scene(fetch):
        before = await fetch("pending")
        leader.parts.queue.add(pod("more", namespace="a").scheduler("berth").gate("later").info())
        within = [await fetch("pending"), await fetch("pending?namespace=a")]
        leader.clock.advance(COUNT_S)
        return [each[1]["pods"] for each in (before, *within, await fetch("pending"))]

    assert visit(leader.pages(), scene) == [1, 1, 2, 2]


def test_a_standby_sends_to_the_leader():
    status, body = get("pending", leader=Leader(leads=False))
    assert (status, body["reason"]) == (503, "NotLeading")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        pytest.param("after=-1", "after: '-1'", id="less than nothing"),
        pytest.param("after=x", "after: 'x'", id="no number"),
        pytest.param("limit=" + "9" * 400, "limit: ", id="a number without end"),
        pytest.param("limit=%C2%B2", "limit: ", id="a digit of another kind"),
    ],
)
def test_a_mistake_in_a_question_is_named(query, named):
    status, body = get(f"decisions?{query}")
    assert status == 400
    assert named in body["message"]
    assert len(body["message"]) < 100


def test_a_limit_is_limited():
    leader = Leader()
    for number in range(2 * MAX_LIMIT):
        leader.recent.add(f"a/{number}", "", "berth", node="n")
    _, body = get("decisions?limit=99999", leader=leader)
    assert len(body["decisions"]) == MAX_LIMIT


def test_too_many_questions_of_one_user_leave_the_others_alone():
    async def scene(fetch):
        many = await asyncio.gather(*(fetch("pending", "admin") for _ in range(60)))
        other = await fetch("pending?namespace=a", "tenant")
        return many, other

    many, other = visit(Leader().pages(), scene)
    refused = [headers["Retry-After"] for status, _, headers in many if status == 429]
    assert refused == ["1"] * 30
    assert other[0] == 200


@pytest.mark.parametrize(
    ("query", "named"),
    [
        pytest.param("namespace=a", "name is missing", id="no name"),
        pytest.param("namespace=a&name=", "name is missing", id="an empty name"),
        pytest.param("name=p", "namespace is missing", id="no namespace"),
        pytest.param("namespace=a&name=../b", "name: '../b' is not", id="a path"),
        pytest.param("namespace=A&name=p", "namespace: 'A' is not", id="capitals"),
        pytest.param("namespace=a&name=" + "x" * 300, "name: 'xxx", id="too long"),
        pytest.param("namespace=a&name=p&form=xml", "form: 'xml' is neither", id="no form"),
    ],
)
def test_a_mistake_in_a_question_about_a_pod_is_named(query, named):
    status, body = get(f"why?{query}")
    assert (status, named in body["message"]) == (400, True)


def test_questions_that_need_the_worker_and_their_mistakes():
    """In one test, because a worker takes a second to start."""
    leader = Leader()
    question = {"drain": ["node-1"]}
    own = manifest("mine")
    own["metadata"]["namespace"] = "a"
    wrong = {"drain": ["node-1"], "add": [{"count": 1, "like": "no-such-node"}]}

    async def scene(fetch):
        try:
            return (
                await fetch("why?namespace=a&name=waits", "viewer"),
                await fetch("what-if", data=json.dumps(question)),
                await fetch("what-if", data=json.dumps(wrong)),
                await fetch("what-if", data=b"{" * 1_000),
                await fetch("what-if", data=io.BytesIO(b" " * (MAX_QUESTION_BYTES + 1))),
                await fetch("what-if", "tenant", data=json.dumps(question)),
                await fetch("what-if", "tenant", data=json.dumps({"objects": [own]})),
                *await asyncio.gather(
                    *(fetch("what-if", data=json.dumps(question)) for _ in range(2))
                ),
            )
        finally:
            await leader.worker.stop()

    why, forecast, mistake, nonsense, large, drain, own_pods, *both = visit(leader.pages(), scene)
    assert (why[0], why[1]["state"], why[1]["pod"]) == (200, "gated", "a/waits")
    assert "node-1" in why[1]["now"]["nodes"]
    assert (forecast[0], forecast[1]["refused"]) == (200, 0)
    assert (mistake[0], "add[0].like" in mistake[1]["message"]) == (422, True)
    assert (nonsense[0], large[0], drain[0]) == (422, 413, 403)
    assert (own_pods[0], own_pods[1]["placed"], own_pods[1]["nodes"]) == (200, 1, {})
    assert sorted(each[0] for each in both) == [200, 429]
