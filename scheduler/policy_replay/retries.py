"""The pods that the other policy refused and that were placed then: when each is tried again.

They wait in a scheduling queue of their own, with the queueing hints of the other policy's plugins
and with pauses in replayed time. Pods that were refused then as well are not here: they are tried
when they were tried then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.framework.status import SUCCESS
from scheduler.queueing import QueuedGroup, QueueRules, QueueState, SchedulingQueue, entry_uid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import PodGroups
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import ClusterEvent, EventRegistration
    from plugins.framework.status import Status
    from scheduler.decision.decision import Decision
    from scheduler.queueing import QueuedPod, Refusers
    from scheduler.runtime.framework_runner import FrameworkRunner

MOST_AT_ONCE: Final = 1_000
"""Attempts between two recorded decisions: those beyond come after the next one."""


class Retries:
    """Store refused pods until something may help them.

    Parameters
    ----------
    frameworks
        The profiles by schedulerName.
    groups
        The groups of pods.
    clock
        Returns the replayed time, in seconds.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(
        self,
        frameworks: Mapping[str, FrameworkRunner],
        groups: PodGroups,
        clock: Callable[[], float],
    ) -> None:
        self._frameworks = frameworks
        self._uids: set[str] = set()
        first = next(iter(frameworks.values()))
        rules = QueueRules(
            first.sort_key, self._pre_enqueue, self._registrations, standing=groups.standing
        )
        self._queue = SchedulingQueue(rules, clock)
        groups.subscribe(self._group_changed)

    def __len__(self) -> int:
        return len(self._uids)

    def _pre_enqueue(self, pod: Pod) -> Status:
        framework = self._frameworks.get(pod.spec.scheduler_name)
        return SUCCESS if framework is None else framework.pre_enqueue(pod)

    def _registrations(self, name: str) -> Mapping[str, Sequence[EventRegistration]]:
        framework = self._frameworks.get(name)
        return {} if framework is None else framework.event_registrations()

    def _group_changed(self, key: GroupKey) -> None:
        if self._uids:
            self._queue.group_changed(key)

    def hear(self, event: ClusterEvent, old: object, new: object) -> None:
        """Wake the pods that an event may help."""
        if self._uids:
            self._queue.move_all(event, old, new)

    def flush(self) -> None:
        """Let time pass: pauses end, and pods that waited too long are tried."""
        if self._uids:
            self._queue.flush_backoff()
            self._queue.flush_unschedulable_leftover()

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        if uid in self._uids:
            self._uids.discard(uid)
            self._queue.done(uid)
            self._queue.delete(uid)

    def activate(self, uids: Sequence[str]) -> None:
        """Try these pods again without a pause; others are passed over."""
        if self._uids:
            self._queue.activate(uids)

    def add(self, info: PodInfo) -> None:
        """Add a pod that is tried as soon as it may be."""
        self._uids.add(info.uid)
        self._queue.add(info)

    def refuse(self, info: PodInfo, decision: Decision) -> None:
        """Add a pod that was just refused."""
        self._uids.add(info.uid)
        self._queue.add(info)
        queued = self._pop(info.uid)
        if queued is not None:
            self.refused(queued, decision)

    def refuse_group(
        self, key: GroupKey, members: Sequence[PodInfo], refusers: Mapping[str, Refusers]
    ) -> None:
        """Add the members of a group that was just refused."""
        for info in members:
            self._uids.add(info.uid)
            self._queue.add(info)
        entry = self._pop(entry_uid(key))
        if isinstance(entry, QueuedGroup):
            self._queue.group_refused(entry, refusers)

    def _pop(self, uid: str) -> QueuedPod | None:
        """Take a pod, or the entry of a group, that was just added; None if it is kept out."""
        while self._queue.state_of(uid) is QueueState.ACTIVE:
            queued = self._queue.pop(0.0)
            if queued is None or queued.info.uid == uid:
                return queued
            # One of those that were too many at once: it waits for the next event.
            if isinstance(queued, QueuedGroup):
                self._queue.group_refused(queued, {})
            else:
                self._queue.add_unschedulable(queued)
        return None

    def refused(self, queued: QueuedPod, decision: Decision) -> None:
        """Return a pod that was tried once more and refused."""
        is_no = decision.status.is_rejection
        found = decision.diagnosis
        queued.unschedulable_plugins = found.unschedulable_plugins if is_no else frozenset()
        queued.pending_plugins = found.pending_plugins if is_no else frozenset()
        self._queue.add_unschedulable(queued)

    def group_refused(self, entry: QueuedGroup, refusers: Mapping[str, Refusers]) -> None:
        """Return a group that was tried once more and refused."""
        self._queue.group_refused(entry, refusers)

    def group_placed(self, entry: QueuedGroup) -> None:
        """End the attempt of a group that was placed; each member is ended by itself."""
        self._queue.group_placed(entry)

    def due(self) -> Iterator[QueuedPod]:
        """Yield the pods and the entries of groups whose turn it is, each in flight."""
        for _ in range(MOST_AT_ONCE):
            queued = self._queue.pop(0.0) if self._uids else None
            if queued is None:
                return
            yield queued
