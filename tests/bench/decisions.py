"""``python -m tests.bench decisions``: decisions/s without an API server, and how cost grows.

Three series, each with the other two sizes held still: nodes, pods that run, and distinct
affinity terms of pods that run.
"""

from __future__ import annotations

import argparse
import gc
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import large_clusters
from tests.bench.deciding import Deciding
from tests.bench.records import Decisions
from tests.bench.results import Results, put
from tests.bench.runs import DEFAULT_FILE
from tests.bench.statistics_of import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Point:
    """A cluster of a series."""

    series: str
    nodes: int
    pods: int
    terms: int


SERIES = (
    *(Point("nodes", nodes, 20_000, 10) for nodes in (1_000, 5_000, 15_000, 50_000, 100_000)),
    *(Point("pods", 5_000, pods, 10) for pods in (0, 5_000, 20_000, 100_000, 250_000, 500_000)),
    *(Point("terms", 5_000, 20_000, terms) for terms in (1, 10, 100, 1_000)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a line for each point."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench decisions", description=__doc__)
    parser.add_argument("--series", default="nodes,pods,terms", help="separated by commas")
    parser.add_argument("--kinds", default=",".join(large_clusters.kinds()))
    parser.add_argument("--decisions", type=int, default=1000, help="at most, for each point")
    parser.add_argument("--seconds", type=float, default=4.0, help="at most, for each point")
    parser.add_argument("--scale", type=float, default=1.0, help="of nodes and pods")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    options = parser.parse_args(arguments)
    kinds = large_clusters.kinds()
    names = options.kinds.split(",")
    series = options.series.split(",")
    unknown = set(names).difference(kinds) | set(series).difference(p.series for p in SERIES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    results = Results.load(options.json)
    session = results.begin(datetime.now(UTC).isoformat(timespec="seconds"))
    for point in SERIES:
        if point.series not in series:
            continue
        scaled = Point(
            point.series,
            max(round(point.nodes * options.scale), 1),
            round(point.pods * options.scale),
            point.terms,
        )
        for name in names:
            measured = measure(scaled, name, options.decisions, options.seconds, session)
            put(results.decisions, measured)
            results.save(options.json)
            print(line(measured), flush=True)
    return 0


def measure(point: Point, kind: str, decisions: int, seconds: float, session: int) -> Decisions:
    """Measure one kind of pod in one cluster, built anew."""
    gc.unfreeze()
    deciding = Deciding()
    for node in large_clusters.nodes(point.nodes):
        deciding.parts.cache.add_node(node)
    for info in large_clusters.running(point.pods, point.nodes, point.terms):
        deciding.parts.cache.add_pod(info)
    pod = large_clusters.kinds()[kind]
    deciding.begin(pod)
    deciding.decide(pod, decisions, seconds)
    times_us = sorted(deciding.wall_us)
    return Decisions(
        series=point.series,
        kind=kind,
        nodes=point.nodes,
        pods=point.pods,
        terms=point.terms,
        session=session,
        decisions=len(times_us),
        per_s=len(times_us) / (sum(times_us) / 1e6),
        cycle_us=quantile(times_us, 0.5),
        p99_us=quantile(times_us, 0.99),
    )


def line(measured: Decisions) -> str:
    """Return one point for people."""
    return (
        f"{measured.series:<6}{measured.nodes:7} nodes {measured.pods:7} pods "
        f"{measured.terms:5} terms  {measured.kind:<24}{measured.per_s:7.0f}/s"
        f"  p50 {measured.cycle_us:7.0f} us  p99 {measured.p99_us:7.0f} us"
    )


if __name__ == "__main__":
    sys.exit(main())
