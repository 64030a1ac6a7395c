"""Find changes that the watches did not report, every ten to fifteen minutes, and repair them.

A watch that loses an event does not report the loss, and no comparison with our own stores can find
it. So the leader lists metadata only, in pages and with pauses, and compares it with the stores.
Only a list that the watch has passed is proof: the watch will never report what a store lacks
then. Each such object is read, and goes through the store as if the watch had reported it.

The queue is compared with the store of pods as well: a pending pod of ours that is in no part of
the queue is queued.

# Differs: kube-scheduler does not search for lost events
# (kubernetes/kubernetes#102790, kubernetes/kubernetes#94437).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import structlog

from cache.resource_versions import INCOMPARABLE, parse_resource_version
from scheduler.client.errors import ApiError
from scheduler.informers import DeltaKind, ListedObject
from scheduler.kinds import PODS
from scheduler.process.periodic_task import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import TypeVar

    from cache.objects import Pod
    from scheduler.event_handlers.pods_and_nodes import EventHandlers
    from scheduler.informers import ApiObject, Informer
    from scheduler.metrics import Metrics
    from scheduler.process.ports import Ports

    T = TypeVar("T", bound=ApiObject)

DEFAULT_PERIOD_S: Final = 720.0
_JITTER: Final = (5 / 6, 5 / 4)
"""Of the period: with the default ten to fifteen minutes, and no two schedulers at one time."""

_AGAIN_S: Final = 30.0
"""After a comparison that did not come to its end for the number of what was wrong."""

_PAUSE_S: Final = 0.05
"""Between two pages, and two slices of a store: 150 000 pods take about a minute."""

_SLICE: Final = 1_000
"""Objects of a store that are looked at without a pause: half a millisecond."""

_BUCKETS: Final = 256

_CATCH_UP_S: Final = 90.0
"""How long a watch may take to pass a list: it has a bookmark about every minute. One that does
not is stale, which others tell of."""

_LOOK_S: Final = 1.0
"""Between two looks at how far a watch has got."""

_SETTLE_S: Final = 5.0
"""Between the two looks that must both miss a pod in the queue."""

_MAX_REREADS: Final = 500
"""Objects of one resource that are asked for in a round."""

_KINDS: Final = {
    DeltaKind.ADDED: "add",
    DeltaKind.UPDATED: "update",
    DeltaKind.DELETED: "delete",
}

log = structlog.get_logger(__name__)


class LostEvents:
    """Looks for what was lost, again and again.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the jitter.
    informers
        Returns those of everything that is compared; the pods of that of pods are held against the
        queue.
    leads
        Whether this process schedules: a standby leaves the API server alone.
    period_s
        On average; 0 for never.

    Attributes
    ----------
    rounds
        Comparisons that have been completed.

    Notes
    -----
    *Concurrency*: loop-confined.

    *Cost*: for 150 000 pods 600 requests, one at a time, 206 MB and a second of CPU in a minute;
    ``python -m tests.bench lost`` measures it.
    """

    def __init__(
        self,
        ports: Ports[object],
        informers: Callable[[], Sequence[Informer[Any]]],
        handlers: EventHandlers,
        metrics: Metrics,
        leads: Callable[[], bool],
        period_s: float = DEFAULT_PERIOD_S,
    ) -> None:
        self._informers = informers
        self._handlers = handlers
        self._metrics = metrics
        self._leads = leads
        self._period_s = period_s
        self._sleep = ports.executor.sleep
        self._rng = ports.rng
        self._task = PeriodicTask(self._compare_if_leading, self._sleep)
        self.rounds = 0

    def start(self) -> None:
        """Compare about every period from now on; never, if the period is 0."""
        self._task.start(self._next_pause_s())

    async def stop(self) -> None:
        """Compare no more."""
        await self._task.stop()

    async def round(self) -> bool:
        """Compare everything once; return whether all that was wrong has been put right.

        A resource that cannot be listed costs itself.
        """
        complete = True
        informers = self._informers()
        for informer in informers:
            try:
                complete &= await self._compare(informer)
            except ApiError as error:
                log.warning(
                    "cannot look for lost events", resource=informer.kind.name, error=str(error)
                )
        for informer in informers:
            if informer.kind.name == PODS.name:
                await self._find_lost_pods(informer)
        self.rounds += 1
        return complete

    async def _compare_if_leading(self) -> float:
        pause_s = self._next_pause_s()
        if not self._leads():
            return pause_s
        began = perf_counter()
        try:
            if not await self.round():
                pause_s = min(_AGAIN_S, pause_s)
        except Exception:
            log.exception("cannot look for lost events")
        else:
            log.debug("looked for lost events", seconds=round(perf_counter() - began, 3))
        return pause_s

    def _next_pause_s(self) -> float:
        return self._period_s * self._rng.uniform(*_JITTER)

    # --- one resource -------------------------------------------------------------------------

    async def _compare(self, informer: Informer[Any]) -> bool:
        version, suspects = await self._suspects(informer)
        if not suspects:
            return True
        if not await self._has_passed(informer, version):
            log.warning(
                "watch has not reached the list's resourceVersion", resource=informer.kind.name
            )
            return True
        wrong = [each for each in suspects if _is_wrong(informer, each)]
        for each in wrong[:_MAX_REREADS]:
            for kind in await informer.reread(each.namespace, each.name, each.uid):
                self._repaired(informer.kind.name, kind, each)
            await self._sleep(0)
        return len(wrong) <= _MAX_REREADS

    async def _suspects(self, informer: Informer[Any]) -> tuple[int, list[ListedObject]]:
        """Return the version of a list, and what it has and the store has not, or the reverse."""
        suspects: dict[str, ListedObject] = {}
        # Many small sets of the store's own strings: a large one grows with a jolt.
        listed: list[set[str]] = [set() for _ in range(_BUCKETS)]
        version = INCOMPARABLE
        async for page in informer.metadata_pages():
            version = parse_resource_version(page.resource_version)
            for each in page.objects:
                known = informer.get_by_uid(each.uid)
                if known is not None:
                    uid = known.metadata.uid
                    listed[hash(uid) % _BUCKETS].add(uid)
                if known is None or _is_older(known.metadata.resource_version, each):
                    suspects[each.uid] = each
                elif _is_rewritten(known.metadata.resource_version, each, version):
                    # Lost is the whole history that the store has seen since.
                    informer.restored()
                    return version, []
            await self._sleep(_PAUSE_S)
        async for held in self._slices(informer):
            for obj in held:
                metadata = obj.metadata
                uid = metadata.uid
                if uid in listed[hash(uid) % _BUCKETS] or uid in suspects:
                    continue
                if parse_resource_version(metadata.resource_version) <= version:
                    namespace = getattr(metadata, "namespace", "")
                    suspects[uid] = ListedObject(metadata.name, uid, "", namespace)
        return version, list(suspects.values())

    async def _has_passed(self, informer: Informer[Any], version: int) -> bool:
        """Wait until the watch has told everything up to a version; return whether it has."""
        waited_s = 0.0
        while parse_resource_version(informer.resource_version) < version:
            if waited_s >= _CATCH_UP_S:
                return False
            await self._sleep(_LOOK_S)
            waited_s += _LOOK_S
        return True

    # --- the queue ----------------------------------------------------------------------------

    async def _find_lost_pods(self, pods: Informer[Pod]) -> None:
        """Queue the pods that wait for us and that the queue does not know."""
        lost: list[Pod] = []
        async for held in self._slices(pods):
            lost += filter(self._handlers.is_lost, held)
        if not lost:
            return
        await self._sleep(_SETTLE_S)
        for each in lost:
            pod = pods.get_by_uid(each.metadata.uid)
            if pod is not None and self._handlers.is_lost(pod):
                self._handlers.requeue(pod)
                metadata = pod.metadata
                found = ListedObject(metadata.name, metadata.uid, "", metadata.namespace)
                self._repaired(PODS.name, DeltaKind.ADDED, found)

    async def _slices(self, informer: Informer[T]) -> AsyncIterator[Sequence[T]]:
        """Yield what a store has, some at a time and with pauses; one namespace after the other."""
        for namespace in informer.namespaces():
            held = informer.list(namespace)
            for start in range(0, len(held), _SLICE):
                yield held[start : start + _SLICE]
                await self._sleep(_PAUSE_S)

    def _repaired(self, resource: str, kind: DeltaKind, subject: ListedObject) -> None:
        self._metrics.lost_event_repaired(resource, _KINDS[kind])
        log.error(
            "lost event repaired",
            resource=resource,
            kind=_KINDS[kind],
            namespace=subject.namespace,
            name=subject.name,
            uid=subject.uid,
        )


def _is_older(version: str, listed: ListedObject) -> bool:
    """Tell whether a store has an older version than the list."""
    mine = parse_resource_version(version)
    theirs = parse_resource_version(listed.resource_version)
    if INCOMPARABLE in (mine, theirs):
        return version != listed.resource_version
    return mine < theirs


def _is_rewritten(version: str, listed: ListedObject, list_version: int) -> bool:
    """Tell whether a store has a version that the list should have, and has not: etcd went back."""
    mine = parse_resource_version(version)
    return INCOMPARABLE < parse_resource_version(listed.resource_version) < mine <= list_version


def _is_wrong(informer: Informer[Any], suspect: ListedObject) -> bool:
    """Tell whether the store, which has been told everything by now, is still another."""
    known = informer.get_by_uid(suspect.uid)
    if not suspect.resource_version:  # the list had none
        return known is not None
    return known is None or _is_older(known.metadata.resource_version, suspect)
