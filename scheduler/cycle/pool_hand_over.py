"""Hand pods that a pool has no room for to the next pool, and take those of a pool without leader.

    refused for want of nodes, for a minute -> out of the queue -> PATCH pods/status -> given
                                                     ^                   |
                                                     +--- not accepted --+

Each pod goes through the pools in their declared order, once in a round. Where all have refused it,
it stays with the last one, and the next round begins after a pause that doubles. The patch names
the version of the pod, so that it is carried out only if nothing was written since it was looked
at; it takes the nomination away, which is for a node of this pool.

The rule is in :mod:`scheduler.pools.ownership`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from scheduler.client.errors import ApiError
from scheduler.pools.options import MAX_PAUSE_S
from scheduler.pools.ownership import POOL, ROUND, Round, round_of
from scheduler.queueing import QueueState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cache.objects import Pod
    from scheduler.pools.ownership import Ownership
    from scheduler.pools.refusals import Refusals

TICK_S: Final = 1.0

TAKE_OVER_AFTER_S: Final = 60.0
"""How long a pool has no leader before others take its pods: a replica that takes over needs less,
and so does a rollout."""

MAX_IN_A_ROUND: Final = 500
"""Pods that are handed on in one go; each is a request, one after the other."""

AT_ONCE: Final = 200
"""Pods that are looked at before anybody else may run: about a millisecond."""

_PENDING: Final = (QueueState.UNSCHEDULABLE, QueueState.BACKOFF, QueueState.ACTIVE)

log = structlog.get_logger(__name__)


class HandOverApi(Protocol):
    """The calls to the API server; both raise ApiError."""

    async def annotate_pending_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        annotations: Mapping[str, str],
        resource_version: str,
    ) -> str:
        """Write annotations of a pod, and take its nomination away, if it has this version.

        Returns the version that it has then.
        """
        ...

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod as it is stored now, or None if there is none of that name."""
        ...


