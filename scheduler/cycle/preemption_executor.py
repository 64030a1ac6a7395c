"""Execute preemptions on the I/O loop, while the scheduling thread continues.

    start (scheduling thread) -> inbox -> all victims but the last, in parallel -> the last one
    any failure -> the nomination ends, the preemptor is retried

A preemptor stays out of the queue while its victims are evicted, by the PreEnqueue of the plugin
that calls :meth:`PreemptionExecutor.is_running`. The event of a deleted victim returns it to the
queue. So the last victim is evicted separately, and from then on the watch decides: once it has
reported that victim's deletion, the preemption has ended, even before the response to our DELETE.
Otherwise the only remaining event could arrive while the pod is still kept out.

*Source*: pkg/scheduler/framework/preemption/executor.go, prepareCandidateAsync (1.36).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import structlog

from cache.pod_group_objects import group_key
from cache.value import MutableValue, Value
from plugins.framework.status import SUCCESS, Status
from scheduler.api_writes.eviction import Evicted
from scheduler.process.loop_inbox import LoopInbox
from scheduler.queueing import entry_uid

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from plugins.framework.victims import Victims
    from scheduler.api_writes.eviction import Evictor
    from scheduler.cycle.reports import Reports
    from scheduler.pod_groups.preemption import GroupVictims
    from scheduler.runtime.known_pods import KnownPods

MAX_EVICTIONS: Final = 32
"""Evictions under way at one time, each with a request or two: binds must not stand behind them.
kube-scheduler has 16 for each preemption and no bound over all."""

MAX_NAMED: Final = 32
"""Victims that a line of the log names."""

log = structlog.get_logger(__name__)


_CLUSTER: Final = "cluster"
"""What kube-scheduler names as the node of victims of a group."""


class Preemption(MutableValue, eq=False):
    """One preemptor, and the victims that have to be evicted for it.

    Parameters
    ----------
    preemptor
        The UID under which the pod, or the entry of a group, stands in the queue.
    group
        The group that preempts; None for a pod.
    uid
        Of the pod, or of the group's object.
    waiting
        The pod, or the members of the group, that wait for the victims' resources.
    node_name
        The node of the preemption, for messages.
    victims
        Those to evict.
    gangs
        The gangs that are evicted whole.
    plugin
        In whose name.
    """

    preemptor: str
    group: GroupKey | None
    uid: str
    waiting: Sequence[PodInfo]
    node_name: str
    victims: Sequence[PodInfo]
    gangs: frozenset[GroupKey]
    plugin: str
    last: PodInfo | None = None
    """The last victim, once all others are evicted."""
    begun: set[GroupKey] = msgspec.field(default_factory=set)
    """The gangs of which a member was evicted: the others have to follow."""
    leaving: set[GroupKey] = msgspec.field(default_factory=set)
    """The gangs of which a member leaves, whoever has evicted it."""

    @property
    def kind(self) -> str:
        """The preemptor's kind, as kube-scheduler names it."""
        return "pod" if self.group is None else "podgroup"

    @property
    def name(self) -> str:
        """The preemptor's ``namespace/name``."""
        return self.waiting[0].key if self.group is None else str(self.group)

    def gang_of(self, victim: PodInfo) -> GroupKey | None:
        """Return the gang that a victim is evicted with, or None."""
        key = group_key(victim.pod) if self.gangs else None
        return key if key in self.gangs else None


class GangReports(Protocol):
    """Report evictions of whole gangs: :class:`scheduler.cycle.group_reports.GroupReports`."""

    def evicting(self, key: GroupKey, message: str) -> None:
        """Report that the members of a group are about to be evicted."""
        ...

    async def told(self, key: GroupKey) -> None:
        """Wait until the status of the group says so, or cannot be written soon."""
        ...

    def spared(self, key: GroupKey, message: str) -> None:
        """Take back in the status what :meth:`evicting` reported."""
        ...


