"""An API server's side of evictions, with answers written down beforehand."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cache.objects import Pod


class FakeEvictionApi:
    """Accepts everything that it is not told to refuse, and remembers all writes.

    Parameters
    ----------
    patches, deletes
        For each call, in order, the error it fails with, or None; None for all later ones.
    stored
        Pods as a GET finds them, by name.

    Attributes
    ----------
    connected
        Deletes wait for it before they are sent; it is set, unless it is cleared.
    gate
        The same for the answers of deletes.
    """

    def __init__(
        self,
        patches: Iterable[ApiError | None] = (),
        deletes: Iterable[ApiError | None] = (),
        stored: Mapping[str, Pod] | None = None,
    ) -> None:
        self._patches, self._deletes = deque(patches), deque(deletes)
        self._stored = stored or {}
        self.writes: list[tuple[str, str]] = []
        self.patched: list[Mapping[str, Any]] = []
        self.versions: list[str] = []
        self.uids: list[str] = []
        self.under_way = 0
        self.most_under_way = 0
        self.connected = asyncio.Event()
        self.connected.set()
        self.gate = asyncio.Event()
        self.gate.set()

    @property
    def deleted(self) -> list[str]:
        return [name for verb, name in self.writes if verb == "delete"]

    async def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        patch: Mapping[str, Any],
        *,
        resource_version: str = "",
    ) -> None:
        self.writes.append(("patch", name))
        self.patched.append(patch)
        self.versions.append(resource_version)
        self.uids.append(uid)
        await self._answer(self._patches)

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        await self.connected.wait()
        if may_send is not None and not may_send():
            raise ApiError(None, "Withheld", "not sent")
        self.writes.append(("delete", name))
        self.uids.append(uid)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.gate.wait()
        finally:
            self.under_way -= 1
        await self._answer(self._deletes)

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        return self._stored.get(name)

    async def _answer(self, answers: deque[ApiError | None]) -> None:
        await asyncio.sleep(0)
        answer = answers.popleft() if answers else None
        if answer is not None:
            raise answer
