"""One Lease in memory, with an API server's manners and a test's faults."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from msgspec.structs import replace

from scheduler.client.errors import ApiError
from scheduler.client.leases import Lease, LeaseRecord

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Fault = Callable[[], Awaitable[None]]


class FakeLeaseStore:
    """What several candidates share; each talks to it through a `Door` of its own."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.writes: list[tuple[float, LeaseRecord]] = []
        """When each write was carried out, by the loop's clock, and what it left."""
        self._version = 0

    def put(self, record: LeaseRecord) -> None:
        """Store a record, whoever wrote it."""
        self._version += 1
        metadata = {"name": "berth", "resourceVersion": str(self._version)}
        self.lease = Lease(record, {"metadata": metadata})

    def delete(self) -> None:
        """Remove the Lease."""
        self.lease = None

    def touch(self) -> None:
        """Change something that is not the election's."""
        assert self.lease is not None
        self.put(self.lease.record)

    def hold(self, holder: str) -> None:
        """Put somebody's name into the Lease."""
        assert self.lease is not None
        self.put(replace(self.lease.record, holder=holder))

    def write(self, record: LeaseRecord) -> Lease:
        self.put(record)
        self.writes.append((asyncio.get_running_loop().time(), record))
        assert self.lease is not None
        return self.lease

    @property
    def record(self) -> LeaseRecord:
        """What is stored now."""
        assert self.lease is not None
        return self.lease.record


class Door:
    """One candidate's way to the store."""

    def __init__(self, store: FakeLeaseStore) -> None:
        self._store = store
        self.faults: deque[Fault] = deque()
        """What becomes of the next requests, before they are carried out."""
        self.after: deque[Fault] = deque()
        """What becomes of the answers to the next writes."""
        self.is_hanging = False
        self.holder: str | None = None
        """In the last Lease that was read here."""
        self.seen: list[str] = []

    def __str__(self) -> str:
        return "kube-system/berth"

    async def get(self, *, timeout_s: float) -> Lease | None:
        await self._arrive("get", timeout_s)
        if self._store.lease is not None:
            self.holder = self._store.lease.record.holder
        return self._store.lease

    async def create(self, record: LeaseRecord, *, timeout_s: float) -> Lease:
        await self._arrive("create", timeout_s)
        if self._store.lease is not None:
            raise ApiError(409, "AlreadyExists", "there is one")
        return await self._answer(self._store.write(record))

    async def update(self, lease: Lease, record: LeaseRecord, *, timeout_s: float) -> Lease:
        await self._arrive("update", timeout_s)
        stored = self._store.lease
        if stored is None:
            raise ApiError(404, "NotFound", "there is none")
        if stored.document["metadata"] != lease.document["metadata"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        return await self._answer(self._store.write(record))

    async def _arrive(self, what: str, timeout_s: float) -> None:
        self.seen.append(what)
        if self.is_hanging:
            await hang(timeout_s)
        if self.faults:
            await self.faults.popleft()()

    async def _answer(self, lease: Lease) -> Lease:
        if self.after:
            await self.after.popleft()()
        return lease


async def hang(timeout_s: float) -> None:
    """Give no answer, as the client tells it."""
    await asyncio.sleep(timeout_s)
    raise ApiError(None, "Timeout", f"no answer within {timeout_s:.4g} s", ambiguous=True)


def late(delay_s: float) -> Fault:
    """Let time pass."""

    async def fault() -> None:
        await asyncio.sleep(delay_s)

    return fault


def fails(status: int | None, reason: str) -> Fault:
    """Refuse, or break."""

    async def fault() -> None:
        raise ApiError(status, reason, "as the test wants it", ambiguous=status is None)

    return fault
