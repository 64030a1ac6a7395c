"""A cluster event with the object that it is about, for the checks of queued pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scheduler.queueing.pod_facts import Unreadable

if TYPE_CHECKING:
    from plugins.framework.cluster_events import ClusterEvent
    from plugins.framework.queueing_hints import GroupHint, Question


class Happening:
    """An event, and its object before and after the event.

    Each derived value is computed once and used for all pods: the pods that wait and, when their
    attempts end, the pods that were in flight.
    """

    __slots__ = ("_questions", "event", "new", "old")

    def __init__(self, event: ClusterEvent, old: Any, new: Any) -> None:
        self.event = event
        self.old = old
        self.new = new
        self._questions: dict[GroupHint[Any], Question[Any]] = {}

    def question(self, hint: GroupHint[Any]) -> Question[Any]:
        """Return the question of a hint about this event.

        Raises
        ------
        Exception
            When the hint fails.
        """
        question = self._questions.get(hint)
        if question is None:
            question = self._questions[hint] = hint.about(self.old, self.new)
        return question

    def forget_questions(self) -> None:
        """Drop the computed values: a question may hold a copy of a node until then."""
        self._questions.clear()

    def helps(self, hint: GroupHint[Any], facts: Any) -> bool:
        """Return a hint's result for pods with these facts.

        Raises
        ------
        Exception
            When the hint fails, or when nothing could be read of the pod.
        """
        if isinstance(facts, Unreadable):
            raise facts.error
        return self.question(hint).answer(facts)
