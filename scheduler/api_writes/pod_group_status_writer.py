"""Write the statuses of PodGroups, at most once a second for each group, only when they change.

    report(), evicting(), a change of members -> wanted, one entry for each group
                                              -> paced, a few workers -> API server

What a PodGroup of ``scheduling.x-k8s.io`` should say is derived whenever its members change, not
only when it may be written, so that a phase between two writes is not missed. What one of
``scheduling.k8s.io`` should say comes from attempts, and from its members once all of the minimum
have a node. Newer content takes the place of content that still waits. What a group says already,
as the watch shows it, is not written: a new leader looks at all groups once, and writes what is out
of date.

Groups whose members name only other schedulers are left alone.

# Differs: kube-scheduler waits for the answer on its scheduling thread, and what it could not write
stays unwritten.

*Source*: pkg/scheduler/schedule_one_podgroup.go, updatePodGroupCondition (1.36).
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import structlog

from cache.pod_group_objects import GroupSource, PodGroup, XPodGroup, XPodGroupStatus
from cache.value import MutableValue, Value
from scheduler.api_writes.paced_writer import PacedWriter
from scheduler.api_writes.pod_group_status import (
    DISRUPTION_TARGET,
    POD_GROUP_SCHEDULED,
    PREEMPTION_BY_SCHEDULER,
    SCHEDULED,
    WantedCondition,
    WrittenGroups,
    changed_conditions,
    conditions_patch,
    cut_text,
    is_whole,
    wanted_x_status,
    was_scheduled,
    x_status_patch,
)
from scheduler.api_writes.settle import AGAIN, REFUSED, Failure, settle, why_given_up
from scheduler.client.codec import UndecodableObjectError
from scheduler.client.errors import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import GroupReport, PodGroups
    from scheduler.api_writes.patch_api import PatchApi
    from scheduler.kinds import ResourceKind
    from scheduler.process.ports import Ports

MAX_TRIES: Final = 8
"""Attempts at one status; about half a minute with the client's backoff."""

PUT_OFF_S: Final = 30.0
"""The pause after these attempts where nobody answered: the last status of a group has to be
written even if no change follows."""

FORBIDDEN_S: Final = 60.0
"""The pause in the writes of an API after one that we lack the right to."""

MAX_CONDITIONS: Final = 10_000
"""Groups whose conditions may wait, with some kilobytes of text each."""

_SLICE: Final = 200
"""Groups that a new leader looks at in one piece: about a millisecond of the loop."""

_PAUSE_S: Final = 0.1

_AGAIN: Final = AGAIN | {Action.CONFLICT}
_SUPERSEDED: Final = "superseded"

log = structlog.get_logger(__name__)


class _News(NamedTuple):
    """Something to look at: a condition of a group, or, without one, its members."""

    key: GroupKey
    type: str = ""
    condition: WantedCondition | None = None


class _Wanted(MutableValue):
    """What a group should say and was not written yet.

    Attributes
    ----------
    uid
        Of the object. One that was made again under the name says something else.
    conditions
        By type; of ``scheduling.k8s.io``.
    x_status
        Of ``scheduling.x-k8s.io``.
    """

    uid: str
    conditions: dict[str, WantedCondition] = msgspec.field(default_factory=dict)
    x_status: XPodGroupStatus | None = None


class PodGroupStatusStatistics(Value, frozen=True):
    """What became of the statuses; all but the first are totals."""

    queued: int
    """Waiting or under way."""
    written: int
    """Accepted by the API server."""
    dropped: int
    """Conditions that were not taken in, because too many were waiting."""
    failed: int
    """Refused, or too many attempts."""
    put_off: int
    """Series of attempts that ended without an answer; they begin again later."""


