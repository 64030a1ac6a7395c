"""``python -m tests.bench lost``: what it costs to look for events that watches have lost.

A server process lists the metadata of so many pods; nothing was lost, so all of it is the cost of
looking. Slices are CPU of the I/O thread between two turns of its loop.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from tests.bench.deciding import Deciding
from tests.bench.statistics_of import quantile
from tests.bench.watching import Watching, object_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.event_handlers.lost_events import LostEvents


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print: bytes and CPU of a round, and how long it keeps the loop at a time."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench lost", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000, help="that run")
    options = parser.parse_args(arguments)
    with object_server(options.nodes, options.pods, 0) as port:
        watching = Watching(Deciding().parts, port)
        watching.start()
        try:
            # As the program does once the first lists are in.
            gc.collect()
            gc.freeze()
            lost = watching.lost_events()
            cpu_s, received, begun = watching.cpu_s(), watching.received_bytes(), perf_counter()
            before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            watching.run(lost.round())
            cpu_s = watching.cpu_s() - cpu_s
            received = watching.received_bytes() - received
            grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
            print(
                f"{options.pods} pods, {options.nodes} nodes: {perf_counter() - begun:.1f} s, "
                f"{cpu_s:.2f} s of CPU, {received / 1e6:.0f} MB, peak +{grown_kib / 1024:.0f} MiB"
            )
            slices = sorted(watching.run(_slices(lost)))
            p50, p99 = (1000 * quantile(slices, share) for share in (0.5, 0.99))
            print(
                f"{len(slices)} slices of more than 50 us: p50 {p50:.2f} ms, p99 {p99:.2f} ms, "
                f"longest {1000 * slices[-1]:.2f} ms"
            )
        finally:
            watching.stop()
    return 0


async def _slices(lost: LostEvents) -> list[float]:
    """Return the CPU of each turn of the loop in which anything was done."""
    slices = []
    looking = asyncio.create_task(lost.round())
    while not looking.done():
        before = thread_time()
        await asyncio.sleep(0)
        used = thread_time() - before
        if used > 50e-6:
            slices.append(used)
    return slices
