"""Answers of a moment ago, for users who ask the same."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from scheduler.insight.messages import Answer

if TYPE_CHECKING:
    from scheduler.insight.messages import Question

KEPT_BYTES: Final = 8 << 20
"""Eight answers with the data of 5 000 nodes, or thousands with text only."""


class RecentAnswers:
    """The answers to ``why`` that hold for one version of the copy.

    Users with the same rights get the same answer to the same question: their rights are a part of
    the question.
    """

    def __init__(self) -> None:
        self._version = -1
        self._bytes = 0
        self._answers: OrderedDict[Question, bytes] = OrderedDict()

    def get(self, question: Question, version: int) -> Answer | None:
        """Return the answer to a question, or None."""
        body = self._answers.get(_kind(question)) if version == self._version else None
        return None if body is None else Answer(question.id, 200, body)

    def put(self, question: Question, version: int, answer: Answer) -> None:
        """Keep an answer; those to another version, and the oldest of too many, are dropped."""
        if question.kind != "why" or answer.status != 200:
            return
        if version != self._version:
            self._version, self._bytes = version, 0
            self._answers.clear()
        if _kind(question) not in self._answers:
            self._answers[_kind(question)] = answer.body
            self._bytes += len(answer.body)
        while self._bytes > KEPT_BYTES:
            _, body = self._answers.popitem(last=False)
            self._bytes -= len(body)


def _kind(question: Question) -> Question:
    """Return what equal questions have in common."""
    return replace(question, id=0, limit_s=0.0)
