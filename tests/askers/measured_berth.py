"""Runs berth, and records how long each decision took, and each lag of its event loop.

The histograms of ``/metrics`` know limits of buckets only. Each duration is appended to a file as a
float64, at the price of one small write (2 us).
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from scheduler.cli import main
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.process.loop_lag import LoopLag

if TYPE_CHECKING:
    from collections.abc import Callable

DECISIONS, LAGS = "decisions", "lags"


def recorder(file: Path) -> Callable[[float], object]:
    """Return what appends a duration to a file."""
    opened = file.open("ab", buffering=0)
    return lambda seconds: opened.write(struct.pack("<d", seconds))


def durations(file: Path, start: int = 0) -> list[float]:
    """Return the recorded durations from one on."""
    data = file.read_bytes()[8 * start :]
    return [each for (each,) in struct.iter_unpack("<d", data[: len(data) // 8 * 8])]


def measure(folder: Path) -> None:
    """Record from now on."""
    decided, lagged = recorder(folder / DECISIONS), recorder(folder / LAGS)
    decide, construct = SchedulingCycle.decide, LoopLag.__init__

    def measured(*arguments: Any, **named: Any) -> Any:
        began = perf_counter()
        decision = decide(*arguments, **named)
        decided(perf_counter() - began)
        return decision

    def constructed(self: LoopLag, observe: Callable[[float], None], clock: Any) -> None:
        construct(self, lambda seconds: (observe(seconds), lagged(seconds))[0], clock)

    SchedulingCycle.decide = measured  # type: ignore[method-assign]
    LoopLag.__init__ = constructed  # type: ignore[method-assign]


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
