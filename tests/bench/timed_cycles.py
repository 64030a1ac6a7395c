"""``berth``, with the times of each scheduling cycle in a file.

    python -m tests.bench.timed_cycles run ...

The file is named by the environment variable ``BERTH_TIMED_CYCLES``; it is mapped into memory, so
that it holds all times although the process is killed.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.cli import main
from scheduler.cycle.schedule_one import SchedulingLoop

if TYPE_CHECKING:
    from scheduler.queueing import QueuedPod

VARIABLE: Final = "BERTH_TIMED_CYCLES"
_MOST: Final = 1 << 19
_TIMES: Final = struct.Struct("<dd")


class Cycle(NamedTuple):
    """The times of one cycle, the start of the binding included.

    Attributes
    ----------
    seconds
        By the clock: other threads and other processes count.
    cpu_s
        Of the scheduling thread.
    """

    seconds: float
    cpu_s: float


def read(path: Path) -> list[Cycle]:
    """Return the times of all cycles in their order; a cycle of no time at all ends the list."""
    found = []
    for times in _TIMES.iter_unpack(path.read_bytes()):
        if not times[0]:
            break
        found.append(Cycle(*times))
    return found


def time_cycles(path: Path) -> None:
    """Write the times of each cycle of this process from now on into a file."""
    path.write_bytes(bytes(_MOST * _TIMES.size))
    with path.open("r+b") as file:
        table = mmap.mmap(file.fileno(), 0)
    attempt, places = SchedulingLoop.attempt, iter(range(0, _MOST * _TIMES.size, _TIMES.size))

    def timed_attempt(self: SchedulingLoop, queued: QueuedPod) -> None:
        began_s, cpu_s = perf_counter(), thread_time()
        attempt(self, queued)
        place = next(places, None)
        if place is not None:
            _TIMES.pack_into(table, place, perf_counter() - began_s, thread_time() - cpu_s)

    SchedulingLoop.attempt = timed_attempt  # type: ignore[method-assign]


if __name__ == "__main__":
    time_cycles(Path(os.environ[VARIABLE]))
    sys.exit(main(sys.argv[1:]))
