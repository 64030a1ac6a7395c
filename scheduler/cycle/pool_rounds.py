"""Look after the pods of several pools once a second on the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from scheduler.cycle.pool_hand_over import AT_ONCE, TICK_S, HandOvers
from scheduler.leader_election.peers import LOOK_S, Peers
from scheduler.pools.topologies import GATE
from scheduler.process.periodic_task import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.objects import Pod
    from scheduler.cycle.pool_hand_over import HandOverApi
    from scheduler.cycle.reports import Reports
    from scheduler.leader_election.peers import ReadsLease
    from scheduler.pools.own_pool import OwnPool
    from scheduler.process.ports import Ports
    from scheduler.queueing import QueueState, SchedulingQueue

REFUSED: Final = "SchedulerError"
"""The reason of the condition of a pod that the gate keeps out. Not ``Unschedulable``: no node that
an autoscaler may add would help."""

log = structlog.get_logger(__name__)


class QueuedPods:
    """The pods of this process, for :class:`HandOvers`."""

    def __init__(
        self,
        queue: SchedulingQueue,
        live_pod: Callable[[str, str], Pod | None],
        requeue: Callable[[Pod], None],
        reports: Reports,
    ) -> None:
        self.live_pod = live_pod
        self.requeue = requeue
        self.state_of: Callable[[str], QueueState] = queue.state_of
        self.take_out = queue.take_out
        self.quiet = reports.statuses.quiet


class PoolRounds:
    """Reports the pods that the gate keeps out, and hands pods on.

    Parameters
    ----------
    leases
        The Leases of the pools that share pods with this one.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        ports: Ports[HandOverApi],
        pool: OwnPool,
        pods: QueuedPods,
        leases: Mapping[str, ReadsLease],
        after_s: float,
        reports: Reports,
        queue: SchedulingQueue,
    ) -> None:
        self._reports = reports
        self._queue = queue
        self._gate = pool.gate
        self._live_pod = pods.live_pod
        self._told: set[str] = set()
        self._task = PeriodicTask(self._round, ports.executor.sleep)
        self._tasks = [self._task]
        if pool.ownership is not None and leases:
            self.peers = Peers(leases, ports.clock.monotonic)
            self._tasks.append(PeriodicTask(self._look, ports.executor.sleep))
            hand_overs = HandOvers(
                ports.api,
                pool.ownership,
                pool.refusals,
                pods,
                self.peers,
                after_s,
                self._hopped,
                ports.clock.monotonic,
            )
            self._tasks.append(PeriodicTask(hand_overs.round, ports.executor.sleep))

    def start(self) -> None:
        """Begin; for a process that leads, and knows of another pool."""
        if self._gate is not None:
            for task in self._tasks:
                task.start(TICK_S)

    async def stop(self) -> None:
        """End."""
        for task in self._tasks:
            await task.stop()

    async def _look(self) -> float:
        await self.peers.look()
        return LOOK_S

    async def _round(self) -> float:
        """Say of each pod that the gate keeps out why it does, once."""
        gated = {each.uid: each for each in self._queue.gated_by(GATE)}
        self._told &= gated.keys()
        news = [info for uid, info in gated.items() if uid not in self._told]
        for info in news[:AT_ONCE]:
            self._told.add(info.uid)
            pod = self._live_pod(info.namespace, info.name)
            if self._gate is None or pod is None:
                continue
            message = self._gate.check(pod).message
            self._reports.events.event(pod, "Warning", "FailedScheduling", "Scheduling", message)
            self._reports.statuses.unscheduled(pod, REFUSED, message, None)
        return TICK_S

    def _hopped(self, pod: Pod, origin: str, target: str, reason: str, note: str) -> None:
        self._reports.metrics.pool_hop(origin, target, reason)
        self._reports.events.event(pod, "Normal", "HandedOver", "HandOver", note)
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        log.info("pod goes to another pool", pod=key, origin=origin, target=target, why=reason)
