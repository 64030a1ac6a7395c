"""Evict one pod: from Permit inside the scheduler, or through the API.

    held by Permit -> sent back, nothing is deleted
    otherwise      -> condition DisruptionTarget -> DELETE with the pod's UID
                      spared, or the DELETE refused -> the condition is taken back

*Source*: pkg/scheduler/framework/preemption/executor.go, PreemptPod (1.36).
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from cache.pod_info import is_terminal
from cache.resources import MalformedObjectError
from scheduler.api_writes.binder import PodReaderApi
from scheduler.api_writes.pod_status_writer import PodStatusApi
from scheduler.api_writes.settle import AGAIN, NO_MAX_PAUSE, Failure, settle, why_given_up
from scheduler.client.errors import Action, ApiError
from scheduler.client.timestamps import api_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from scheduler.process.ports import Ports

DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"

MAX_TRIES: Final = 6
"""Attempts at one request; some ten seconds in all. After that the preemptor is tried again, which
may find another node."""

_AGAIN: Final = AGAIN | {Action.CONFLICT}
"""Conflict: of a pod that is still there somebody has changed the status meanwhile."""

log = structlog.get_logger(__name__)


class EvictionApi(PodReaderApi, PodStatusApi, Protocol):
    """The calls that eviction needs; each raises ApiError."""

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        """Ask for a pod's deletion, if it still has this UID.

        ``may_send`` is asked right before the request is written, and nothing is sent if it says
        no.
        """
        ...


class Evicted(Enum):
    """What became of a victim."""

    DELETED = "deleted"
    """The API server took our DELETE."""
    SENT_BACK = "sent back"
    """It was not bound yet, and goes back to the queue."""
    GONE = "gone"
    """It was gone, or on its way out, before we came."""
    UNPLACED = "unplaced"
    """It has no node: its binding has failed since it was chosen, and it is in nobody's way."""
    SPARED = "spared"
    """Nobody needs its room any more."""


