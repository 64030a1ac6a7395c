from __future__ import annotations

import pytest
from msgspec.structs import replace

from scheduler.insight import recent_answers
from scheduler.insight.messages import Answer, Question
from scheduler.insight.recent_answers import RecentAnswers

ASKED = Question(1, "why", 10.0, True, True, "a/p")
ANSWER = Answer(1, 200, b"because")


@pytest.mark.parametrize(
    ("question", "version", "body"),
    [
        pytest.param(replace(ASKED, id=2, limit_s=5.0), 7, b"because", id="another user"),
        pytest.param(ASKED, 8, None, id="the cluster has changed"),
        pytest.param(replace(ASKED, pod="a/q"), 7, None, id="another pod"),
        pytest.param(replace(ASKED, shows_nodes=False), 7, None, id="other rights"),
        pytest.param(replace(ASKED, only_text=True), 7, None, id="another form"),
    ],
)
def test_who_gets_a_kept_answer(question, version, body):
    answers = RecentAnswers()
    answers.put(ASKED, 7, ANSWER)
    assert answers.get(question, version) == (body and Answer(question.id, 200, body))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        pytest.param(replace(ASKED, kind="what-if"), ANSWER, id="a forecast"),
        pytest.param(ASKED, replace(ANSWER, status=422), id="a refusal"),
    ],
)
def test_what_is_not_kept(question, answer):
    answers = RecentAnswers()
    answers.put(question, 7, answer)
    assert answers.get(question, 7) is None


def test_the_oldest_of_too_many_bytes_are_dropped(monkeypatch):
    monkeypatch.setattr(recent_answers, "KEPT_BYTES", 2 * len(ANSWER.body))
    answers = RecentAnswers()
    asked = [replace(ASKED, pod=f"a/{number}") for number in range(3)]
    for question in asked:
        answers.put(question, 7, ANSWER)
        answers.put(question, 7, ANSWER)
    assert [answers.get(each, 7) is not None for each in asked] == [False, True, True]
