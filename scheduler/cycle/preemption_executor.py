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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plugins.framework.status import SUCCESS, Status
from scheduler.api_writes.eviction import Evicted
from scheduler.process.loop_inbox import LoopInbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.victims import Victims
    from scheduler.api_writes.eviction import Evictor
    from scheduler.cycle.reports import Reports
    from scheduler.queueing import SchedulingQueue

MAX_EVICTIONS: Final = 32
"""Evictions under way at one time, each with a request or two: binds must not stand behind them.
kube-scheduler has 16 for each preemption and no bound over all."""

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Preemption:
    """One preemptor, and the victims that have to be evicted for it."""

    info: PodInfo
    node_name: str
    victims: Sequence[PodInfo]
    plugin: str
    last: PodInfo | None = None
    """The last victim, once all others are evicted."""


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
        queue: SchedulingQueue,
        reports: Reports,
    ) -> None:
        self._loop = loop
        self._evictor = evictor
        self._live_pod = live_pod
        self._queue = queue
        self._status_writer = reports.statuses
        self._recorder = reports.events
        self._metrics = reports.metrics
        self._clock = clock
        self._running: dict[str, Preemption] = {}
        self._inbox: LoopInbox[Preemption] = LoopInbox(loop, self._receive)
        self._slots = asyncio.Semaphore(MAX_EVICTIONS)
        self._tasks: set[asyncio.Task[None]] = set()

    # --- what plugins ask ---------------------------------------------------------------------

    def is_running(self, uid: str) -> bool:
        """Return whether victims are being evicted for the pod with this UID."""
        preemption = self._running.get(uid)
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

    def start(self, info: PodInfo, node_name: str, victims: Victims, plugin: str) -> Status:
        """Begin to evict victims for a pod; does not wait.

        Victims that are on their way out already are left alone. Pods of a lower priority that
        are nominated for the node lose their nomination, and are tried again: the resources may
        not suffice for them any more.

        # Differs: kube-scheduler leaves them their nomination when all victims are on their way
        out already; they wait there in vain then, until something else wakes them.
        """
        staying = [each for each in victims.pods if not self._evictor.is_leaving(each)]
        if staying:
            self._metrics.preemption(len(victims.pods))
            preemption = Preemption(info, node_name, staying, plugin)
            self._running[info.uid] = preemption
            self._inbox.put(preemption)
        self._send_lower_away(info, node_name)
        log.info(
            "preempting",
            pod=info.key,
            node=node_name,
            victims=[each.key for each in victims.pods],
            to_evict=len(staying),
        )
        return SUCCESS

    asks_extenders: Final = False
    """Extenders are a profile's, see :class:`scheduler.runtime.plugin_handle.ProfileHandle`."""

    def ask_extenders(
        self, info: PodInfo, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        """Return all candidates."""
        return candidates

    def _send_lower_away(self, info: PodInfo, node_name: str) -> None:
        nominator = self._queue.nominator
        lower = [
            each
            for each in nominator.nominated_pods_for_node(node_name)
            if each.priority < info.priority
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
        info, started_s = preemption.info, self._clock()
        failure: BaseException | None = None
        last = Evicted.GONE
        try:
            others = [self._evict(preemption, each) for each in preemption.victims[:-1]]
            outcomes = await asyncio.gather(*others, return_exceptions=True)
            failure = next((each for each in outcomes if isinstance(each, BaseException)), None)
            if failure is None:
                preemption.last = preemption.victims[-1]
                last = await self._evict(preemption, preemption.last)
        except Exception as error:  # noqa: BLE001 - whatever it is, the preemptor must not wait
            failure = error
        finally:
            if self._running.get(info.uid) is preemption:
                del self._running[info.uid]
        result = "success" if failure is None else "error"
        self._metrics.preempted(result, self._clock() - started_s)
        if failure is not None:
            self._give_up(preemption, failure)
        elif last is not Evicted.DELETED:
            # No event of a pod that we deleted is left to come: what there was may have come while
            # the pod was kept out.
            self._queue.activate([info.uid])

    async def _evict(self, preemption: Preemption, victim: PodInfo) -> Evicted:
        info, node_name = preemption.info, preemption.node_name
        scheduler = info.pod.spec.scheduler_name
        message = f"{scheduler}: preempting to accommodate a higher priority pod"
        async with self._slots:
            outcome = await self._evictor.evict(
                victim, preemption.plugin, message, lambda: self._still_waits(info)
            )
        if outcome in (Evicted.GONE, Evicted.SPARED):
            log.debug("victim was not evicted", pod=info.key, victim=victim.key, why=outcome.value)
            return outcome
        note = f"Preempted by pod {info.uid} on node {node_name}"
        if outcome is Evicted.SENT_BACK:
            note += " (before it was bound)"
        self._recorder.event(
            victim.pod, "Normal", "Preempted", "Preempting", note, related=info.pod
        )
        log.info(
            "pod preempted", pod=info.key, node=node_name, victim=victim.key, how=outcome.value
        )
        return outcome

    def _still_waits(self, info: PodInfo) -> bool:
        """Return whether a preemptor still needs its victims' resources.

        # Differs: kube-scheduler evicts all victims once it has begun, whatever becomes of the pod.
        """
        live = self._live(info)
        if live is None or live.spec.node_name:
            return False
        return live.metadata.deletion_timestamp is None

    def _give_up(self, preemption: Preemption, failure: BaseException) -> None:
        """Try the preemptor again: no event may come that would bring it back.

        # Differs: kube-scheduler leaves the nomination; here it ends, because no victim leaves.
        """
        info = preemption.info
        log.error("preemption failed", pod=info.key, node=preemption.node_name, error=str(failure))
        self._queue.nominator.delete(info.uid)
        live = self._live(info)
        if live is not None and not live.spec.node_name:
            self._status_writer.nominate(live, "")
        self._queue.activate([info.uid])
