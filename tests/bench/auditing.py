"""``python -m tests.bench audit``: what comparing the cache with the watches costs a cycle.

One thread holds the watches and compares again and again without a pause between comparisons; the
other decides for one pod after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import threading
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from scheduler.debug.cache_audit import CacheAudit
from tests.bench import large_clusters
from tests.bench.deciding import Deciding
from tests.bench.statistics_of import quantile
from tests.bench.watching import Watching, object_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cache.comparer import Comparison

_NO_LIMIT = 1 << 62
_KIND = "nothing"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print: a comparison, then cycles without and with comparisons, in turn."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench audit", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20_000, help="that run")
    parser.add_argument("--pace", type=float, default=200.0, help="pods a second to decide for")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each line")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    deciding = Deciding()
    with object_server(options.nodes, options.pods, 0) as port:
        watching = Watching(deciding.parts, port)
        watching.start()
        try:
            print(_one_comparison(watching, deciding), flush=True)
            deciding.begin(large_clusters.kinds()[_KIND])
            for _ in range(options.rounds):
                for label, comparing in (("alone", False), ("comparing", True)):
                    with _comparisons(watching, deciding) if comparing else _nothing():
                        _decide(deciding, options.pace, options.seconds)
                    print(_line(label, deciding), flush=True)
        finally:
            watching.stop()
    return 0


def _audit(watching: Watching, deciding: Deciding, *, at_rest: bool) -> CacheAudit:
    cache = deciding.parts.cache
    return CacheAudit(cache, watching.nodes, watching.pods, lambda: at_rest, lambda _: None)


def _one_comparison(watching: Watching, deciding: Deciding) -> str:
    audit = _audit(watching, deciding, at_rest=True)
    cpu_s, begun = watching.cpu_s(), perf_counter()
    comparison: Comparison = watching.run(audit.round())
    wall_s, cpu_s = perf_counter() - begun, watching.cpu_s() - cpu_s
    return (
        f"a comparison at rest: {comparison.compared} nodes in {wall_s:.1f} s with "
        f"{cpu_s * 1000:.0f} ms of CPU, {len(comparison.mismatches)} mismatches"
    )


@contextlib.contextmanager
def _comparisons(watching: Watching, deciding: Deciding) -> Iterator[None]:
    """Compare without end, and without waiting for rest, as long as the block lasts."""
    audit = _audit(watching, deciding, at_rest=True)
    over = threading.Event()

    async def compare() -> None:
        while not over.is_set():
            await audit.round()

    task = asyncio.run_coroutine_threadsafe(compare(), watching.loop)
    try:
        yield
    finally:
        over.set()
        task.result()


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield


def _decide(deciding: Deciding, pace: float, seconds: float) -> None:
    deciding.wall_us.clear()
    deciding.thread_us.clear()
    pod = large_clusters.kinds()[_KIND]
    ends = perf_counter() + seconds
    while perf_counter() < ends:
        deciding.decide(pod, 1, seconds)
        sleep(1 / pace)


def _line(label: str, deciding: Deciding) -> str:
    wall_us = sorted(deciding.wall_us)
    return (
        f"{label:<10}{len(wall_us):6} cycles  p50 {quantile(wall_us, 0.5):6.0f}"
        f"  p99 {quantile(wall_us, 0.99):6.0f}  p99.9 {quantile(wall_us, 0.999):6.0f}"
        f"  max {wall_us[-1]:6.0f} us"
    )


if __name__ == "__main__":
    sys.exit(main())
