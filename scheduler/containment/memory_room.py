"""How much memory there is to be had, and how much the process has."""

from __future__ import annotations

import contextlib
import ctypes
import os
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

_malloc_trim: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""There is none but in glibc. Other threads run while it is at work."""


def cgroup_room_bytes(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return how much more the container may take, None where nobody limits it."""
    for limit, used in _CGROUP_FILES:
        with contextlib.suppress(OSError, ValueError):
            return max(int((root / limit).read_text()) - int((root / used).read_text()), 0)
    return None


def within_room(wanted_bytes: int) -> int:
    """Return an allowance of memory that leaves at least as much to the rest of the container."""
    room = cgroup_room_bytes()
    if room is None:
        return wanted_bytes
    return max(min(wanted_bytes, room // 2), min(_MIN_ALLOWANCE_BYTES, wanted_bytes))


def resident_bytes() -> int:
    """Return how much memory the process has: some 10 us."""
    file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(file, 128).split()[1]) * _PAGE_BYTES
    finally:
        os.close(file)


def give_back() -> None:
    """Return to the kernel what was freed and the allocator has kept for later, if it can."""
    if _malloc_trim is not None:
        _malloc_trim(0)
