"""Manage the process's memory: when the garbage collector runs, and when cached values expire."""

from __future__ import annotations

import asyncio
import ctypes
import gc

from cache.ages import AGE_S, AGES


def calm_collector() -> None:
    """Have the cyclic collector look seldom, and not at what has been imported until now.

    A cluster is millions of small objects that stay, and hardly any of the garbage is cyclic. With
    Python's thresholds a tenth of the CPU of the first lists went into looking for some. A look at
    25 000 new objects takes about a millisecond.
    """
    gc.freeze()
    gc.set_threshold(25_000, 10, 20)


def settle_memory() -> None:
    """Take what the first lists brought out of the collector's sight: it stays for long.

    Without a look at it: the first pods would wait for that, 30 ms with 20 000 pods that run.
    """
    gc.freeze()


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

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self) -> None:
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
        self.start()
