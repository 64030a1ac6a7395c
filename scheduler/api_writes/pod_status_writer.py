"""Write the condition that explains why a pod is pending, only when it changes.

    unscheduled() -> waiting, one for each UID -> a few workers -> API server

A newer status of a pod takes the place of one that still waits, and no two requests about one pod
are under way at a time, so the last word is the last one written. Of a pod that has a node, if only
an assumed one, nothing is written: the API server itself writes ``PodScheduled=True`` and takes the
nomination away with the binding, and what came after would stay in a pod that runs. For the same
reason a binding waits for the end of a request that was under way before, see
:meth:`PodStatusWriter.quiet`.

*Source*: pkg/scheduler/framework/api_calls/pod_status_patch.go and
pkg/scheduler/backend/api_dispatcher/call_queue.go (1.36), whose gate SchedulerAsyncAPICalls is off
by default: then the scheduling thread itself waits for each answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from cache.value import Value
from scheduler.api_writes.background_writer import BackgroundWriter
from scheduler.api_writes.pod_condition import (
    WantedStatus,
    WrittenStatuses,
    cut_message,
    status_patch,
)
from scheduler.api_writes.settle import RETRIES, Failure, settle, why_given_up
from scheduler.client.errors import Action, ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.objects import Pod, PodMeta
    from scheduler.process.ports import Ports

MAX_TRIES: Final = 8
"""Attempts at one status; about half a minute with the client's backoff. By then the pod has been
tried again and has a newer one."""

_SUPERSEDED: Final = "superseded"

log = structlog.get_logger(__name__)


class PodStatusApi(Protocol):
    """The one call that statuses need; raises ApiError."""

    async def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        patch: Mapping[str, Any],
        *,
        resource_version: str = "",
    ) -> None:
        """Change a pod's status by a strategic merge patch, if it still has this UID.

        And this version, unless that is the empty string.
        """
        ...


class PodStatusStatistics(Value, frozen=True):
    """What became of the statuses handed over so far; all but the first are totals."""

    queued: int
    """Waiting or under way."""
    written: int
    """Accepted by the API server."""
    unchanged: int
    """Not sent, because the pod says so already."""
    replaced: int
    """Not sent, because a newer one of the same pod came, or the pod has found a node."""
    dropped: int
    """Not taken in, because too many were waiting."""
    failed: int
    """Refused, or too many attempts."""
    gone: int
    """The pod no longer existed."""


class PodStatusWriter(BackgroundWriter[WantedStatus, str]):
    """Writes ``PodScheduled=False`` into pods, with the reason.

    Parameters
    ----------
    ports
        The outside; ``rng`` is for the delays between attempts.
    is_placed
        Tells of a UID whether the pod has a node, assumed or bound.
    capacity
        Pods that may wait; when there are more, the newest are dropped.
    workers
        Requests under way at one time.

    Notes
    -----
    *Concurrency*: :meth:`unscheduled`, :meth:`nominate` and :meth:`statistics` are thread-safe,
    the rest belongs to the loop.
    """

    NAME = "pod-status"
    LEFT = "pod statuses left unwritten"

    def __init__(
        self,
        ports: Ports[PodStatusApi],
        is_placed: Callable[[str], bool],
        *,
        capacity: int = 10_000,
        workers: int = 4,
    ) -> None:
        super().__init__(ports, MAX_TRIES, capacity, workers)
        self._api = ports.api
        self._is_placed = is_placed
        self._waiting: dict[str, WantedStatus] = {}
        self._requests: dict[str, asyncio.Event] = {}
        """The pods with a request under way, by UID; set when it has ended."""
        self._written_lately = WrittenStatuses(capacity)
        self._written = self._unchanged = self._replaced = self._gone = 0

    # --- callers ------------------------------------------------------------------------------

    def unscheduled(
        self, pod: Pod, reason: str, message: str, nominated_node_name: str | None = None
    ) -> None:
        """Let the pod's status say that, and why, it has no node. Never waits, never raises.

        Parameters
        ----------
        pod
            The latest version known.
        reason
            ``Unschedulable`` or ``SchedulerError``.
        nominated_node_name
            The node the pod is nominated for; the empty string clears a nomination, None leaves
            what there is.
        """
        self._want(WantedStatus(pod, reason, cut_message(message), nominated_node_name))

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Let the pod's status name a nominated node, or none. Never waits, never raises.

        Parameters
        ----------
        pod
            The latest version known.
        node_name
            The empty string takes the nomination away.
        """
        self._want(WantedStatus(pod, "", "", node_name))

    def _want(self, wanted: WantedStatus) -> None:
        self._put(wanted, needs_room=wanted.metadata.uid not in self._waiting)

    async def nominate_now(self, pod: Pod, node_name: str) -> None:
        """Set an assumed pod's nominated node name. Tried once, and never raises.

        *Source*: pkg/scheduler/schedule_one.go, bindingCycle (1.36): that it fails is no reason not
        to bind.
        """
        wanted, metadata = WantedStatus(pod, "", "", node_name), pod.metadata
        await self.quiet(metadata.uid)
        shown = self._written_lately.shown_by(pod, self._clock())
        patch, will_show = status_patch(wanted, shown, self._wall_clock())
        if not patch:
            return
        try:
            await self._send(metadata, patch)
        except ApiError as error:
            self._written_lately.forget(metadata.uid)
            log.warning(
                "nominated node name could not be written",
                pod=wanted.key,
                node=node_name,
                error=str(error),
            )
        else:
            # The watch may tell of it later than the binding fails: it must be known then.
            self._written_lately.remember(metadata.uid, will_show, self._clock())

    async def quiet(self, uid: str) -> None:
        """Wait until no request about a pod is under way.

        If the pod has been placed before, none will begin any more: what is written next about
        it, a binding for example, is written last. A request lasts as long as the client lets it.
        """
        while (request := self._requests.get(uid)) is not None:
            await request.wait()

    def statistics(self) -> PodStatusStatistics:
        """Return what became of the statuses handed over so far."""
        return PodStatusStatistics(
            queued=self.queued,
            written=self._written,
            unchanged=self._unchanged,
            replaced=self._replaced,
            dropped=self._dropped,
            failed=self._failed,
            gone=self._gone,
        )

    @property
    def queued(self) -> int:
        """How many wait or are under way; of a pod both may be."""
        return self._on_the_way + len(self._waiting) + len(self._active)

    # --- what waits ---------------------------------------------------------------------------

    def _receive(self, value: WantedStatus) -> None:
        uid = value.metadata.uid
        older = self._waiting.get(uid)
        if older is not None:
            self._replaced += 1
            self._waiting[uid] = value.after(older)
            return
        self._waiting[uid] = value
        if uid not in self._active:
            self._enqueue(uid)

    # --- sending ------------------------------------------------------------------------------

    async def _write(self, item: str) -> None:
        wanted = self._waiting.pop(item)
        try:
            await self._settle(wanted)
        except Exception:
            # Reached only by a mistake of ours, which shall not end the worker.
            self._failed += 1
            log.exception("pod status could not be written", pod=wanted.key)
        if item in self._waiting:
            self._enqueue(item)

    async def _settle(self, wanted: WantedStatus) -> None:
        metadata = wanted.metadata
        if self._is_placed(metadata.uid):
            self._replaced += 1
            return
        shown = self._written_lately.shown_by(wanted.pod, self._clock())
        patch, will_show = status_patch(wanted, shown, self._wall_clock())
        if not patch:
            self._unchanged += 1
            return
        tries = self._failing.tries(metadata.namespace, MAX_TRIES)

        async def attempt() -> bool:
            if self._is_superseded(wanted):
                return False
            await self._send(metadata, patch)
            return True

        def gives_up(failure: Failure) -> str:
            # Whatever it says now, nobody knows that it is what we wrote.
            self._written_lately.forget(metadata.uid)
            why = why_given_up(failure, tries)
            return _SUPERSEDED if why in ("", RETRIES) and self._is_superseded(wanted) else why

        # To write it twice is as good as once, so there is nothing to ask.
        end = await settle(attempt, gives_up, self._executor.sleep, self._rng)
        if isinstance(end, Failure):
            self._not_written(wanted, end)
        elif end:
            self._written += 1
            self._written_lately.remember(metadata.uid, will_show, self._clock())
            self._failing.accepted(metadata.namespace)
        else:
            self._replaced += 1

    def _not_written(self, wanted: WantedStatus, end: Failure) -> None:
        if end.action in (Action.GONE, Action.CONFLICT):
            self._gone += 1
        elif end.why == _SUPERSEDED:
            self._replaced += 1
        else:
            why = self._give_up(wanted.metadata.namespace, end)
            if why:
                log.error(
                    "pod status cannot be written", pod=wanted.key, error=why, failed=self._failed
                )

    async def _send(self, metadata: PodMeta, patch: Mapping[str, Any]) -> None:
        await self.quiet(metadata.uid)
        request = self._requests[metadata.uid] = asyncio.Event()
        try:
            await self._api.patch_pod_status(metadata.namespace, metadata.name, metadata.uid, patch)
        finally:
            del self._requests[metadata.uid]
            request.set()

    def _is_superseded(self, wanted: WantedStatus) -> bool:
        """Tell whether the pod has a node, or a newer word, which inherits the nomination."""
        uid = wanted.metadata.uid
        if self._is_placed(uid):
            return True
        newer = self._waiting.get(uid)
        if newer is None:
            return False
        self._waiting[uid] = newer.after(wanted)
        return True
