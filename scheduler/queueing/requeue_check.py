"""Check whether a cluster event is worth another attempt for a rejected pod.

*Source*: pkg/scheduler/backend/queue/scheduling_queue.go, isPodWorthRequeuing (1.36).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cache.objects import Pod
from plugins.framework.cluster_events import (
    Action,
    ClusterEvent,
    EventRegistration,
    Resource,
    update_events,
)
from plugins.framework.queueing_hints import ITSELF, YES, GroupHint, Question, for_each_pod
from scheduler.queueing.blocked_pods import Blockers
from scheduler.queueing.pod_changes import pod_changes
from scheduler.queueing.queue_event import Happening

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.pod_info import PodInfo
    from scheduler.queueing.in_flight import Attempt, InFlight
    from scheduler.queueing.pod_facts import PodFacts
    from scheduler.queueing.queued_pod import QueuedPod

MAX_EVENT_KINDS: Final = 256
"""Several times as many as there are."""

MAX_GROUPS: Final = 1024
"""More than the number of ways in which pods are rejected at one time."""

_NOT_REGISTERED: tuple[GroupHint[Any] | None, ...] = (None,)
"""The value for a blocker without registrations because the profile does not contain it."""


class Verdict(IntEnum):
    """The effect of an event on a pod; the larger value wins."""

    STAY = 0
    """Nothing would be different."""
    AFTER_BACKOFF = 1
    """Worth another attempt once its pause is over."""
    AT_ONCE = 2
    """A plugin that had returned Pending allows the attempt: no pause."""


class Asker(NamedTuple):
    """A blocker that an event concerns."""

    plugin: str
    hint: GroupHint[Any] | None
    verdict: Verdict
    """The verdict if the hint returns Queue, or if there is no hint."""


class WakeUp(NamedTuple):
    """The effect of an update on a pod, and the event that has this effect."""

    verdict: Verdict
    label: str


def _about_everything(old: object, new: object) -> Question[PodInfo]:
    """Ask about an event that stands for everything: it is for all pods, unless it names one."""
    if not isinstance(new, Pod):
        return YES
    uid = new.metadata.uid
    return Question(lambda info: info.uid == uid, (uid,))


_EVERYBODY = (Asker("", GroupHint(ITSELF, _about_everything), Verdict.AFTER_BACKOFF),)


class WakeUps:
    """Store the registrations of all profiles by event.

    Parameters
    ----------
    registrations
        Returns, for a profile, the events for which each of its plugins has registered. Called
        once for each profile, and once more after :meth:`forget`.
    on_error
        Called when a hint raises, with the plugin, the event, the pod and the error.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: of :meth:`askers`, a look-up, but for the first time; of :meth:`verdict`, one call for
    each hint until one says Queue.
    """

    def __init__(
        self,
        registrations: Callable[[str], Mapping[str, Sequence[EventRegistration]]],
        on_error: Callable[[str, ClusterEvent, Pod, Exception], None],
    ) -> None:
        self._registrations = registrations
        self.failed = on_error
        self._plugins: dict[str, dict[str, list[tuple[ClusterEvent, GroupHint[Any] | None]]]] = {}
        self._askers: dict[int, tuple[ClusterEvent, dict[Blockers, tuple[Asker, ...]]]] = {}
        # A few dozen entries: as many as there are kinds of events, for each profile.
        self._hints: dict[tuple[str, str, int], dict[str, tuple[GroupHint[Any] | None, ...]]] = {}

    def forget(self) -> None:
        """Drop the registrations after a change of profiles. *Cost*: none by itself."""
        self._plugins.clear()
        self._hints.clear()
        self._askers.clear()

    def askers(self, blockers: Blockers, event: ClusterEvent) -> tuple[Asker, ...]:
        """Return the blockers of a rejected pod that an event concerns.

        A blocker that its profile does not know is concerned by everything: nobody can tell what
        would change its mind, and the pod must not wait for the time limit. A wildcard event
        concerns every refused pod, whoever refused it. A gated pod is only concerned by what its
        gate has registered, but then everybody who refused it is asked.
        """
        # Whoever tells of an event tells of the same object each time, and by identity it is
        # found ten times as fast as by what it says.
        known = self._askers.get(id(event))
        if known is None or known[0] is not event:
            if len(self._askers) >= MAX_EVENT_KINDS:
                self._askers.clear()
            known = self._askers[id(event)] = event, {}
        askers = known[1].get(blockers)
        if askers is None:
            if len(known[1]) >= MAX_GROUPS:
                known[1].clear()
            askers = known[1][blockers] = self._find_askers(blockers, event)
        return askers

    def _find_askers(self, blockers: Blockers, event: ClusterEvent) -> tuple[Asker, ...]:
        hints = self._hints_of(blockers.profile, event)
        if blockers.gate and not hints.get(blockers.gate):
            return ()
        if event.is_wildcard:
            return _EVERYBODY
        found: list[Asker] = []
        for plugins, verdict in (
            (blockers.pending, Verdict.AT_ONCE),
            (blockers.unschedulable - blockers.pending, Verdict.AFTER_BACKOFF),
        ):
            for plugin in sorted(plugins):
                wanted = hints.get(plugin, _NOT_REGISTERED)
                found += [Asker(plugin, hint, verdict) for hint in wanted]
        return tuple(found)

    def verdict(self, askers: Sequence[Asker], happening: Happening, facts: PodFacts) -> Verdict:
        """Ask about one pod until the first says Queue. A hint that raises has said Queue."""
        if is_about(facts.info.pod, happening):
            return Verdict.STAY
        # Askers that mean AT_ONCE stand first, so the first Queue is the largest verdict.
        for plugin, hint, verdict in askers:
            if hint is None:
                return verdict
            try:
                helps = happening.helps(hint, facts.of(hint.likeness))
            except Exception as error:  # noqa: BLE001 - a plugin's failure must not strand the pod
                self.failed(plugin, happening.event, facts.info.pod, error)
                return verdict
            if helps:
                return verdict
        return Verdict.STAY

    def after_update(self, queued: QueuedPod, before: PodInfo) -> WakeUp:
        """Check the update of a rejected pod itself: the first change that helps counts."""
        pod = queued.info.pod
        if pod is not before.pod:
            changes = pod_changes(before, queued.info)
            of = Blockers.of_refused if queued.gated_by is None else Blockers.of_gated
            blockers = of(queued)
            for event in update_events(Resource.UNSCHEDULED_POD, changes) if changes else ():
                askers = self.askers(blockers, event)
                happening = Happening(event, before.pod, pod)
                verdict = self.verdict(askers, happening, queued.facts)
                if verdict is not Verdict.STAY:
                    return WakeUp(verdict, event.label)
        return WakeUp(Verdict.STAY, "")

    def after_attempt(self, queued: QueuedPod, attempt: Attempt, in_flight: InFlight) -> Verdict:
        """Judge all that happened while a pod was tried.

        *Source*: determineSchedulingHintForInFlightPod, in the same file.
        """
        if not queued.was_refused:
            return Verdict.AFTER_BACKOFF
        blockers = Blockers.of_refused(queued)
        largest = Verdict.AT_ONCE if blockers.pending else Verdict.AFTER_BACKOFF
        best = self.after_update(queued, attempt.tried).verdict
        if attempt.activated or in_flight.has_lost_events(attempt):
            best = max(best, Verdict.AFTER_BACKOFF)
        facts = queued.facts
        for happening in in_flight.events_of(attempt):
            if best is largest:
                break
            askers = self.askers(blockers, happening.event)
            best = max(best, self.verdict(askers, happening, facts))
        return best

    def _hints_of(
        self, profile: str, event: ClusterEvent
    ) -> dict[str, tuple[GroupHint[Any] | None, ...]]:
        """Return, for every plugin of the profile, the hints of its registrations that match."""
        key = (profile, event.resource, int(event.action))
        hints = self._hints.get(key)
        if hints is None:
            plugins = self._plugins.get(profile)
            if plugins is None:
                plugins = {
                    plugin: [_in_groups(each) for each in with_node_taints(wanted)]
                    for plugin, wanted in self._registrations(profile).items()
                }
                self._plugins[profile] = plugins
            hints = self._hints[key] = {
                plugin: tuple(hint for registered, hint in wanted if registered.matches(event))
                for plugin, wanted in plugins.items()
            }
        return hints


def with_node_taints(wanted: Sequence[EventRegistration]) -> Sequence[EventRegistration]:
    """Return registrations with the events that kube-scheduler adds to them.

    Plugins that register for new nodes also receive, without a call of a hint, nodes with other
    taints: a new node often comes with a taint that falls off it a moment later.

    *Source*: pkg/scheduler/scheduler.go, buildQueueingHintMap (1.36).
    """
    of_nodes = Action(0)
    for each in wanted:
        if each.event.resource is Resource.NODE:
            of_nodes |= each.event.action
    if Action.ADD in of_nodes and Action.UPDATE_NODE_TAINT not in of_nodes:
        return (*wanted, EventRegistration(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)))
    return wanted


def _in_groups(registration: EventRegistration) -> tuple[ClusterEvent, GroupHint[Any] | None]:
    hint = registration.hint
    if hint is None or isinstance(hint, GroupHint):
        return registration.event, hint
    return registration.event, for_each_pod(hint)


def is_about(pod: Pod, happening: Happening) -> bool:
    """Return whether an event is about a pod itself, as one that is assigned.

    What a pod gives back when its own assumption is undone is no news to itself: it had it.
    """
    if happening.event.resource is not Resource.ASSIGNED_POD:
        return False
    subject = happening.old if happening.new is None else happening.new
    return isinstance(subject, Pod) and subject.metadata.uid == pod.metadata.uid
