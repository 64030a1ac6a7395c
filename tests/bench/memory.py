"""``python -m tests.bench memory``: what a process takes that holds so many bound pods.

They come through the real transport, decoder, informers and handlers into the cache and a
snapshot; who sends them is another process.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tests.bench import large_clusters
from tests.bench.deciding import Deciding
from tests.bench.process_usage import ProcessUsage
from tests.bench.records import Memory
from tests.bench.results import Results, put
from tests.bench.runs import DEFAULT_FILE
from tests.bench.watching import Watching, object_server

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one size: memory does not go back, so each size wants a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench memory", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    options = parser.parse_args(arguments)
    results = Results.load(options.json)
    session = results.begin(datetime.now(UTC).isoformat(timespec="seconds"))
    measured = measure(options.nodes, options.pods, session)
    put(results.memory, measured)
    results.save(options.json)
    print(
        f"{measured.pods} pods on {measured.nodes} nodes: {measured.rss_mib:.0f} MiB, at most "
        f"{measured.peak_rss_mib:.0f}, {measured.base_rss_mib:.0f} before; "
        f"taken in {measured.seconds:.1f} s"
    )
    return 0


def measure(nodes: int, pods: int, session: int) -> Memory:
    """Take all in, decide once, and look."""
    deciding = Deciding()
    base = ProcessUsage.of(os.getpid())
    with object_server(nodes, pods, 0) as port:
        watching = Watching(deciding.parts, port)
        begun_s = perf_counter()
        watching.start()
        seconds = perf_counter() - begun_s
        try:
            # The snapshot and its columns are part of it, and what affinity and spread keep.
            for kind in large_clusters.kinds().values():
                deciding.begin(kind, 1)
            gc.collect()
            usage = ProcessUsage.of(os.getpid())
        finally:
            watching.stop()
    held = deciding.parts.cache.counts().pods
    if held < pods:
        raise RuntimeError(f"only {held} of {pods} pods have arrived")
    return Memory(
        nodes=nodes,
        pods=pods,
        session=session,
        base_rss_mib=base.rss_bytes / 2**20,
        rss_mib=usage.rss_bytes / 2**20,
        peak_rss_mib=usage.peak_rss_bytes / 2**20,
        seconds=seconds,
    )


if __name__ == "__main__":
    sys.exit(main())