class PreemptionReports(Value, frozen=True):
    """The means of reporting preemptions: of pods, and of gangs that are evicted whole."""

    pods: Reports
    gangs: GangReports | None = None


class PreemptionExecutor:
    """The service behind :attr:`plugins.framework.handle.Handle.preemption`.

    Parameters
    ----------
    loop
        The I/O loop.
    clock
        Seconds of a monotonic clock.
    evictor
        Evicts one pod.
    live_pod
        Returns the latest version of a pod that the watch reported, by namespace and name.
    reports
        Reports evictions, and the gangs that are evicted whole.

    Notes
    -----
    *Concurrency*: :meth:`is_running` from any thread and under the queue's lock, :meth:`start` and
    :meth:`ask_extenders` from the scheduling thread, the rest on the I/O loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float],
        evictor: Evictor,
        live_pod: Callable[[str, str], Pod | None],
        pods: KnownPods,
        reports: PreemptionReports,
    ) -> None:
        self._loop = loop
        self._evictor = evictor
        self._live_pod = live_pod
        self._queue = pods.queue
        self._groups = pods.groups
        self._is_placed = pods.cache.is_placed_pod
        self._status_writer = reports.pods.statuses
        self._recorder = reports.pods.events
        self._metrics = reports.pods.metrics
        self._gang_reports = reports.gangs
        self._clock = clock
        self._running: dict[str, Preemption] = {}
        self._inbox: LoopInbox[Preemption] = LoopInbox(loop, self._receive)
        self._slots = asyncio.Semaphore(MAX_EVICTIONS)
        self._tasks: set[asyncio.Task[None]] = set()

    # --- what plugins ask ---------------------------------------------------------------------

    def is_running(self, preemptor: str) -> bool:
        """Return whether victims are being evicted for the pod or the group with a UID."""
        preemption = self._running.get(preemptor)
        if preemption is None:
            return False
        last = preemption.last
        if last is None:
            return True
        live = self._live(last)
        return live is not None and live.metadata.deletion_timestamp is None

    def _live(self, info: PodInfo) -> Pod | None:
        """Return the latest version of a pod; None when it is gone."""
        live = self._live_pod(info.namespace, info.name)
        return live if live is not None and live.metadata.uid == info.uid else None

    def leaving(self) -> Collection[str]:
        """Return the UIDs of chosen victims that no watch has shown to be leaving yet."""
        under_way = [each.uid for one in list(self._running.values()) for each in one.victims]
        return (*under_way, *self._evictor.leaving())

    def start(self, info: PodInfo, node_name: str, victims: Victims, plugin: str) -> Status:
        """Begin to evict victims for a pod; does not wait.

        Victims that are on their way out already are left alone. Pods of a lower priority that
        are nominated for the node lose their nomination, and are tried again: the resources may
        not suffice for them any more.

        # Differs: kube-scheduler leaves them their nomination when all victims are on their way
        out already; they wait there in vain then, until something else wakes them.
        """
        preemption = Preemption(
            info.uid, None, info.uid, (info,), node_name, victims.pods, victims.gangs, plugin
        )
        self._begin(preemption, victims.gang_members)
        self._send_lower_away(info, node_name)
        return SUCCESS

    def start_group(self, key: GroupKey, uid: str, victims: GroupVictims) -> Status:
        """Begin to evict all victims of a group; does not wait.

        The members are nominated by the caller. As :meth:`start` otherwise.
        """
        waiting = tuple(info for info, _ in victims.members)
        preemption = Preemption(
            entry_uid(key),
            key,
            uid,
            waiting,
            _CLUSTER,
            victims.pods,
            victims.gangs,
            victims.plugin,
        )
        self._begin(preemption, victims.gang_members)
        for info, node_name in victims.members:
            self._send_lower_away(info, node_name, victims.priority)
        return SUCCESS

    def _begin(self, preemption: Preemption, gang_members: int) -> None:
        victims = preemption.victims
        preemption.victims = [each for each in victims if not self._evictor.is_leaving(each)]
        if preemption.victims:
            self._metrics.preemption(len(victims))
            self._metrics.pod_groups.gang_victims(gang_members)
            self._running[preemption.preemptor] = preemption
            for gang in preemption.gangs:
                self._groups.begin_eviction(gang)
            self._inbox.put(preemption)
        log.info(
            "preempting",
            **{preemption.kind: preemption.name},
            node=preemption.node_name,
            victims=[each.key for each in victims[:MAX_NAMED]],
            num_victims=len(victims),
            to_evict=len(preemption.victims),
        )

    asks_extenders: Final = False
    """Extenders are a profile's, see :class:`scheduler.runtime.plugin_handle.ProfileHandle`."""

    def ask_extenders(
        self, info: PodInfo, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        """Return all candidates."""
        return candidates

    def _send_lower_away(self, info: PodInfo, node_name: str, priority: int | None = None) -> None:
        priority = info.priority if priority is None else priority
        nominator = self._queue.nominator
        lower = [
            each
            for each in nominator.nominated_pods_for_node(node_name)
            if each.priority < priority
        ]
        for each in lower:
            nominator.delete(each.uid)
            self._status_writer.nominate(each.pod, "")
        if lower:
            self._queue.activate([each.uid for each in lower])

    # --- carrying out -------------------------------------------------------------------------

    async def drain(self, timeout_s: float) -> int:
        """Wait until all preemptions have ended; return how many have not when time is up."""
        await asyncio.sleep(0)  # what was put into the inbox before arrives meanwhile
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)
        for task in self._tasks:
            task.cancel()
        return len(self._tasks)

    def _receive(self, preemption: Preemption) -> None:
        task = self._loop.create_task(self._run(preemption))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, preemption: Preemption) -> None:
        started_s = self._clock()
        failure: BaseException | None = None
        last, is_told = Evicted.GONE, False
        try:
            await self._announce(preemption)
            others = preemption.victims[:-1]
            outcomes = await self._evict_all(preemption, others)
            # Spared while the first of their gang were on their way out.
            spared = [
                each
                for each, outcome in zip(others, outcomes, strict=True)
                if outcome is Evicted.SPARED and preemption.gang_of(each) in preemption.begun
            ]
            outcomes += await self._evict_all(preemption, spared)
            failure = next((each for each in outcomes if isinstance(each, BaseException)), None)
            if failure is None:
                preemption.last = preemption.victims[-1]
                last = await self._evict(preemption, preemption.last)
                # One that is gone already may have lost its node before: its binding has failed.
                is_here = self._live(preemption.last) is not None
                is_told = last is Evicted.DELETED and is_here and self._has_node(preemption.last)
        except Exception as error:  # noqa: BLE001 - whatever it is, the preemptor must not wait
            failure = error
        finally:
            self._take_back(preemption)
            if self._running.get(preemption.preemptor) is preemption:
                del self._running[preemption.preemptor]
            leaving = [each.uid for each in preemption.victims if self._evictor.is_leaving(each)]
            for gang in preemption.gangs:
                self._groups.end_eviction(gang, leaving)
        result = "success" if failure is None else "error"
        self._metrics.preempted(result, self._clock() - started_s)
        if failure is not None:
            self._give_up(preemption, failure)
        elif not is_told and not any(
            map(self._is_awaited, preemption.victims, [*outcomes[: len(others)], last])
        ):
            # No event of a pod with a node that we deleted is left to come: what there was may
            # have come while the pod was kept out.
            self._queue.activate([info.uid for info in preemption.waiting])

    def _has_node(self, victim: PodInfo) -> bool:
        """Return whether the end of a pod will be that of one with a node, which wakes others."""
        live = self._live(victim)
        return self._is_placed(victim.uid) or (live is not None and bool(live.spec.node_name))

    async def _announce(self, preemption: Preemption) -> None:
        """Report on the objects of gangs that they are evicted, before their members go."""
        reports = self._gang_reports
        if reports is None or not preemption.gangs:
            return
        message = self._message(preemption)
        for key in preemption.gangs:
            reports.evicting(key, message)
        await asyncio.gather(*map(reports.told, preemption.gangs))

    def _take_back(self, preemption: Preemption) -> None:
        if self._gang_reports is not None:
            for key in preemption.gangs - preemption.leaving:
                self._gang_reports.spared(key, "no member was evicted")

    @staticmethod
    def _message(preemption: Preemption) -> str:
        scheduler = preemption.waiting[0].pod.spec.scheduler_name
        return f"{scheduler}: preempting to accommodate a higher priority {preemption.kind}"

    async def _evict_all(
        self, preemption: Preemption, victims: Sequence[PodInfo]
    ) -> list[Evicted | BaseException]:
        evictions = [self._evict(preemption, each) for each in victims]
        return await asyncio.gather(*evictions, return_exceptions=True)

    async def _evict(self, preemption: Preemption, victim: PodInfo) -> Evicted:
        kind, message = preemption.kind, self._message(preemption)
        gang = preemption.gang_of(victim)
        async with self._slots:
            outcome = await self._evictor.evict(
                victim, preemption.plugin, message, lambda: self._is_wanted(preemption, gang)
            )
        if gang is not None and outcome is not Evicted.SPARED:
            preemption.leaving.add(gang)
        who = {kind: preemption.name}
        if outcome in (Evicted.GONE, Evicted.UNPLACED, Evicted.SPARED):
            log.debug("victim was not evicted", **who, victim=victim.key, why=outcome.value)
            return outcome
        if gang is not None:
            preemption.begun.add(gang)
        note = f"Preempted by {kind} {preemption.uid} on node {preemption.node_name}"
        if outcome is Evicted.SENT_BACK:
            note += " (before it was bound)"
        self._recorder.event(
            victim.pod,
            "Normal",
            "Preempted",
            "Preempting",
            note,
            related=preemption.waiting[0].pod,
        )
        log.info(
            "pod preempted",
            **who,
            node=preemption.node_name,
            victim=victim.key,
            how=outcome.value,
        )
        return outcome

    def _is_wanted(self, preemption: Preemption, gang: GroupKey | None) -> bool:
        """Return whether a victim is still to be evicted.

        Not after the end of its preemption, which may be cancelled by a shutdown. A gang of which
        members are gone is not left behind below its minimum.
        """
        if self._running.get(preemption.preemptor) is not preemption:
            return False
        return gang in preemption.begun or any(map(self._still_waits, preemption.waiting))

    def _still_waits(self, info: PodInfo) -> bool:
        """Return whether a preemptor still needs its victims' resources.

        # Differs: kube-scheduler evicts all victims once it has begun, whatever becomes of the pod.
        """
        live = self._live(info)
        if live is None or live.spec.node_name:
            return False
        return live.metadata.deletion_timestamp is None

    def _is_awaited(self, victim: PodInfo, end: Evicted | BaseException) -> bool:
        """Return whether the API server says that a pod is gone, and the watch still shows it.

        Until it does no longer, the preemptor would choose the same victim again, at once and
        without end if the watch has lost the event.
        """
        return end is Evicted.GONE and not self._evictor.is_leaving(victim)

    def _give_up(self, preemption: Preemption, failure: BaseException) -> None:
        """Try the preemptor again: no event may come that would bring it back.

        # Differs: kube-scheduler leaves the nomination; here it ends, because no victim leaves.
        """
        log.error(
            "preemption failed",
            **{preemption.kind: preemption.name},
            node=preemption.node_name,
            error=str(failure),
        )
        for info in preemption.waiting:
            self._queue.nominator.delete(info.uid)
            live = self._live(info)
            if live is not None and not live.spec.node_name:
                self._status_writer.nominate(live, "")
        # After its pause: what has been refused once may be refused each time.
        self._queue.activate([info.uid for info in preemption.waiting], after_backoff=True)
