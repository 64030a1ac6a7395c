"""Bounds what one call may allocate.

While a plugin is called, the address space of the process may grow by an allowance and no more: an
allocation beyond it fails with a ``MemoryError`` in the plugin, which is contained like any other
exception. Watching the resident set instead would come too late: a second is enough to fill a
machine, and the kernel ends the whole process. The other threads are under the same limit as long
as the call lasts; they meet it only if the plugin has used the allowance up, and for as long as it
takes its exception to get out.

A plugin that keeps a little of every call is not found by this: the memory limit of the container
is for that.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from typing import Final

DEFAULT_ALLOWANCE_BYTES: Final = 1 << 30
"""Far more than any plugin needs for a call: a column of 5 000 nodes takes 40 kB."""

_MIN_ALLOWANCE_BYTES: Final = 64 << 20
"""Below this the allocator's own appetite (arenas of threads) would look like a plugin's."""

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_CGROUP_FILES: Final = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def cgroup_room_bytes(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return how much more the container may take, None where nobody limits it."""
    for limit, used in _CGROUP_FILES:
        with contextlib.suppress(OSError, ValueError):
            return max(int((root / limit).read_text()) - int((root / used).read_text()), 0)
    return None


def address_space_bytes() -> int:
    """Return how large the address space of this process is."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_BYTES


def within_room(wanted_bytes: int) -> int:
    """Return an allowance of memory that leaves at least as much to the rest of the container."""
    room = cgroup_room_bytes()
    if room is None:
        return wanted_bytes
    return max(min(wanted_bytes, room // 2), min(_MIN_ALLOWANCE_BYTES, wanted_bytes))


class MemoryFence:
    """The limit on the address space during a call, and the one that holds otherwise.

    Parameters
    ----------
    allowance_bytes
        By how much a call may let the address space grow. In a container it is never more than
        half of what is left to the container.

    Attributes
    ----------
    during, otherwise
        What to pass to ``resource.setrlimit(RLIMIT_AS, ...)``.

    Notes
    -----
    *Concurrency*: :meth:`refresh` on any one thread; the attributes may be read from any.
    """

    __slots__ = ("_allowance_bytes", "during", "otherwise")

    def __init__(self, allowance_bytes: int = DEFAULT_ALLOWANCE_BYTES) -> None:
        self._allowance_bytes = allowance_bytes
        self.otherwise = resource.getrlimit(resource.RLIMIT_AS)
        self.during = self.otherwise
        self.refresh()

    def refresh(self) -> None:
        """Take note of how large the process is now: about once a second."""
        allowance = within_room(self._allowance_bytes)
        limit = address_space_bytes() + allowance
        soft, hard = self.otherwise
        for bound in (soft, hard):
            if bound != resource.RLIM_INFINITY:
                limit = min(limit, bound)
        self.during = (limit, hard)
