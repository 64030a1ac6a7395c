"""The members of a group between their decision and their binding: they start together.

Permit plugins may hold some of them. The first binding starts when all are let go; if one is
refused before that, all of them go back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plugins.framework.status import SUCCESS, Code, Status

if TYPE_CHECKING:
    from collections.abc import Collection

    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import PodGroups


class Gang:
    """Members that were decided together.

    Parameters
    ----------
    uids
        All of the members.
    held
        Those of them that Permit plugins hold.
    until_s
        When a binding that failed is not tried again, in seconds of the monotonic clock.
    groups
        Where the members count as decided.

    Notes
    -----
    *Concurrency*: made on the scheduling thread, then confined to the I/O loop.
    """

    def __init__(
        self,
        key: GroupKey,
        uids: Collection[str],
        held: Collection[str],
        until_s: float,
        groups: PodGroups,
    ) -> None:
        self._key = key
        self._uids = tuple(uids)
        self._held = set(held)
        self._groups = groups
        self._refusal: Status | None = None
        self._decided = asyncio.Event()
        self.until_s = until_s

    @property
    def waits(self) -> bool:
        """Whether members have to wait for each other."""
        return bool(self._held)

    async def permitted(self, uid: str, status: Status) -> Status:
        """Tell what Permit said of a member, and wait until it is known of all.

        Returns
        -------
        Success when all are let go. Else the refusal: the member's own, or that of another.
        """
        self._held.discard(uid)
        if not status.is_success and self._refusal is None:
            self._refusal = status
            # All at once: otherwise those that go back first would find the group begun, and be
            # tried alone.
            self._groups.forget_all(self._key, self._uids)
        if self._refusal is not None or not self._held:
            self._decided.set()
        await self._decided.wait()
        if self._refusal is None:
            return SUCCESS
        if not status.is_success:
            return status
        why = f"another member of the pod group was refused: {self._refusal.message}"
        code = Code.UNSCHEDULABLE if self._refusal.is_rejection else Code.ERROR
        return Status(code, (why,), self._refusal.plugin, self._refusal.error)
