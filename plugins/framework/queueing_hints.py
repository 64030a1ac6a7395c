"""Queueing hints that are evaluated once for all waiting pods that are alike.

A plain hint is a function of one waiting pod and an event. With ten thousand waiting pods, each
event causes ten thousand calls, although most of the pods were created from a few templates. A
:class:`GroupHint` declares which data of a waiting pod it reads, its *likeness*. The queue groups
the waiting pods by that data, evaluates one question for each group, and does not visit groups
whose *topics* the event does not concern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from cache.label_selectors import IN
from cache.pod_info import PodInfo
from plugins.framework.cluster_events import Hint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable

    from cache.label_selectors import Selector
    from cache.objects import Pod
    from plugins.framework.cluster_events import HintFunction

F = TypeVar("F")

Topic: TypeAlias = "Hashable"

ANY: Final[Topic] = None
"""The topic of a group that every event may concern."""


class Likeness(Generic[F]):
    """The data of a waiting pod that some hints read: pods with equal data get equal results.

    Parameters
    ----------
    of
        Returns the data read of a pod: hashable, and best compiled to what the hints need. Called
        once for each version of a waiting pod. Must not raise, or the pod is woken by every event.
    topics
        Returns the topics of such pods. An event concerns them only if it has one of their
        topics, or if one of theirs is :data:`ANY`. None if the pods have no topics.

    Notes
    -----
    Two likenesses are the same only if they are one object: keep it, and share it between hints.
    """

    __slots__ = ("of", "topics")

    def __init__(
        self,
        of: Callable[[PodInfo], F],
        topics: Callable[[F], Iterable[Topic]] | None = None,
    ) -> None:
        self.of = of
        self.topics = topics


EVERYBODY: Final[Likeness[None]] = Likeness(lambda info: None)
"""Nothing of the pod is read."""

ITSELF: Final[Likeness[PodInfo]] = Likeness(lambda info: info, lambda info: (info.uid,))
"""Everything of the pod is read; its topic is its UID."""


class Question(NamedTuple, Generic[F]):
    """The check of waiting pods that an event requires."""

    answer: Callable[[F], bool]
    """Tells, of pods that are alike, whether the event is worth another attempt. Complete by
    itself: it is also asked about pods that do not have the topics."""
    topics: Collection[Topic] | None = None
    """Only pods with one of these, or with :data:`ANY`, can get the answer yes; None for all
    pods, and none at all for no pod."""


YES: Final = Question[Any](lambda alike: True)
NO: Final = Question[Any](lambda alike: False, ())


class GroupHint(Generic[F]):
    """A hint that is evaluated once for all pods that are alike, or, like any hint, for one pod.

    Parameters
    ----------
    likeness
        What of a waiting pod is read.
    about
        Returns the question that an event, given as the object before and after, asks.
    is_addition
        Whether kube-scheduler has no such hint, so that comparisons leave it out.
    """

    __slots__ = ("about", "is_addition", "likeness")

    def __init__(
        self,
        likeness: Likeness[F],
        about: Callable[[Any, Any], Question[F]],
        *,
        is_addition: bool = False,
    ) -> None:
        self.likeness = likeness
        self.about = about
        self.is_addition = is_addition

    def __call__(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Return the hint for one pod."""
        worth_it = self.about(old, new).answer(self.likeness.of(PodInfo(pod)))
        return Hint.QUEUE if worth_it else Hint.SKIP


class Sample(Generic[F]):
    """What was worked out from one pod, for all that have the same key: equal if their keys are."""

    __slots__ = ("_hash", "key", "value")

    def __init__(self, key: Hashable, value: F) -> None:
        self.key = key
        self.value = value
        self._hash = hash(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sample) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash


def for_each_pod(hint: HintFunction) -> GroupHint[PodInfo]:
    """Return a plain hint as one whose pods are never alike."""

    def about(old: Any, new: Any) -> Question[PodInfo]:
        return Question(lambda info: hint(info.pod, old, new) is Hint.QUEUE)

    return GroupHint(ITSELF, about)


def for_everybody(helps: Callable[[Any, Any], bool]) -> GroupHint[None]:
    """Return a hint that reads the event alone: before and after."""

    def about(old: Any, new: Any) -> Question[None]:
        return YES if helps(old, new) else NO

    return GroupHint(EVERYBODY, about)


def for_the_pod_itself(helps: Callable[[Pod, Any, Any], bool]) -> GroupHint[PodInfo]:
    """Return a hint that skips the event unless it is about the waiting pod itself."""

    def about(old: Any, new: Any) -> Question[PodInfo]:
        uid = new.metadata.uid
        return Question(lambda info: info.uid == uid and helps(info.pod, old, new), (uid,))

    return GroupHint(ITSELF, about)


AFTER_OWN_CHANGE: Final = for_the_pod_itself(lambda pod, old, new: True)
"""Yes to every event about the waiting pod itself."""


def is_nowhere(pod: Pod | None) -> bool:
    """Return whether a pod is given that is neither on a node nor nominated for one."""
    return pod is not None and not (pod.spec.node_name or pod.status.nominated_node_name)


def for_pods_by(
    key: Callable[[Pod], Hashable],
    hint: HintFunction,
    topics: Callable[[Any], Iterable[Topic]] | None = None,
    topics_of_event: Callable[[Any, Any], Collection[Topic] | None] | None = None,
) -> GroupHint[Sample[Pod]]:
    """Return a plain hint that is evaluated for one of the pods with the same key.

    Parameters
    ----------
    key
        Returns all of a pod that the hint reads.
    topics
        Returns the topics of a key, if there are any.
    topics_of_event
        Returns those of an event, of the object before and after, if there are any.
    """
    by_topic = None if topics is None else lambda sample: topics(sample.key)
    likeness = Likeness(lambda info: Sample(key(info.pod), info.pod), by_topic)

    def about(old: Any, new: Any) -> Question[Sample[Pod]]:
        return Question(
            lambda sample: hint(sample.value, old, new) is Hint.QUEUE,
            None if topics_of_event is None else topics_of_event(old, new),
        )

    return GroupHint(likeness, about)


def selector_topics(selector: Selector) -> list[tuple[str, ...]] | None:
    """Return label topics of which all labels that the selector matches have at least one.

    None if there are no such topics, because labels that are absent may match too.
    """
    if selector.nothing:
        return []
    listed = [each for each in selector.requirements if each.operator == IN]
    if listed:
        fewest = min(listed, key=lambda each: len(each.values))
        return [(fewest.key, value) for value in fewest.values]
    present = (each.key for each in selector.requirements if not each.matches_value(None))
    key = next(present, None)
    return None if key is None else [(key,)]


def label_topics(*labels: Iterable[tuple[str, str]]) -> set[tuple[str, ...]]:
    """Return the topics that labels, as pairs, have."""
    return {topic for pairs in labels for key, value in pairs for topic in ((key,), (key, value))}
