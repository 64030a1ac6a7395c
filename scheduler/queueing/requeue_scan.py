"""Find the queued pods for which an event is worth another attempt, piece by piece.

An event is checked only for the pods of blockers that registered for it. Their hints declare the
fields that they read of a pod: a hint is called once for all alike pods, and not at all for pods
whose topics the event does not have.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plugins.framework.queueing_hints import EVERYBODY, ITSELF
from scheduler.queueing.event_backlog import EventBacklog
from scheduler.queueing.queue_states import QueueState
from scheduler.queueing.requeue_check import Verdict, is_about

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cache.objects import Pod
    from plugins.framework.cluster_events import ClusterEvent
    from plugins.framework.queueing_hints import GroupHint
    from scheduler.queueing.blocked_pods import BlockedPods, Blockers
    from scheduler.queueing.event_backlog import UnjudgedEvent
    from scheduler.queueing.queue_event import Happening
    from scheduler.queueing.queued_pod import QueuedPod
    from scheduler.queueing.requeue_check import Asker, WakeUps


PIECES_AT_ONCE: Final = 16
"""Questions asked, pods woken and pods indexed at most while an event is taken in: a question takes
a microsecond or two, to index a pod with terms some fifty."""


class WokenPod(NamedTuple):
    """A pod that is worth another attempt."""

    queued: QueuedPod
    verdict: Verdict
    event: ClusterEvent


class Judging:
    """Check the events of the backlog, the oldest first, as far as time allows.

    Each event is checked for the pods that waited when it arrived and are still in the same state.
    For pods in flight at that time it is checked at the end of their attempts, and an attempt that
    started later has seen the change.

    Parameters
    ----------
    blocked
        The pods that wait, by state.
    wake
        Moves a pod that is woken, or leaves it gated; returns whether it became active or moved
        to backoff.
    pieces_at_once
        The part of an event that is checked on arrival; None for all of it.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.
    """

    def __init__(
        self,
        wake_ups: WakeUps,
        blocked: Sequence[BlockedPods],
        wake: Callable[[WokenPod], bool],
        pieces_at_once: int | None = PIECES_AT_ONCE,
    ) -> None:
        self.backlog: Final = EventBacklog()
        self._wake_ups = wake_ups
        self._blocked = blocked
        self._wake = wake
        self._pieces_at_once = pieces_at_once
        self._under_way: tuple[UnjudgedEvent, Iterator[WokenPod | None]] | None = None

    def take_in(self, happening: Happening, pre_check: Callable[[Pod], bool] | None) -> int:
        """Put an event into the backlog, and judge a part of it if no other one waits.

        Returns how many pods became active or went to backoff.
        """
        if not self._concerns(happening.event):
            self.backlog.skip()
            return 0
        is_first = not self.backlog
        self.backlog.add(happening, pre_check)
        most = self._pieces_at_once
        if most is None:
            return self.run(lambda: False)
        pieces = count(1)
        return self.run(lambda: next(pieces) >= most) if is_first else 0

    def _concerns(self, event: ClusterEvent) -> bool:
        """Return whether any pod waits whose blockers have registered an event."""
        askers = self._wake_ups.askers
        for blocked in self._blocked:
            for blockers in blocked.groups() if len(blocked) else ():
                if askers(blockers, event):
                    return True
        return False

    def restart(self) -> None:
        """Judge the oldest event from the beginning: the plugins are others."""
        self._under_way = None

    def run(self, is_over: Callable[[], bool]) -> int:
        """Judge until ``is_over`` says so after some piece, or nothing is left.

        Returns how many pods became active or went to backoff.
        """
        moved = 0
        while (event := self.backlog.first()) is not None:
            if self._under_way is None or self._under_way[0] is not event:
                self._under_way = event, woken_pods(self._wake_ups, self._blocked, event)
            for woken in self._under_way[1]:
                if woken is not None:
                    woken.queued.heard = event.number
                    moved += self._wake(woken)
                if is_over():
                    return moved
            self.backlog.drop(event)
            if event.happening is not None:
                event.happening.forget_questions()
            self._under_way = None
        return moved


def woken_pods(
    wake_ups: WakeUps, blocked: Iterable[BlockedPods], unjudged: UnjudgedEvent
) -> Iterator[WokenPod | None]:
    """Yield the pods that an event wakes, and None after each other piece of work.

    Pods may come, go and change between two pieces. A pod that came to its state after the event
    is not concerned by it.

    Notes
    -----
    *Concurrency*: runs under the queue's lock, which may be free between two pieces.

    *Cost*: a piece is one question, one pod that is woken or one that is indexed.
    """
    for each in blocked:
        for blockers in each.groups():
            if unjudged.happening is None:
                yield from _all_concerned(wake_ups, each, blockers, unjudged)
                continue
            happening = unjudged.happening
            for asker in wake_ups.askers(blockers, happening.event):
                for queued in _helped(wake_ups, each, blockers, asker, happening):
                    if queued is None:
                        yield None
                    elif _is_news(queued, unjudged):
                        yield WokenPod(queued, asker.verdict, happening.event)


def _all_concerned(
    wake_ups: WakeUps, blocked: BlockedPods, blockers: Blockers, unjudged: UnjudgedEvent
) -> Iterator[WokenPod]:
    """Yield the pods whose blockers registered one of several events, without any hint."""
    concerned = [
        (askers[0].verdict, kind)
        for kind in unjudged.kinds
        if (askers := wake_ups.askers(blockers, kind))
    ]
    if concerned:
        verdict, kind = max(concerned, key=lambda each: each[0])
        for queued in blocked.pods_of(blockers):
            if _is_news(queued, unjudged):
                yield WokenPod(queued, verdict, kind)


def _is_news(queued: QueuedPod, unjudged: UnjudgedEvent) -> bool:
    """Return whether a pod waits as it did when the event came, and whether the event is for it."""
    if queued.heard >= unjudged.number or queued.state not in (
        QueueState.UNSCHEDULABLE,
        QueueState.GATED,
    ):
        return False
    pod = queued.info.pod
    if unjudged.pre_check is not None and not unjudged.pre_check(pod):
        return False
    happening = unjudged.happening
    return happening is None or not is_about(pod, happening)


def _helped(
    wake_ups: WakeUps, blocked: BlockedPods, blockers: Blockers, asker: Asker, happening: Happening
) -> Iterator[QueuedPod | None]:
    """Yield the pods of some blockers for which a hint says Queue, and None for each question."""
    hint = asker.hint
    if hint is None:
        yield from blocked.pods_of(blockers)
        return
    try:
        topics = happening.question(hint).topics
    except Exception as error:  # noqa: BLE001 - a plugin's failure must not strand the pods
        everybody = blocked.pods_of(blockers)
        if everybody:
            wake_ups.failed(asker.plugin, happening.event, everybody[0].info.pod, error)
        yield from everybody
        return
    if topics is not None and not topics:
        return
    for facts, pods in _groups(blocked, blockers, hint, happening):
        if facts is _NOT_YET:
            yield None
        elif pods and _says_queue(wake_ups, asker, happening, facts, pods[0]):
            yield from pods
        else:
            yield None


_NOT_YET = object()


def _groups(
    blocked: BlockedPods, blockers: Blockers, hint: GroupHint[Any], happening: Happening
) -> Iterator[tuple[Any, Sequence[QueuedPod]]]:
    """Yield each group for which a hint has to be called, with its pods."""
    likeness, question = hint.likeness, happening.question(hint)
    if likeness is EVERYBODY:
        yield None, blocked.pods_of(blockers)
    elif likeness is ITSELF:
        named = question.topics
        pods: Iterable[QueuedPod | None] = blocked.pods_of(blockers)
        if named is not None:
            pods = [blocked.pod_of(blockers, str(uid)) for uid in named]
        for queued in pods:
            if queued is not None:
                yield queued.info, (queued,)
    else:
        like = blocked.like(blockers, likeness)
        while like.index_one():
            yield _NOT_YET, ()
        for group in like.groups(question):
            yield group.facts, list(group.pods.values())


def _says_queue(
    wake_ups: WakeUps, asker: Asker, happening: Happening, facts: Any, one: QueuedPod
) -> bool:
    """Return a hint's result for a group; a hint that raises counts as Queue."""
    try:
        return asker.hint is None or happening.helps(asker.hint, facts)
    except Exception as error:  # noqa: BLE001 - a plugin's failure must not strand the pods
        wake_ups.failed(asker.plugin, happening.event, one.info.pod, error)
        return True
