"""Cache the results of expensive calls until they expire."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

T = TypeVar("T")


class Answers(Generic[T]):
    """A bounded memory of answers. Who asks what somebody else is asking waits for their answer.

    Parameters
    ----------
    capacity
        Answers kept at most; the one that was not asked for longest goes first.
    ttl_s
        How long an answer holds, given the answer.
    clock
        Seconds of a monotonic clock.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self, capacity: int, ttl_s: Callable[[T], float], clock: Callable[[], float]
    ) -> None:
        self._capacity = capacity
        self._ttl_s = ttl_s
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._asked: dict[Hashable, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer that still holds, or ask. What `ask` raises is raised and not kept."""
        kept = self._kept.get(key)
        if kept is not None:
            deadline_s, answer = kept
            if self._clock() < deadline_s:
                self._kept.move_to_end(key)
                return answer
            del self._kept[key]
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.ensure_future(self._ask(key, ask))
            task.add_done_callback(lambda done: self._settled(key, done))
        # Whoever gives up waiting must not take the answer away from the others.
        return await asyncio.shield(task)

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        answer = await ask()
        self._kept[key] = (self._clock() + self._ttl_s(answer), answer)
        self._kept.move_to_end(key)
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        return answer

    def _settled(self, key: Hashable, done: asyncio.Task[T]) -> None:
        del self._asked[key]
        if not done.cancelled():
            done.exception()  # everybody may have given up on it; then nobody else looks
