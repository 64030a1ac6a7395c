"""The API server's side of Events and pod statuses, with answers written down beforehand."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scheduler.client.errors import ApiError


@dataclass(frozen=True, slots=True)
class WriteCall:
    """A request: ``create`` or ``patch`` of an Event, or ``status`` of a pod."""

    verb: str
    namespace: str
    name: str
    body: Mapping[str, Any]
    uid: str = ""


class FakeWriteApi:
    """Accepts everything that `answers` does not refuse, and remembers all calls.

    Parameters
    ----------
    answers
        For each call, in order, the error it fails with, or None; None for all later ones.

    Attributes
    ----------
    gate
        Calls wait until it is set; it is, unless :meth:`hold` was called.
    waiting
        How many calls wait at the gate.
    """

    def __init__(self, answers: Iterable[ApiError | None] = ()) -> None:
        self.answers = deque(answers)
        self.calls: list[WriteCall] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0

    @property
    def verbs(self) -> list[str]:
        return [call.verb for call in self.calls]

    def hold(self) -> None:
        """Keep all calls from here on waiting."""
        self.gate.clear()

    async def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        await self._answer(WriteCall("create", namespace, body["metadata"]["name"], body))

    async def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        await self._answer(WriteCall("patch", namespace, name, patch))

    async def patch_pod_status(
        self, namespace: str, name: str, uid: str, patch: Mapping[str, Any]
    ) -> None:
        await self._answer(WriteCall("status", namespace, name, patch, uid))

    async def _answer(self, call: WriteCall) -> None:
        self.calls.append(call)
        self.waiting += 1
        try:
            await self.gate.wait()
        finally:
            self.waiting -= 1
        answer = self.answers.popleft() if self.answers else None
        if answer is not None:
            raise answer
