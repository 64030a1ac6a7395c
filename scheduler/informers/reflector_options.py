"""Define the options of reflectors: sizes, times, and the sources of time and randomness."""

from __future__ import annotations

import asyncio
import random
import re
import time
from typing import TYPE_CHECKING, Final

import msgspec

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

READ_TIMEOUT_S: Final = 75.0
"""The API server sends a bookmark about once a minute; silence beyond that is a dead connection."""

PAGE_SIZE: Final = 500
"""client-go's page size (tools/pager)."""


_PAGES_FROM_CACHE: Final = (1, 34)
"""Since this version API servers read pages of a list from their cache. For 5 000 nodes and 5 000
pods a streaming list takes 0.33 to 0.53 s of a server's CPU and 0.8 to 1 s, pages of 500 objects
take 0.18 s and 0.26 to 0.48 s.

*Source*: k8s.io/apiserver 1.34, pkg/features/kube_features.go, ListFromCacheSnapshot, on by
default.
"""

_VERSION: Final = re.compile(r"v(\d+)\.(\d+)")


def pages_come_from_cache(server_version: str) -> bool:
    """Return whether an API server of a version, such as ``v1.36.3``, reads pages from its cache.

    One that reads them from etcd, or keeps its version secret, is asked for a streaming list.
    """
    version = _VERSION.match(server_version)
    return version is not None and (int(version[1]), int(version[2])) >= _PAGES_FROM_CACHE


class ReflectorOptions(Value, frozen=True, kw_only=True):
    """What all reflectors of a process share.

    Attributes
    ----------
    read_timeout_s
        Silence on a stream after which it is given up.
    page_size
        Objects in one page of a list, where lists come in pages.
    paged
        The names of the resources whose lists come in pages, and not as a stream: those of which
        there are many, if :func:`pages_come_from_cache`. A streaming list goes on as the watch on
        the same connection; pages need another one, and its handshake costs as much as a hundred
        objects.
    clock
        Monotonic seconds.
    sleep
        Waits for so many seconds.
    rng
        For jitter.
    """

    read_timeout_s: float = READ_TIMEOUT_S
    page_size: int = PAGE_SIZE
    paged: Collection[str] = ()
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    rng: random.Random = msgspec.field(default_factory=random.Random)
