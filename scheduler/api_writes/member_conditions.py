"""Hand one condition for all members of a group to the writer of pod statuses, piece by piece.

A group of a thousand members has one reason for all of them. The caller hands it over once; the
pods are put into the writer's queue on the event loop, a few at a time and only as long as the
queue has room for the statuses of other pods as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from cache.value import Value
from scheduler.process.loop_inbox import LoopInbox

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey
    from cache.pod_info import PodInfo
    from scheduler.api_writes.pod_status_writer import PodStatusWriter
    from scheduler.process.ports import Executor

MAX_QUEUED: Final = 2_000
"""Statuses that may wait in the writer before more are put in: a fifth of what it takes."""

_SLICE: Final = 100
"""Pods that are handed over in one piece: less than half a millisecond of the loop."""

_PAUSE_S: Final = 0.1

log = structlog.get_logger(__name__)


class _Text(Value, frozen=True):
    """What the conditions of some members should say."""

    key: GroupKey
    members: Sequence[PodInfo]
    reason: str
    message: str


class MemberConditions:
    """Writes ``PodScheduled=False`` into the members of groups.

    Parameters
    ----------
    statuses
        Writes the conditions; one that a pod shows already is not written.
    live_pod
        Returns the latest version of a pod by namespace and name, or None.

    Notes
    -----
    *Concurrency*: :meth:`tell` is thread-safe, the rest belongs to the loop.

    *Cost*: :meth:`tell` about 1 us whatever the number of members; then 3 us of the loop's time for
    each of them, besides the requests.
    """

    def __init__(
        self,
        executor: Executor,
        statuses: PodStatusWriter,
        live_pod: Callable[[str, str], Pod | None],
    ) -> None:
        self._executor = executor
        self._statuses = statuses
        self._live_pod = live_pod
        self._inbox: LoopInbox[_Text] = LoopInbox(executor.loop, self._receive)
        self._waiting: dict[GroupKey, list[_Text]] = {}
        """The newest text of each group; others only for members that came later."""
        self._task: asyncio.Task[None] | None = None

    def tell(self, key: GroupKey, members: Sequence[PodInfo], reason: str, message: str) -> None:
        """Let members say why they have no node. Never waits, never raises.

        A text that was handed over before and not written yet is dropped where the new one is about
        the same members.

        Parameters
        ----------
        members
            Not changed afterwards.
        """
        self._inbox.put(_Text(key, members, reason, message))

    def _receive(self, text: _Text) -> None:
        waiting = self._waiting.setdefault(text.key, [])
        if any((each.reason, each.message) != (text.reason, text.message) for each in waiting):
            waiting.clear()
        waiting.append(text)
        if self._task is None:
            self._task = self._executor.loop.create_task(self._hand_over(), name="group-members")

    async def _hand_over(self) -> None:
        try:
            while self._waiting:
                key = next(iter(self._waiting))
                for text in self._waiting.pop(key):
                    await self._hand_over_text(text)
        except Exception:
            # Reached only by a mistake of ours. The next text begins a new task.
            log.exception("conditions of the members of a group could not be handed over")
        finally:
            self._task = None

    async def _hand_over_text(self, text: _Text) -> None:
        for number, member in enumerate(text.members, 1):
            if text.key in self._waiting and self._is_over(text):
                return
            live = self._live_pod(member.namespace, member.name)
            if live is not None and live.metadata.uid == member.uid and not live.spec.node_name:
                self._statuses.unscheduled(live, text.reason, text.message)
            if number % _SLICE == 0:
                await self._executor.sleep(0)
            while self._statuses.queued >= MAX_QUEUED:
                await self._executor.sleep(_PAUSE_S)

    def _is_over(self, text: _Text) -> bool:
        """Tell whether a newer text has come meanwhile."""
        newer = self._waiting[text.key]
        return any((each.reason, each.message) != (text.reason, text.message) for each in newer)
