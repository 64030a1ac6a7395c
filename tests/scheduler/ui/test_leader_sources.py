from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.insight.leader_client import AskError
from scheduler.ui.leader_sources import LeaderSources
from scheduler.ui.sources import Decisions, Forecast, Pending, Policies, SourceError, Why
from tests.scheduler.ui.answering_leader import Leader

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN = "own lists"
FORBIDDEN = AskError("forbidden: you cannot list pods", 403, "Forbidden")
NO_LEASE = AskError("there is no Lease berth-system/berth")
OLD = AskError("the leader is of an older version, which answers no questions", 404)
NOBODY = AskError("the leader does not know you", 401, "Unauthorized")
BUSY = AskError("too many questions of this user", 429, "TooManyRequests")


class Own:
    """The user's own lists."""

    async def why(self, namespace: str, name: str) -> Why:
        return Why(pod=f"{namespace}/{name}", state=OWN)

    async def decisions(self, after: int, limit: int) -> Decisions:
        return Decisions(last=7)

    async def pending(self) -> Pending:
        return Pending(pods=3)

    async def policies(self) -> Policies:
        return Policies(note=OWN)

    async def what_if(self, question: Mapping[str, Any]) -> Forecast:
        raise SourceError("one namespace is listed")


def ask(leader: Leader, name: str, *arguments: Any, namespace: str = "") -> Any:
    sources = LeaderSources(leader, Own(), namespace)
    return asyncio.run(getattr(sources, name)(*arguments)), sources


def test_the_leader_is_named_with_its_answer() -> None:
    found, sources = ask(Leader({"pods": 9, "reasons": []}), "pending")
    assert (found.pods, found.leader, found.unsaid) == (9, "berth-0", "")
    assert (sources.leader, sources.problem) == ("berth-0", "")


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        pytest.param(NO_LEASE, "there is no Lease", id="no leader"),
        pytest.param(OLD, "of an older version", id="older version"),
        pytest.param(NOBODY, "does not know you", id="unknown user"),
        pytest.param(OSError("no route"), "no route", id="no way"),
        pytest.param(FORBIDDEN, "", id="no right"),
        pytest.param(BUSY, "", id="too often"),
    ],
)
def test_without_an_answer_own_lists_answer_and_the_reason_is_said(
    error: Exception, problem: str
) -> None:
    found, sources = ask(Leader(error), "pending")
    assert (found.pods, found.leader) == (3, "")
    assert problem in sources.problem
    assert bool(problem) is bool(sources.problem)
    assert found.unsaid == str(error)


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"[]", b'{"pods": "x"}', b"\xff"],
    ids=["none", "cut", "list", "text", "bytes"],
)
def test_an_answer_that_cannot_be_read_is_no_answer(body: bytes) -> None:
    found, _ = ask(Leader(body), "pending")
    assert (found.pods, "its answer cannot be read" in found.unsaid) == (3, True)


def test_while_the_leader_cannot_be_asked_nobody_waits_for_it() -> None:
    leader = Leader(NO_LEASE)
    sources = LeaderSources(leader, Own())

    async def scene() -> list[Any]:
        before = [await sources.pending(), await sources.policies()]
        leader.answer = {"pods": 9, "reasons": []}
        return [*before, await sources.pending(), await sources.probe(), await sources.pending()]

    found = asyncio.run(scene())
    assert [each.leader for each in found] == ["", "", "", "berth-0", "berth-0"]
    assert len(leader.asked) == 3


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(AskError("there is no pod a/p", 404, "NotFound"), id="not found"),
        pytest.param(AskError("drain[0]: no node", 422, "Invalid"), id="mistake"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(error: AskError) -> None:
    with pytest.raises(SourceError, match=str(error)[:5]):
        ask(Leader(error), "why", "a", "p")


def test_a_forecast_that_nobody_can_make_has_both_reasons() -> None:
    with pytest.raises(SourceError, match=r"forbidden: .*; one namespace is listed"):
        ask(Leader(FORBIDDEN), "what_if", {"drain": ["n1"]})


def test_a_mistake_in_a_forecast_is_not_sent() -> None:
    leader = Leader({})
    with pytest.raises(SourceError, match="asks for nothing"):
        ask(leader, "what_if", {})
    assert leader.asked == []


def test_questions_about_many_pods_are_limited_to_the_namespace() -> None:
    leader = Leader({"last": 5, "decisions": []})
    ask(leader, "decisions", 3, 10, namespace="team-a")
    assert leader.asked == [("decisions", {"namespace": "team-a", "after": "3", "limit": "10"})]


def test_the_state_of_a_pod_is_in_words() -> None:
    found, _ = ask(Leader({"pod": "a/p", "state": "backoff"}), "why", "a", "p")
    assert found.state == "waits before another attempt"


def test_a_probe_that_fails_says_so() -> None:
    found, sources = ask(Leader(NO_LEASE), "probe")
    assert (found, sources.leader) == (None, "")
    assert sources.problem