class PodGroupStatusWriter(PacedWriter[_News, "GroupKey"]):
    """Writes the statuses of PodGroups.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the delays between attempts.
    groups
        All groups; the writer subscribes to them.
    kinds
        Returns the kind of the PodGroups of an API, in the version that is watched, or None.
    profile_names
        The schedulerNames that are ours.
    writes_x_statuses
        Whether statuses of ``scheduling.x-k8s.io`` are written; otherwise they are left to the
        controller of scheduler-plugins.
    pressure
        Whether binds need the connection more; asked often, so keep it cheap.

    Notes
    -----
    *Concurrency*: :meth:`report`, :meth:`evicting`, :meth:`spared` and :meth:`statistics` are
    thread-safe, the rest belongs to the loop.

    *Cost*: a change of a member takes about 10 us of the loop's time, besides the request. Memory
    belongs only to groups whose status is out of date or was written lately.
    """

    NAME = "pod-group-status"
    LEFT = "statuses of pod groups left unwritten"

    def __init__(
        self,
        ports: Ports[PatchApi],
        groups: PodGroups,
        kinds: Callable[[GroupSource], ResourceKind[Any] | None],
        profile_names: Callable[[], Set[str]],
        *,
        writes_x_statuses: bool = True,
        pressure: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(ports, MAX_TRIES, MAX_CONDITIONS, workers=4, pressure=pressure)
        self._api = ports.api
        self._groups = groups
        self._kinds = kinds
        self._profile_names = profile_names
        self._writes_x_statuses = writes_x_statuses
        self._leads = False
        self._wanted: dict[GroupKey, _Wanted] = {}
        self._demanded: set[GroupKey] = set()
        """Those in ``_wanted`` for their conditions."""
        self._lately = WrittenGroups()
        self._forbidden_until_s = dict.fromkeys(GroupSource, -math.inf)
        self._written = self._put_off_count = 0
        groups.subscribe(self._changed)

    # --- callers ------------------------------------------------------------------------------

    def report(self, key: GroupKey, reason: str, message: str) -> None:
        """Let a group say whether, or why not, it was scheduled. Never waits, never raises.

        A group that was scheduled once says so for ever. Groups of ``scheduling.x-k8s.io`` have
        no condition; nothing is written for them.

        Parameters
        ----------
        reason
            ``Scheduled``, ``Unschedulable`` or ``SchedulerError``.
        """
        wanted = WantedCondition(reason == SCHEDULED, reason, cut_text(message))
        self._want(key, POD_GROUP_SCHEDULED, wanted)

    def evicting(self, key: GroupKey, message: str) -> None:
        """Let a group say that members of it are about to be evicted. Never waits, never raises.

        :meth:`written` waits until it says so.
        """
        wanted = WantedCondition(True, PREEMPTION_BY_SCHEDULER, cut_text(message))
        self._want(key, DISRUPTION_TARGET, wanted)

    def spared(self, key: GroupKey, message: str) -> None:
        """Take back what :meth:`evicting` said. Never waits, never raises."""
        wanted = WantedCondition(False, PREEMPTION_BY_SCHEDULER, cut_text(message))
        self._want(key, DISRUPTION_TARGET, wanted)

    def _want(self, key: GroupKey, type_: str, wanted: WantedCondition) -> None:
        if key.source is not GroupSource.FIELD:
            return
        if key not in self._demanded and len(self._demanded) >= MAX_CONDITIONS:
            with self._lock:
                self._dropped += 1
            return
        self._put(_News(key, type_, wanted), needs_room=False)

    def statistics(self) -> PodGroupStatusStatistics:
        """Return what became of the statuses so far."""
        return PodGroupStatusStatistics(
            self.queued, self._written, self._dropped, self._failed, self._put_off_count
        )

    # --- life ---------------------------------------------------------------------------------

    def lead(self) -> None:
        """Write from now on; what is out of date at this moment is written first."""
        self._leads = True
        self._spawn(self._look_at_all(), "first-look")

    async def _look_at_all(self) -> None:
        for number, key in enumerate(self._groups.keys()):
            self._receive(_News(key))
            if number % _SLICE == _SLICE - 1:
                await self._executor.sleep(0)
            while self._queue.qsize() >= _SLICE:
                # Behind so many, news would wait for too long.
                await self._executor.sleep(_PAUSE_S)
        await asyncio.Event().wait()  # a task that ends would end the process

    def _changed(self, key: GroupKey) -> None:
        if self._leads:
            self._put(_News(key), needs_room=False)

    # --- what should be written ---------------------------------------------------------------

    def _receive(self, value: _News) -> None:
        if not self._leads:
            return
        try:
            if value.condition is None:
                self._look(value.key)
            else:
                self._demand(value.key, value.type, value.condition)
        except Exception:
            # Reached only by a mistake of ours, which shall not end the loop's turn.
            self._failed += 1
            log.exception("status of a pod group cannot be derived", group=str(value.key))

    def _look(self, key: GroupKey) -> None:
        """Derive what a group should say from its members."""
        report = self._groups.report(key)
        described_by = None if report is None else report.described_by
        if report is None or described_by is None:
            self._drop(key)
        elif isinstance(described_by, XPodGroup):
            if self._writes_x_statuses and self._is_ours(report, or_empty=True):
                self._derive(key, report, described_by)
        elif is_whole(report) and not was_scheduled(described_by):
            counts = report.standing.counts
            message = f"{counts.assigned + counts.succeeded} members have or had a node"
            self._demand(key, POD_GROUP_SCHEDULED, WantedCondition(True, SCHEDULED, message))

    def _derive(self, key: GroupKey, report: GroupReport, described_by: XPodGroup) -> None:
        shown = self._lately.newest(key, described_by, self._clock()).status
        uid, waiting = described_by.metadata.uid, self._wanted.get(key)
        before = shown
        if waiting is not None and waiting.uid == uid and waiting.x_status is not None:
            before = waiting.x_status
        wanted = wanted_x_status(before, report, self._wall_clock())
        if wanted == shown:
            self._drop(key)
        else:
            self._wanted[key] = _Wanted(uid, x_status=wanted)
            self._schedule(key)

    def _demand(self, key: GroupKey, type_: str, condition: WantedCondition) -> None:
        """Note what a condition of a group should say, if there is an object to say it."""
        report = self._groups.report(key)
        if report is None or report.described_by is None or not self._is_ours(report):
            return
        uid = report.described_by.metadata.uid
        waiting = self._wanted.get(key)
        if waiting is None or waiting.uid != uid:
            waiting = self._wanted[key] = _Wanted(uid)
            self._demanded.add(key)
        before = waiting.conditions.get(type_)
        if type_ == POD_GROUP_SCHEDULED and before is not None and before.is_true:
            return
        waiting.conditions[type_] = condition
        self._schedule(key)

    def _is_ours(self, report: GroupReport, *, or_empty: bool = False) -> bool:
        names = report.all_scheduler_names
        return or_empty if not names else not names.isdisjoint(self._profile_names())

    def _drop(self, key: GroupKey) -> _Wanted | None:
        self._demanded.discard(key)
        return self._wanted.pop(key, None)

    # --- sending ------------------------------------------------------------------------------

    def _is_waiting(self, key: GroupKey) -> bool:
        return key in self._wanted

    def _written_at_s(self, key: GroupKey) -> float:
        return self._lately.written_at_s(key)

    async def _settle(self, key: GroupKey) -> float | None:
        wanted = self._drop(key)
        if wanted is None or self._clock() < self._forbidden_until_s[key.source]:
            return None
        tries = self._failing.tries(key.namespace, MAX_TRIES)

        async def attempt() -> bool:
            return await self._send(key, wanted)

        def gives_up(failure: Failure) -> str:
            why = why_given_up(failure, tries, _AGAIN)
            return _SUPERSEDED if not why and key in self._wanted else why

        # To write it twice is as good as once, so there is nothing to ask.
        end = await settle(attempt, gives_up, self._executor.sleep, self._rng)
        if isinstance(end, Failure):
            return self._not_written(key, wanted, end)
        if end:
            self._written += 1
            self._failing.accepted(key.namespace)
        return None

    def _not_written(self, key: GroupKey, wanted: _Wanted, end: Failure) -> float | None:
        if end.action is Action.GONE:
            return None
        if end.why == _SUPERSEDED:
            self._keep(key, wanted)
            return None
        if end.why != REFUSED and not end.error.is_explained:
            self._keep(key, wanted)
            self._put_off_count += 1
            return PUT_OFF_S
        if end.action is Action.FORBIDDEN and not end.error.is_from_admission:
            self._forbidden_until_s[key.source] = self._clock() + FORBIDDEN_S
        why = self._give_up(key.namespace, end)
        if why:
            log.error(
                "status of a pod group cannot be written",
                group=str(key),
                error=why,
                failed=self._failed,
            )
        return None

    def _keep(self, key: GroupKey, wanted: _Wanted) -> None:
        """Let content wait again that was not written, as far as there is no newer content."""
        newer = self._wanted.setdefault(key, wanted)
        if newer.uid == wanted.uid:
            newer.conditions = {**wanted.conditions, **newer.conditions}
            scheduled = wanted.conditions.get(POD_GROUP_SCHEDULED)
            if scheduled is not None and scheduled.is_true:
                newer.conditions[POD_GROUP_SCHEDULED] = scheduled
        if newer.conditions:
            self._demanded.add(key)

    async def _send(self, key: GroupKey, wanted: _Wanted) -> bool:
        """Write what differs from what the group says now; return whether anything did."""
        report, kind = self._groups.report(key), self._kinds(key.source)
        described_by = None if report is None else report.described_by
        if described_by is None or kind is None or described_by.metadata.uid != wanted.uid:
            return False
        status = self._patch(key, wanted, described_by, kind.group_version)
        if not status:
            return False
        patch = {"metadata": {"uid": wanted.uid}, "status": status}
        is_strategic = key.source is GroupSource.FIELD
        shown: PodGroup | XPodGroup | None = None
        try:
            shown = await self._api.patch_object(
                kind, key.namespace, key.name, patch, subresource="status", strategic=is_strategic
            )
        except UndecodableObjectError as error:
            # It was written all the same.
            log.warning("a pod group cannot be read", group=str(key), error=str(error))
        finally:
            self._lately.written(key, shown, self._clock())
        return True

    def _patch(
        self, key: GroupKey, wanted: _Wanted, described_by: PodGroup | XPodGroup, version: str
    ) -> dict[str, Any]:
        now_s = self._clock()
        if isinstance(described_by, XPodGroup):
            shown = self._lately.newest(key, described_by, now_s).status
            return {} if wanted.x_status is None else x_status_patch(shown, wanted.x_status)
        newest = self._lately.newest(key, described_by, now_s)
        changed = changed_conditions(wanted.conditions, newest, version, self._wall_clock())
        return conditions_patch(changed) if changed else {}
