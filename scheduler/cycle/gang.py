"""The members of a group between their decision and their binding: they start together.

Permit plugins may hold some of them. The first binding starts when all are let go; if one is
refused before that, all of them go back. So they do if, before the first binding, so many of them
have lost their nodes to others that the rest would be less than the minimum.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plugins.framework.status import SUCCESS, Code, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cache.pod_group_objects import GroupKey
    from cache.pod_groups import PodGroups
    from cache.pod_info import PodInfo


class Gang:
    """Members that were decided together.

    Parameters
    ----------
    members
        All of them.
    held
        The UIDs of those that Permit plugins hold.
    until_s
        When a binding that failed is not tried again, in seconds of the monotonic clock.
    groups
        Where the members count as decided.
    spare
        How many members are more than the minimum.

    Notes
    -----
    *Concurrency*: made on the scheduling thread, then confined to the I/O loop.
    """

    def __init__(
        self,
        key: GroupKey,
        members: Sequence[PodInfo],
        held: Collection[str],
        until_s: float,
        groups: PodGroups,
        spare: int = 0,
    ) -> None:
        self._key = key
        self._members = tuple(members)
        self._held = set(held)
        self._groups = groups
        self._spare = spare
        self._lost: set[str] = set()
        self._has_begun = False
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
            self._refuse(status)
        if self._refusal is not None or not self._held:
            self._decided.set()
        await self._decided.wait()
        if self._refusal is None:
            return SUCCESS
        return self._of_another(self._refusal) if status.is_success else status

    def may_bind(
        self, info: PodInfo, check: Callable[[PodInfo], Status], *, sends: bool = True
    ) -> Status:
        """Ask the guard whether a member may be bound, and all others before the first binding.

        Parameters
        ----------
        check
            The guard.
        sends
            Whether the binding is sent next; else something before it is written, and only this
            member is asked about.

        *Cost*: once O(members), then O(1).
        """
        if self._refusal is not None:
            return self._of_another(self._refusal)
        status = check(info)
        if self._has_begun:
            return status
        asked = self._members if sends else (info,)
        answers = {each.uid: check(each) for each in asked}
        self._lost.difference_update(answers)
        lost = [uid for uid, answer in answers.items() if not answer.is_success]
        self._lost.update(lost)
        if len(self._lost) <= self._spare:
            self._has_begun = sends and status.is_success
            return status
        self._refuse(answers[lost[0]] if status.is_success else status)
        return self._of_another(answers[lost[0]]) if status.is_success else status

    def _refuse(self, status: Status) -> None:
        """Have all members go back.

        All at once: otherwise those that go back first would find the group begun, and be tried
        alone.
        """
        self._refusal = status
        self._groups.forget_all(self._key, [each.uid for each in self._members])

    def _of_another(self, refusal: Status) -> Status:
        why = f"another member of the pod group was refused: {refusal.message}"
        code = Code.UNSCHEDULABLE if refusal.is_rejection else Code.ERROR
        return Status(code, (why,), refusal.plugin, refusal.error)
