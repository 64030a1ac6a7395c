"""The figures as plots."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from tests.bench.statistics_of import ratio
from tests.bench.svg import Bar, BarPlot, LinePlot
from tests.bench.tables import CONTENDERS, PEER, contenders_in, grouped, rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.records import Round
    from tests.bench.results import Results


def plots(results: Results, *, ours: str) -> dict[str, str]:
    """Return the SVG of each plot that has figures, by name."""
    drawn: dict[str, str] = {}
    for nodes in sorted({each.nodes for each in results.rounds}):
        here = [each for each in results.rounds if each.nodes == nodes]
        drawn[f"throughput-{nodes}"] = _throughput(here, nodes)
        progress = _progress(here, nodes)
        if progress is not None:
            drawn[f"progress-{nodes}"] = progress
    ratios = _ratios(results, ours)
    if ratios is not None:
        drawn["ratios"] = ratios
    for rate in sorted({each.rate for each in results.latencies}):
        drawn[f"latency-{rate}"] = _latency(results, rate)
    for series in sorted({each.series for each in results.decisions}):
        drawn[f"decisions-{series}"] = _decisions(results, series)
    for series in sorted({each.series for each in results.device_decisions}):
        drawn[f"devices-{series}"] = _device_decisions(results, series)
    return drawn


def _bar(values: Sequence[float]) -> Bar:
    if not values:
        return Bar(None)
    return Bar(statistics.median(values), min(values), max(values))


def _throughput(rounds: list[Round], nodes: int) -> str:
    names = contenders_in(rounds)
    groups = [
        (workload, [_bar(list(rates(group.get(name, [])).values())) for name in names])
        for (workload, _, _), group in grouped(rounds).items()
    ]
    title = f"Pods bound per second, {nodes:,} nodes"
    return BarPlot(title, "pods/s: median, smallest and largest", names, groups).render()


def _progress(rounds: list[Round], nodes: int) -> str | None:
    """Draw how one workload went on, the middle round of each contender."""
    by_workload = {key[0]: group for key, group in grouped(rounds).items()}
    name = "Basic" if "Basic" in by_workload else next(iter(by_workload))
    lines = []
    for contender in contenders_in(rounds):
        played = sorted(by_workload[name].get(contender, []), key=lambda each: each.pods_per_s)
        if played and len(curve := played[len(played) // 2].curve_s) > 1:
            middle = played[len(played) // 2]
            share = middle.bound / (len(curve) - 1)
            points = [(at, place * share) for place, at in enumerate(curve)]
            lines.append((contender, points))
    if not lines:
        return None
    title = f"{name}, {nodes:,} nodes: pods bound since the first one"
    return LinePlot(title, "seconds", "pods", lines).render()


def _ratios(results: Results, ours: str) -> str | None:
    sizes = sorted({each.nodes for each in results.rounds})
    bars: dict[str, dict[int, Bar]] = {}
    for (workload, nodes, _), group in grouped(results.rounds).items():
        compared = ratio(rates(group.get(ours, [])), rates(group.get(PEER, [])))
        if compared is not None:
            bar = Bar(compared.value, compared.low, compared.high)
            bars.setdefault(workload, {})[nodes] = bar
    if not bars:
        return None
    series = [f"{nodes:,} nodes" for nodes in sizes]
    groups = [
        (workload, [by_size.get(nodes, Bar(None)) for nodes in sizes])
        for workload, by_size in bars.items()
    ]
    title = f"Pods per second: {ours} over {PEER}"
    return BarPlot(title, "ratio of medians; the line is 1", series, groups, mark=1.0).render()


def _latency(results: Results, rate: int) -> str:
    here = [each for each in results.latencies if each.rate == rate]
    lines = []
    for name in contenders_in(here):
        played = sorted(
            (each for each in here if each.contender == name), key=lambda each: each.p99_ms
        )
        middle = played[len(played) // 2]
        # Nines on the axis: 1 is 90 %, 2 is 99 %.
        points = [
            (100 / (100 - percent), at_ms)
            for percent, at_ms in enumerate(middle.quantiles_ms)
            if percent < 100
        ]
        lines.append((name, points))
    title = f"From creation to binding at {rate} pods/s"
    x_unit = "one pod in so many takes at least so long"
    return LinePlot(title, x_unit, "ms", lines, log_x=True, log_y=True).render()


def _decisions(results: Results, series: str) -> str:
    here = [each for each in results.decisions if each.series == series]
    lines = [
        (
            kind,
            sorted(
                (float(getattr(each, series)), each.cycle_us) for each in here if each.kind == kind
            ),
        )
        for kind in dict.fromkeys(each.kind for each in here)
    ]
    title = f"Time of a decision against {series}"
    return LinePlot(title, series, "us", lines, log_x=True, log_y=True, dots=True).render()


def _device_decisions(results: Results, series: str) -> str:
    here = [each for each in results.device_decisions if each.series == series]
    lines = [
        (
            kind,
            sorted(
                # Nothing has no place on a logarithmic axis.
                (float(max(getattr(each, series), 1)), each.cycle_us)
                for each in here
                if each.kind == kind
            ),
        )
        for kind in dict.fromkeys(each.kind for each in here)
    ]
    title = f"Time of a decision about a pod with claims against {series}"
    return LinePlot(title, series, "us", lines, log_x=True, log_y=True, dots=True).render()


__all__ = ["CONTENDERS", "plots"]
