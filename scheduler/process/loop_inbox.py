"""Pass values from any thread to the event loop, with one wake-up for many values.

Waking an event loop from another thread costs a system call; under load the loop is awake
anyway, so values are put into a deque and the loop is only woken when no wake-up is pending.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

T = TypeVar("T")


class LoopInbox(Generic[T]):
    """A queue into an event loop.

    Parameters
    ----------
    loop
        The loop on which ``receive`` is called.
    receive
        Takes one value; must not raise and must not wait.

    Notes
    -----
    *Concurrency*: :meth:`put` from any thread. Values are received in the order of their puts.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Callable[[T], None]) -> None:
        self._loop = loop
        self._receive = receive
        self._values: deque[T] = deque()
        self._awake = False

    def put(self, value: T) -> None:
        """Hand over a value. Once the loop is closed, values are dropped."""
        self._values.append(value)
        if not self._awake:
            self._awake = True
            try:
                self._loop.call_soon_threadsafe(self._drain)
            except RuntimeError:
                self._values.clear()

    def _drain(self) -> None:
        # First the flag, then the values: a put that comes in between wakes the loop once too
        # often, which is harmless; the other order could leave its value lying.
        self._awake = False
        values = self._values
        while values:
            self._receive(values.popleft())
