"""Manage the process's memory: when the garbage collector runs, and when cached values expire."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cache.ages import AGE_S, AGES

if TYPE_CHECKING:
    from collections.abc import Callable

_YOUNG_OBJECTS: Final = 4_000
"""New objects beyond which the collector looks at them. There may be twice as many, since objects
that it looked at before count as gone when they go. A look takes 0.4 us for each, 1 to 2 us on a
busy machine, while nothing else runs. With 8 000, the longest looks took 34 to 38 ms there, with
4 000 11 to 18 ms, and all looks together as long."""

_AT_FIRST: Final = 1_000_000
"""The same until the first lists are in. What is imported and listed stays, and at the start no pod
waits for anything but the end of it. This bounds the garbage of a start that takes long because its
lists are refused again and again."""

_EVERYTHING: Final = 2
"""The oldest generation."""


def calm_collector() -> None:
    """Have the cyclic collector look at each object only once, and hardly ever at the start.

    A cluster is millions of small objects that stay, and hardly any of the garbage is cyclic. What
    has been imported until now, and later what a look has left over, is not looked at again: a look
    holds the interpreter until it ends, so that the event loop and the scheduling thread wait for
    it. With a threshold of 25 000 objects, a look at new ones took up to 55 ms, and every tenth was
    at 250 000.

    A cycle that becomes garbage after its look keeps its memory until :class:`Aging` has everything
    looked at, which is seldom.
    """
    gc.freeze()
    gc.set_threshold(_AT_FIRST)
    if _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, info: dict[str, int]) -> None:
    # Whoever asks for a look at everything may want to see what it has left over.
    if phase == "stop" and info["generation"] < _EVERYTHING:
        gc.freeze()


def settle_memory() -> None:
    """Have the collector look at few objects at a time, from the end of the first lists on.

    What these brought stays for long and is taken out of the collector's sight, without a look at
    it: the first pods would wait for that, 30 ms with 20 000 pods that run.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)


def look_at_everything() -> None:
    """Free all cycles that are garbage.

    *Cost*: holds the interpreter for 150 ms with 150 000 pods on 5 000 nodes, 420 000 objects.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def resident_bytes() -> int:
    """Return the resident memory of this process, 0 where the system does not say it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def trim_memory() -> None:
    """Give pages back to the system that are free in the C library's heaps.

    It does so by itself only at the end of a heap. In a soak of half an hour a tenth of the process
    was such pages, and their number grew.

    *Cost*: 2 ms for 140 MiB. Nothing where the C library cannot do it: glibc can, musl cannot.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Aging:
    """Begins an age every few minutes, on the loop that it is started on.

    Where the resident memory has doubled within some ages, the cyclic collector looks at everything
    once: that bounds the memory of cycles that the collector does not see otherwise. A cluster that
    stays as large as it is never pays for it.

    Parameters
    ----------
    resident_bytes
        Returns the resident memory of the process, 0 where it cannot be told.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, resident_bytes: Callable[[], int] = resident_bytes) -> None:
        self._resident_bytes = resident_bytes
        self._looked_at_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin ages from now on."""
        self._timer = asyncio.get_running_loop().call_later(AGE_S, self._begin)

    def stop(self) -> None:
        """Begin no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        AGES.begin()
        trim_memory()
        now_bytes = self._resident_bytes()
        if not self._looked_at_bytes:
            # The first lists are in: what they brought is no reason to look for garbage.
            self._looked_at_bytes = now_bytes
        elif now_bytes > 2 * self._looked_at_bytes:
            look_at_everything()
            self._looked_at_bytes = self._resident_bytes()
        self.start()
