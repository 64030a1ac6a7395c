"""Count the gangs that have begun and are below their minimum; evict their rest after a time.

    partial -> grace is over -> DisruptionTarget on the group -> its members are evicted
            -> whole again, or somebody has succeeded -> nothing

A gang whose minimum cannot be completed any more uses nodes for nothing. It is evicted only where
its object says so: the annotation ``scheduling.berth.dev/partial-gang-grace`` is how long it may
stay partial, by a Go duration such as ``10m``; without it, or with one that is not positive, it
stays for ever. The time counts from when this process saw the gang become partial, so that a new
leader counts anew.

# Differs: kube-scheduler does nothing about a group once it was scheduled.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from cache.pod_groups import MemberState
from cache.pod_info import readable_info
from cache.value import MutableValue
from plugins.framework.go_duration import parse_go_duration
from scheduler.api_writes.eviction import Evicted
from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey, GroupRules
    from cache.pod_groups import PodGroups
    from scheduler.api_writes.eviction import Evictor
    from scheduler.cycle.group_reports import GroupReports
    from scheduler.process.ports import Ports

PLUGIN: Final = "PartialGang"
"""In whose name members are turned back that wait in Permit."""

AGAIN_S: Final = 30.0
"""The pause after an eviction that failed."""

MAX_EVICTIONS: Final = 8
"""Evictions under way at one time: there is no hurry, and binds need the connection."""

log = structlog.get_logger(__name__)


def grace_s(rules: GroupRules) -> float | None:
    """Return for how many seconds a gang may stay partial; None for ever.

    Raises
    ------
    ValueError
        When the annotation is no duration.
    """
    if not rules.partial_grace:
        return None
    seconds = parse_go_duration(rules.partial_grace).seconds
    return seconds if seconds > 0 else None


def count_partial(groups: PodGroups, profile_names: Set[str]) -> int:
    """Return how many gangs with a member of ours are partial. Any thread."""
    return sum(1 for key in groups.partial() if _has_member_of(profile_names, groups, key))


def _has_member_of(profile_names: Set[str], groups: PodGroups, key: GroupKey) -> bool:
    return not profile_names.isdisjoint(groups.standing(key).scheduler_names)


class _Gang(MutableValue):
    """A partial gang.

    Attributes
    ----------
    since_s
        When it became partial (monotonic seconds).
    not_before_s
        When it may be evicted again.
    """

    since_s: float
    not_before_s: float = 0.0
    is_evicting: bool = False
    is_unreadable: bool = False


class PartialGangs:
    """Evicts the rest of the partial gangs whose grace is over; only members of ours.

    Parameters
    ----------
    ports
        The loop and the clock.
    groups
        All groups.
    live_pod
        Returns the latest version of a pod by namespace and name, or None.
    profile_names
        The schedulerNames that are ours.
    evictor
        Evicts one pod.
    reports
        Reports the eviction.

    Notes
    -----
    *Concurrency*: loop-confined.

    *Cost*: a round O(partial gangs).
    """

    def __init__(
        self,
        ports: Ports[object],
        groups: PodGroups,
        live_pod: Callable[[str, str], Pod | None],
        profile_names: Callable[[], Set[str]],
        evictor: Evictor,
        reports: GroupReports,
    ) -> None:
        self._clock = ports.clock.monotonic
        self._groups = groups
        self._live_pod = live_pod
        self._profile_names = profile_names
        self._evictor = evictor
        self._reports = reports
        self._gangs: dict[GroupKey, _Gang] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_EVICTIONS)

    def round(self) -> None:
        """Begin to evict the gangs whose grace is over. Called about once a second."""
        now_s, known = self._clock(), self._gangs
        self._gangs = {key: known.get(key) or _Gang(now_s) for key in self._groups.partial()}
        for key, gang in self._gangs.items():
            if gang.is_evicting or now_s < gang.not_before_s or not self._is_ours(key):
                continue
            grace = self._grace_s(key, gang)
            if grace is not None and now_s - gang.since_s >= grace:
                gang.not_before_s = now_s + AGAIN_S
                victims = self._members_with_nodes(key)
                if victims:
                    self._begin(key, gang, victims, grace)

    async def stop(self) -> None:
        """Cancel the evictions under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:  # gather would look for the loop, and make one where there is none
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_ours(self, key: GroupKey) -> bool:
        return _has_member_of(self._profile_names(), self._groups, key)

    def _grace_s(self, key: GroupKey, gang: _Gang) -> float | None:
        rules = self._groups.rules(key)
        if rules is None:
            return None
        try:
            return grace_s(rules)
        except ValueError as error:
            if not gang.is_unreadable:
                log.warning("partial-gang-grace cannot be read", group=str(key), error=str(error))
            gang.is_unreadable = True
            return None

    def _members_with_nodes(self, key: GroupKey) -> list[Pod]:
        """Return the members of ours that have a node and are not on their way out."""
        names = self._profile_names()
        pods = [
            self._live_pod(key.namespace, member.name)
            for member in self._groups.members(key).values()
            if member.state is MemberState.ASSIGNED
            and member.scheduler_name in names
            and not member.is_terminating
        ]
        return [pod for pod in pods if pod is not None]

    def _begin(self, key: GroupKey, gang: _Gang, victims: Sequence[Pod], grace: float) -> None:
        standing = self._groups.standing(key)
        minimum = 0 if standing.rules is None else standing.rules.minimum
        message = (
            f"only {standing.counts.satisfied} of at least {minimum} members have had a node "
            f"for more than {grace:g} s"
        )
        log.warning("evicting the rest of a partial gang", group=str(key), reason=message)
        self._reports.evicting(key, message)
        gang.is_evicting = True
        self._groups.begin_eviction(key)
        task = asyncio.get_running_loop().create_task(self._evict(key, gang, victims, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _evict(self, key: GroupKey, gang: _Gang, victims: Sequence[Pod], text: str) -> None:
        try:
            await self._reports.told(key)
            ends = await asyncio.gather(*(self._evict_member(key, pod, text) for pod in victims))
            log.info("partial gang was evicted", group=str(key), evicted=sum(ends), of=len(ends))
            if not any(ends):
                self._reports.spared(key, "no member was evicted")
        finally:
            gang.is_evicting = False
            infos = map(readable_info, victims)
            leaving = [each for each in infos if self._evictor.is_leaving(each)]
            self._groups.end_eviction(key, [each.uid for each in leaving])

    async def _evict_member(self, key: GroupKey, pod: Pod, message: str) -> bool:
        """Evict a member unless its gang is whole meanwhile; return whether that was done."""
        text = f"{pod.spec.scheduler_name}: {message}"
        async with self._slots:
            try:
                end = await self._evictor.evict(
                    readable_info(pod), PLUGIN, text, lambda: self._groups.is_partial(key)
                )
            except ApiError as error:
                name = pod.metadata.name
                log.error("a member cannot be evicted", group=str(key), pod=name, error=str(error))
                return False
        if end not in (Evicted.DELETED, Evicted.SENT_BACK):
            return False
        self._reports.evicted(pod, message)
        return True
