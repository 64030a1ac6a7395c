"""``python -m tests.bench cycles``: the time of a cycle beside a steady stream of watch events.

One thread takes events in through the real transport, informers and handlers, sent by another
process; the other decides for one pod after the other without a pause.
"""

from __future__ import annotations

import argparse
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from tests.bench import large_clusters
from tests.bench.deciding import Deciding
from tests.bench.records import CyclesUnderLoad
from tests.bench.results import Results, put
from tests.bench.runs import DEFAULT_FILE
from tests.bench.statistics_of import quantile
from tests.bench.watching import Watching, object_server

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_LIMIT = 1 << 62


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a line for each rate and kind of pod."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench cycles", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20_000, help="that run")
    parser.add_argument("--rates", default="0,2000", help="events a second, separated by commas")
    parser.add_argument("--kinds", default="nothing,zone spread")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each line")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    options = parser.parse_args(arguments)
    kinds = options.kinds.split(",")
    unknown = set(kinds).difference(large_clusters.kinds())
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    results = Results.load(options.json)
    session = results.begin(datetime.now(UTC).isoformat(timespec="seconds"))
    for rate in map(int, options.rates.split(",")):
        for kind in kinds:
            measured = measure(kind, options.nodes, options.pods, rate, options.seconds, session)
            put(results.cycles, measured)
            results.save(options.json)
            print(line(measured), flush=True)
    return 0


def measure(
    kind: str, nodes: int, pods: int, rate: int, seconds: float, session: int
) -> CyclesUnderLoad:
    """Measure one kind of pod beside so many events a second."""
    deciding = Deciding()
    pod = large_clusters.kinds()[kind]
    with object_server(nodes, pods, rate) as port:
        watching = Watching(deciding.parts, port)
        watching.start()
        try:
            deciding.begin(pod)
            taken, loop_s = watching.taken(), watching.cpu_s()
            cpu_s, begun_s, queued_s = thread_time(), perf_counter(), run_queue_s()
            deciding.decide(pod, _NO_LIMIT, seconds)
            wall_s = perf_counter() - begun_s
            cpu_s, queued_s = thread_time() - cpu_s, run_queue_s() - queued_s
            taken, loop_s = watching.taken() - taken, watching.cpu_s() - loop_s
        finally:
            watching.stop()
    wall_us, thread_us = sorted(deciding.wall_us), sorted(deciding.thread_us)
    return CyclesUnderLoad(
        kind=kind,
        nodes=nodes,
        pods=pods,
        rate=rate,
        session=session,
        cycles=len(wall_us),
        taken=taken / wall_s,
        wall_p50_us=quantile(wall_us, 0.5),
        wall_p99_us=quantile(wall_us, 0.99),
        thread_p50_us=quantile(thread_us, 0.5),
        thread_p99_us=quantile(thread_us, 0.99),
        loop_share=loop_s / wall_s,
        core_wait_share=queued_s / wall_s,
        blocked_share=max(wall_s - cpu_s - queued_s, 0.0) / wall_s,
    )


def run_queue_s() -> float:
    """Return how long this thread was ready to run and had no core; 0 where nobody counts it."""
    path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    try:
        return int(path.read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def line(measured: CyclesUnderLoad) -> str:
    """Return one measurement for people."""
    return (
        f"{measured.rate:5} events/s ({measured.taken:5.0f} taken in)  {measured.kind:<12}"
        f"wall p50 {measured.wall_p50_us:6.0f} p99 {measured.wall_p99_us:6.0f} us"
        f"  thread p50 {measured.thread_p50_us:6.0f} p99 {measured.thread_p99_us:6.0f} us"
        f"  no core {measured.core_wait_share:5.1%}  blocked {measured.blocked_share:5.1%}"
        f"  I/O {measured.loop_share:4.0%}"
    )


if __name__ == "__main__":
    sys.exit(main())
