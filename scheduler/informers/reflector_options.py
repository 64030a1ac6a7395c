"""Define the options of reflectors: sizes, times, and the sources of time and randomness."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

READ_TIMEOUT_S: Final = 75.0
"""The API server sends a bookmark about once a minute; silence beyond that is a dead connection."""

PAGE_SIZE: Final = 500
"""client-go's page size (tools/pager)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """What all reflectors of a process share.

    Attributes
    ----------
    read_timeout_s
        Silence on a stream after which it is given up.
    page_size
        Objects in one page of a list, where lists come in pages.
    clock
        Monotonic seconds.
    sleep
        Waits for so many seconds.
    rng
        For jitter.
    """

    read_timeout_s: float = READ_TIMEOUT_S
    page_size: int = PAGE_SIZE
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)