class OwnPods(Protocol):
    """What becomes of the pods of this process."""

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the newest version of a pod that the watch has shown."""
        ...

    def state_of(self, uid: str) -> QueueState:
        """Return where the queue has a pod."""
        ...

    def take_out(self, uid: str) -> bool:
        """Remove a pod from the queue unless it is in flight; return whether it was removed."""
        ...

    def requeue(self, pod: Pod) -> None:
        """Queue a pod."""
        ...

    async def quiet(self, uid: str) -> None:
        """Wait until nothing is written about a pod."""
        ...


class LivePools(Protocol):
    """Which pools have a leader."""

    def live(self) -> Collection[str]:
        """Return those that have."""
        ...

    def dead_for_s(self, pool: str) -> float:
        """Return for how long a pool has had none."""
        ...


class HandOvers:
    """Hands pods on, and takes them over.

    Parameters
    ----------
    after_s
        How long a pod is refused before it is handed on.
    on_hop
        Receives each pod that went to another pool, with the names of both pools, why, and a
        sentence for people.
    clock
        Monotonic seconds.

    Notes
    -----
    *Concurrency*: loop-confined.

    *Cost*: for each second a look at the refused pods, and a request for each that goes on.
    """

    def __init__(
        self,
        api: HandOverApi,
        ownership: Ownership,
        refusals: Refusals,
        pods: OwnPods,
        pools: LivePools,
        after_s: float,
        on_hop: Callable[[Pod, str, str, str, str], None],
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._ownership = ownership
        self._refusals = refusals
        self._pods = pods
        self._pools = pools
        self._after_s = after_s
        self._on_hop = on_hop
        self._clock = clock

    async def round(self) -> float:
        """Do all that is due; return the pause until the next time, in seconds."""
        try:
            await self._hand_on()
            await self._take_over()
        except Exception:
            # Nothing is lost by it: what is due now is due in a second.
            log.exception("pods cannot be handed on")
        return TICK_S

    # --- from here ----------------------------------------------------------------------------

    async def _hand_on(self) -> None:
        now_s, given = self._clock(), 0
        for number, (uid, refused) in enumerate(self._refusals.all(), 1):
            if given >= MAX_IN_A_ROUND:
                return
            if not number % AT_ONCE:
                await asyncio.sleep(0)
            waited_s = now_s - refused.since_s
            if waited_s < self._after_s:
                continue
            pod = self._pods.live_pod(refused.namespace, refused.name)
            if pod is None or pod.metadata.uid != uid or not self._is_pending(pod):
                self._refusals.forget(uid)
                continue
            target = self._target(pod, waited_s)
            if target is None or self._pods.state_of(uid) not in _PENDING:
                continue
            given += await self._give(pod, *target)

    def _is_pending(self, pod: Pod) -> bool:
        leaves = pod.spec.node_name or pod.metadata.deletion_timestamp is not None
        return not leaves and self._ownership.owns(pod)

    def _target(self, pod: Pod, waited_s: float) -> tuple[str, Round] | None:
        """Return where a pod goes now, and its round; None while it stays."""
        own, trip = self._ownership.own, round_of(pod)
        others = self._ownership.next_pools(pod, own, self._pools.live())
        left = [name for name in others if name not in trip.refused]
        if left:
            return left[0], Round(trip.number, trip.refused | {own})
        pause_s = min(self._after_s * 2.0 ** min(trip.number, 32), MAX_PAUSE_S)
        if others and waited_s >= pause_s:
            return others[0], Round(trip.number + 1, frozenset((own,)))
        return None

    async def _give(self, pod: Pod, target: str, trip: Round) -> bool:
        """Write that a pod is another pool's; return whether it is."""
        metadata, ownership = pod.metadata, self._ownership
        if not self._pods.take_out(metadata.uid):
            return False
        ownership.begin_giving(metadata.uid)
        version = ""
        try:
            await self._pods.quiet(metadata.uid)
            # What was written about the pod meanwhile, by us too, is part of what is given. But
            # another pool may have taken it, which took this one for dead.
            pod = self._pods.live_pod(metadata.namespace, metadata.name) or pod
            if ownership.owner_of(pod) == ownership.own:
                version = await self._write(pod, target, trip)
        finally:
            shown = self._pods.live_pod(metadata.namespace, metadata.name)
            if shown is not None and shown.metadata.uid != metadata.uid:
                shown = None
            if version:
                ownership.gave(pod, version, shown)
                self._refusals.forget(metadata.uid)
            else:
                ownership.keep(metadata.uid)
                if shown is not None and self._is_pending(shown):
                    self._pods.requeue(shown)
        if version:
            why = f"no node of pool {ownership.own} can run it"
            self._on_hop(pod, ownership.own, target, "full", f"Handed over to pool {target}: {why}")
        return bool(version)

    # --- from others --------------------------------------------------------------------------

    async def _take_over(self) -> None:
        own, live = self._ownership.own, {*self._pools.live(), self._ownership.own}
        for pool in self._ownership.peers:
            if self._pools.dead_for_s(pool.name) < TAKE_OVER_AFTER_S:
                continue
            taken = 0
            for number, pod in enumerate(self._ownership.pending_pods_of(pool.name), 1):
                if not number % AT_ONCE:
                    await asyncio.sleep(0)
                if pod.metadata.deletion_timestamp is not None:
                    continue
                if self._ownership.next_pools(pod, pool.name, live)[:1] != [own]:
                    continue
                # A leader may have come meanwhile.
                is_dead = self._pools.dead_for_s(pool.name) >= TAKE_OVER_AFTER_S
                if taken >= MAX_IN_A_ROUND or not is_dead:
                    break
                taken += 1
                if await self._write(pod, own, round_of(pod)):
                    note = f"Taken over from pool {pool.name}, which has no leader"
                    self._on_hop(pod, pool.name, own, "no_leader", note)

    async def _write(self, pod: Pod, target: str, trip: Round) -> str:
        """Write a pod's owner; return the version from which on it holds, empty if it does not.

        A request whose outcome is unknown is settled by a look. If it arrives later still, it is
        carried out only if nobody has written about the pod, a binding included.
        """
        metadata = pod.metadata
        annotations = {POOL: target, ROUND: str(trip)}
        try:
            return await self._api.annotate_pending_pod(
                metadata.namespace,
                metadata.name,
                metadata.uid,
                annotations,
                metadata.resource_version,
            )
        except ApiError as error:
            log.info("pod keeps its pool", pod=f"{metadata.namespace}/{metadata.name}", error=error)
        try:
            stored = await self._api.get_pod(metadata.namespace, metadata.name)
        except ApiError:
            return ""
        if stored is None or stored.metadata.uid != metadata.uid:
            return ""
        is_written = stored.metadata.annotations.get(POOL) == target
        return stored.metadata.resource_version if is_written else ""
