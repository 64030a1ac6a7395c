"""Alike pods in the queue in groups, and the groups indexed by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugins.framework.queueing_hints import ANY
from scheduler.queueing.pod_facts import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plugins.framework.queueing_hints import Likeness, Question, Topic
    from scheduler.queueing.queued_pod import QueuedPod


class LikeGroup:
    """Pods for which a likeness returns the same value."""

    __slots__ = ("facts", "pods", "topics")

    def __init__(self, facts: Any, topics: Sequence[Topic]) -> None:
        self.facts = facts
        self.topics = topics
        self.pods: dict[str, QueuedPod] = {}


class LikePods:
    """Store the groups of one likeness.

    Parameters
    ----------
    waiting
        The pods that are in the queue already. They are indexed one after another, by
        :meth:`index_one`, because ten thousand at once would take a tenth of a second.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: add and remove O(topics of the pod); :meth:`groups` O(topics of the question + groups
    that have one of them).
    """

    def __init__(self, likeness: Likeness[Any], waiting: Iterable[QueuedPod]) -> None:
        self._likeness = likeness
        self._groups: dict[Any, LikeGroup] = {}
        self._of: dict[str, LikeGroup] = {}
        self._by_topic: dict[Topic, dict[LikeGroup, None]] = {}
        self._not_indexed = {queued.info.uid: queued for queued in waiting}

    def index_one(self) -> bool:
        """Index one of the pods that were in the queue already; return whether there was one."""
        if not self._not_indexed:
            return False
        self.add(self._not_indexed.popitem()[1])
        return True

    def add(self, queued: QueuedPod) -> None:
        """Add a pod that is not stored yet, with the facts of its current version."""
        facts = queued.facts.of(self._likeness)
        group = self._groups.get(facts)
        if group is None:
            group = self._groups[facts] = LikeGroup(facts, self._topics(facts))
            for topic in group.topics:
                self._by_topic.setdefault(topic, {})[group] = None
        group.pods[queued.info.uid] = queued
        self._of[queued.info.uid] = group

    def _topics(self, facts: Any) -> Sequence[Topic]:
        topics = self._likeness.topics
        if topics is None or isinstance(facts, Unreadable):
            return (ANY,)
        return tuple(topics(facts))

    def remove(self, uid: str) -> None:
        """Take a pod out, if it is in."""
        self._not_indexed.pop(uid, None)
        group = self._of.pop(uid, None)
        if group is None:
            return
        del group.pods[uid]
        if group.pods:
            return
        del self._groups[group.facts]
        for topic in group.topics:
            groups = self._by_topic.get(topic)
            if groups is not None:
                groups.pop(group, None)
                if not groups:
                    del self._by_topic[topic]

    def groups(self, question: Question[Any]) -> list[LikeGroup]:
        """Return the groups that a question can concern."""
        topics = question.topics
        if topics is None:
            return list(self._groups.values())
        if not topics:
            return []
        found: dict[LikeGroup, None] = dict(self._by_topic.get(ANY, ()))
        by_topic = self._by_topic
        for topic in topics:
            groups = by_topic.get(topic)
            if groups:
                found.update(groups)
        return list(found)
