"""Figures that are measured of Berth alone, as tables in Markdown."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tests.bench.tables import median, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.bench.records import TailPart, Variety
    from tests.bench.results import Results

PARTS: Final = ("alone", "flood", "reloads", "preemption", "gated", "relist")
"""The parts of the tail in the order in which they are measured."""


def large(results: Results) -> str:
    """Return what runs against the stand-in took, one line for each."""
    head = ["nodes", "running", "pools", "created", "CPU s to first bind", "RSS, MiB"]
    head += ["cycle mean, ms", "cycle p50, ms", "cycle p99, ms", "CPU s / 1 000 pods, all leaders"]
    head += ["pods/s", "all bound after SIGKILL, s", "handed on, s", "hops", "problems"]
    rows = [
        [
            f"{run.nodes:,}",
            f"{run.pods:,}",
            str(run.pools),
            f"{run.waiting:,}",
            _range(run.start_cpu_s, ".1f"),
            _range(run.rss_mib, ",.0f"),
            _range(run.cycle_mean_ms, ".2f"),
            _range(run.cycle_p50_ms, ".1f"),
            _range(run.cycle_p99_ms, ".1f"),
            f"{run.cpu_s_per_1000:.2f}",
            f"{run.pods_per_s:,.0f}",
            "" if run.after_kill_s is None else f"{run.after_kill_s:.0f}",
            "" if run.handed_on_s is None else f"{run.handed_on_s:.0f}",
            "" if run.hops is None else str(run.hops),
            str(run.problems),
            str(run.refused_bindings),
        ]
        for run in sorted(results.large, key=lambda run: run.key)
    ]
    return (
        "## Large clusters and pools\n\n"
        "Against a stand-in for an API server, which shares the cores with all leaders. A range is "
        "that of the leaders. Problems are nodes with more than they can run, and pods bound "
        "outside their pool; the stand-in refuses to bind a pod twice.\n\n"
        + table([*head, "refused bindings"], rows)
    )


def _range(values: Sequence[float], form: str) -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def by_part(parts: Iterable[TailPart]) -> dict[tuple[int, int, int, str, str], list[TailPart]]:
    """Return parts by nodes, rate, pods, disturbance and contender; disturbances in order."""
    order = {name: place for place, name in enumerate(PARTS)}
    groups: dict[tuple[int, int, int, str, str], list[TailPart]] = defaultdict(list)
    ordered = sorted(
        parts,
        key=lambda part: (part.nodes, part.rate, part.pods, order.get(part.part, len(order))),
    )
    for part in ordered:
        groups[part.nodes, part.rate, part.pods, part.part, part.contender].append(part)
    return dict(groups)


def tail(results: Results) -> str:
    """Return latencies, stalls of the event loop and the longest run of the garbage collector."""
    head = ["part", "nodes", "pods/s", "contender", "rounds", "p50, ms", "p99, ms"]
    head += ["longest own stall, ms", "own stalls > 20 ms", "longest GC run, CPU ms", "not bound"]
    rows = [
        [
            part,
            f"{nodes:,}",
            str(rate),
            contender,
            str(len(group)),
            median((each.p50_ms for each in group), ".1f"),
            median((each.p99_ms for each in group), ".1f"),
            f"{max(each.longest_own_stall_ms for each in group):.1f}",
            str(sum(each.own_stalls for each in group)),
            f"{max(each.longest_gc_ms for each in group):.1f}",
            str(sum(each.pods - each.bound for each in group)),
        ]
        for (nodes, rate, _, part, contender), group in by_part(results.tails).items()
    ]
    return (
        "## The tail\n\n"
        "Medians of the latencies; the longest stall and run, and the number of stalls, of all "
        "rounds.\n\n" + table(head, rows)
    )


def cycle_us(points: Iterable[Variety]) -> dict[int, dict[int, float]]:
    """Return the median CPU time of a cycle by nodes and kinds, both in order."""
    groups: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in sorted(points, key=lambda point: (point.nodes, point.kinds)):
        groups[point.nodes][point.kinds].append(point.cycle_us)
    return {
        nodes: {kinds: statistics.median(times_us) for kinds, times_us in group.items()}
        for nodes, group in groups.items()
    }


def variety(results: Results) -> str:
    """Return the CPU time of a cycle by nodes and kinds, and how it compares with one kind."""
    found = cycle_us(results.variety)
    columns = sorted({point.kinds for point in results.variety})
    more = [kinds for kinds in columns if kinds > 1]
    head = ["nodes", *(f"{kinds:,} {'kind' if kinds == 1 else 'kinds'}, us" for kinds in columns)]
    head += [f"{kinds:,} / 1" for kinds in more]
    rows = []
    for nodes, by_kinds in found.items():
        row = [f"{nodes:,}"]
        row += [f"{by_kinds[kinds]:.0f}" if kinds in by_kinds else "" for kinds in columns]
        row += [
            f"{by_kinds[kinds] / by_kinds[1]:.2f}" if {1, kinds} <= by_kinds.keys() else ""
            for kinds in more
        ]
        rows.append(row)
    return (
        "## Many kinds of requests\n\n"
        "Median CPU time of the deciding thread for one cycle, by how many different requests come "
        "in turn.\n\n" + table(head, rows)
    )