class Evictor:
    """Evicts pods, each at most once.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the delays between attempts.
    live_pod
        Gives the latest version of a pod that the watch brought, by namespace and name.
    turn_back
        Lets go of a pod, by its UID and in a plugin's name, that is not bound yet; returns False
        for any other.
    is_placed
        Tells whether a pod, by its UID, counts on a node, assumed or bound.

    Notes
    -----
    *Concurrency*: :meth:`is_leaving` and :meth:`leaving` from any thread, the rest on the I/O loop.
    """

    def __init__(
        self,
        ports: Ports[EvictionApi],
        live_pod: Callable[[str, str], Pod | None],
        turn_back: Callable[[str, str], bool],
        is_placed: Callable[[str], bool],
    ) -> None:
        self._api = ports.api
        self._rng = ports.rng
        self._wall_clock = ports.clock.wall
        self._sleep = ports.executor.sleep
        self._live_pod = live_pod
        self._turn_back = turn_back
        self._is_placed = is_placed
        self._under_way: dict[str, asyncio.Task[Evicted]] = {}
        self._deleted: dict[str, tuple[str, str]] = {}
        """Namespace and name, by UID, of pods whose DELETE was accepted and that the watch has not
        shown to be leaving yet."""

    def is_leaving(self, info: PodInfo) -> bool:
        """Tell whether a pod is gone, or on its way out, as far as is known."""
        live = self._live_pod(info.namespace, info.name)
        if live is None or live.metadata.uid != info.uid:
            return True
        return live.metadata.deletion_timestamp is not None or info.uid in self._deleted

    def leaving(self) -> tuple[str, ...]:
        """Return the UIDs of pods whose DELETE was accepted; some of them may be gone by now."""
        return tuple(self._deleted)

    async def evict(
        self, victim: PodInfo, plugin: str, message: str, is_wanted: Callable[[], bool]
    ) -> Evicted:
        """Evict a pod, or wait for the end of an eviction of it that is under way.

        Parameters
        ----------
        plugin
            In whose name.
        message
            Of the condition.
        is_wanted
            Whether anybody still needs the room; asked before each request, and once more when the
            deletion is about to be written, which may have waited for the limiter or a connection.

        Returns
        -------
        What became of it; ``DELETED`` and ``SENT_BACK`` only to the one who did it.

        Raises
        ------
        ApiError
            The API server refused, or gave no answer in time.
        """
        while (task := self._under_way.get(victim.uid)) is not None:
            # Whom the other one has spared may be in the way here all the same.
            if await asyncio.shield(task) is not Evicted.SPARED:
                return Evicted.GONE
        task = asyncio.ensure_future(self._evict_alone(victim, plugin, message, is_wanted))
        self._under_way[victim.uid] = task
        # Nobody waits for it any more if the preemption is cancelled, as it is at a shutdown.
        task.add_done_callback(_ignore_failure)
        return await asyncio.shield(task)

    async def _evict_alone(
        self, victim: PodInfo, plugin: str, message: str, is_wanted: Callable[[], bool]
    ) -> Evicted:
        try:
            return await self._evict(victim, plugin, message, is_wanted)
        finally:
            # Not in a callback: whoever comes before it would wait for ever, in one turn of the
            # loop, for what has ended.
            del self._under_way[victim.uid]

    async def _evict(
        self, victim: PodInfo, plugin: str, message: str, is_wanted: Callable[[], bool]
    ) -> Evicted:
        if not is_wanted():
            return Evicted.SPARED
        if self._turn_back(victim.uid, plugin):
            return Evicted.SENT_BACK
        self._forget_those_that_left()
        if self.is_leaving(victim):
            return Evicted.GONE
        if not self._is_placed(victim.uid):
            return Evicted.UNPLACED
        try:
            end = await self._mark_and_delete(victim, message, is_wanted)
        except ApiError as error:
            if not error.ambiguous:
                await self._reprieve(victim, message)
            # Else it may be on its way out, and the condition is what it goes for.
            raise
        if end is Evicted.SPARED:
            await self._reprieve(victim, message)
        return end

    async def _mark_and_delete(
        self, victim: PodInfo, message: str, is_wanted: Callable[[], bool]
    ) -> Evicted:
        live = self._live_pod(victim.namespace, victim.name) or victim.pod
        patch = self._condition_patch(live, message)
        if patch:
            end = await self._persist(victim, lambda: self._patch(victim, patch), is_wanted)
            if end is not Evicted.DELETED:
                return end
        end = await self._persist(victim, lambda: self._delete(victim, is_wanted), is_wanted)
        if end is Evicted.DELETED:
            self._deleted[victim.uid] = (victim.namespace, victim.name)
        return end

    async def _reprieve(self, victim: PodInfo, message: str) -> None:
        """Take our condition back from a pod that stays after all. Tried once, and never raises.

        # Differs: kube-scheduler leaves it where it is, for the disruption controller to take back
        two minutes later; until then a Job takes whatever the pod fails of for a disruption.

        *Source*: pkg/controller/disruption/disruption.go, syncStalePodDisruption (1.36).
        """
        namespace, name = victim.namespace, victim.name
        try:
            pod = await self._api.get_pod(namespace, name)
            if pod is None or pod.metadata.uid != victim.uid or not _is_marked(pod, message):
                return
            condition = {
                "type": DISRUPTION_TARGET,
                "status": "False",
                "reason": "",
                "message": "",
                "lastTransitionTime": api_time(self._wall_clock()),
            }
            await self._api.patch_pod_status(
                namespace,
                name,
                victim.uid,
                {"conditions": [condition]},
                # Nobody's word that came meanwhile is overwritten, and no pod that leaves by now.
                resource_version=pod.metadata.resource_version,
            )
        except (ApiError, MalformedObjectError) as error:
            log.warning("a spared victim keeps its condition", pod=victim.key, error=str(error))

    def _forget_those_that_left(self) -> None:
        for uid, (namespace, name) in list(self._deleted.items()):
            live = self._live_pod(namespace, name)
            if live is None or live.metadata.uid != uid or live.metadata.deletion_timestamp:
                del self._deleted[uid]

    def _condition_patch(self, pod: Pod, message: str) -> dict[str, Any]:
        """Return what is to be changed in the pod's status; empty if it says so already.

        *Source*: pkg/api/v1/pod/util.go, UpdatePodCondition (1.36).
        """
        since = api_time(self._wall_clock())
        for condition in pod.status.conditions:
            if condition.type == DISRUPTION_TARGET and condition.status == "True":
                if (condition.reason, condition.message) == (PREEMPTION_BY_SCHEDULER, message):
                    return {}
                since = condition.last_transition_time or since
        condition_now: dict[str, Any] = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": PREEMPTION_BY_SCHEDULER,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": since,
        }
        if pod.metadata.generation:
            condition_now["observedGeneration"] = pod.metadata.generation
        return {"conditions": [condition_now]}

    async def _patch(self, victim: PodInfo, patch: Mapping[str, Any]) -> Evicted:
        await self._api.patch_pod_status(victim.namespace, victim.name, victim.uid, patch)
        return Evicted.DELETED

    async def _delete(self, victim: PodInfo, is_wanted: Callable[[], bool]) -> Evicted:
        withheld: Evicted | None = None

        def may_send() -> bool:
            nonlocal withheld
            if self.is_leaving(victim):
                withheld = Evicted.GONE
            elif not is_wanted():
                withheld = Evicted.SPARED
            return withheld is None

        try:
            await self._api.delete_pod(victim.namespace, victim.name, victim.uid, may_send=may_send)
        except ApiError:
            if withheld is not None:
                return withheld
            raise
        return Evicted.DELETED

    async def _persist(
        self,
        victim: PodInfo,
        call: Callable[[], Awaitable[Evicted]],
        is_wanted: Callable[[], bool],
    ) -> Evicted:
        """Make a request until it is carried out (``DELETED``), or return why it need not be.

        An answer that leaves open what happened is settled by a GET: a pod that is on its way out
        is not asked to go once more. So is one that says the pod is gone, for a webhook may deny
        with any code: if the pod is there, that is a refusal.
        """

        async def attempt() -> Evicted:
            return await call() if is_wanted() else Evicted.SPARED

        async def gone(_: Failure) -> Evicted | None:
            return None if await self._is_there(victim) else Evicted.GONE

        end = await settle(
            attempt,
            lambda failure: why_given_up(failure, MAX_TRIES, _AGAIN, NO_MAX_PAUSE),
            self._sleep,
            self._rng,
            gone,
        )
        if isinstance(end, Failure):
            raise end.error
        return end

    async def _is_there(self, victim: PodInfo) -> bool:
        """Tell whether the pod exists and is not about to go; yes when that cannot be known."""
        try:
            pod = await self._api.get_pod(victim.namespace, victim.name)
        except (ApiError, MalformedObjectError) as error:
            log.warning("cannot settle an eviction yet", pod=victim.key, error=str(error))
            return True
        if pod is None or pod.metadata.uid != victim.uid:
            return False
        return pod.metadata.deletion_timestamp is None


def _ignore_failure(task: asyncio.Task[Evicted]) -> None:
    """Mark the exception of a task as retrieved; whoever waits for it gets it all the same."""
    if not task.cancelled():
        task.exception()


def _is_marked(pod: Pod, message: str) -> bool:
    """Tell whether a pod stays and yet carries our condition, with this message."""
    if pod.metadata.deletion_timestamp is not None or is_terminal(pod):
        return False
    return any(
        (each.type, each.status, each.reason, each.message)
        == (DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, message)
        for each in pod.status.conditions
    )
