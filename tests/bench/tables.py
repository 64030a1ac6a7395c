"""The figures as tables in Markdown, the conditions beside them."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from tests.bench.statistics_of import growth, ratio
from tests.bench.workloads import BY_NAME, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.bench.records import LatencyRound, Round, Start
    from tests.bench.results import Results

PEER = "kube-scheduler"

CONTENDERS = ("berth", PEER, "kube-scheduler-all", "bind-only", "bind-and-events")


def conditions(results: Results) -> str:
    """Return under which conditions all of it was measured."""
    lines = ["## Conditions", ""]
    different = list(dict.fromkeys(_condition(results, n) for n in results.sessions_used()))
    lines += [f"- {each}" for each in different]
    lines += [
        "- Contenders alternate, each round from the same saved state: the same nodes, the same "
        "running pods and the same pending pods. All pods exist before the process starts; pods/s "
        "from the first binding to the last, as the watch of the load generator reports them. All "
        "processes share the cores.",
        "- berth scores all nodes; kube-scheduler samples them as it does by default, "
        "kube-scheduler-all has `percentageOfNodesToScore: 100`; bind-only binds to one node "
        "after the other without scheduling, and sends no Events; bind-and-events sends those "
        "that berth sends.",
        "- Ratios are those of the medians; in parentheses the smallest and the largest ratio of "
        "two consecutive rounds.",
    ]
    if len(different) > 1:
        lines.append("- The figures come from runs under different conditions: see above.")
    return "\n".join(lines)


def _condition(results: Results, number: int) -> str:
    session = results.sessions[number]
    versions = ", ".join(f"{name} {version}" for name, version in session.versions.items())
    return (
        f"{session.cores} cores of {session.processor}, {session.memory_gib:.0f} GiB, Linux "
        f"{session.kernel}, {session.python}; {versions}; commit {session.commit or 'unknown'}; "
        f"qps {session.qps}, burst {session.burst}, Events {'on' if session.events else 'off'}"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, align: str = "---:") -> str:
    """Return a Markdown table; all columns but the first are flush right unless `align` differs."""
    lines = [head, ["---", *(align for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def grouped(rounds: Iterable[Round]) -> dict[tuple[str, int, int], dict[str, list[Round]]]:
    """Return rounds by workload, nodes and pods, and then by contender; workloads in order."""
    order = {workload.name: place for place, workload in enumerate(WORKLOADS)}
    groups: dict[tuple[str, int, int], dict[str, list[Round]]] = defaultdict(
        lambda: defaultdict(list)
    )
    ordered = sorted(rounds, key=lambda r: (r.nodes, order.get(r.workload, 99), r.pods, r.number))
    for each in ordered:
        groups[each.workload, each.nodes, each.pods][each.contender].append(each)
    return {key: dict(group) for key, group in groups.items()}


def rates(rounds: Iterable[Round]) -> dict[int, float]:
    """Return pods/s by number of the round."""
    return {each.number: each.pods_per_s for each in rounds}


def contenders_in(rounds: Iterable[Round | LatencyRound | Start]) -> list[str]:
    """Return the names of contenders, those that are known first."""
    found = {each.contender for each in rounds}
    known = [name for name in CONTENDERS if name in found]
    return known + sorted(found.difference(known))


def throughput(results: Results, *, ours: str) -> str:
    """Return pods/s of all contenders, and how ours compares with each of the others."""
    names = contenders_in(results.rounds)
    others = [name for name in names if name != ours] if ours in names else []
    head = ["workload", "nodes", "running", "pods", *names]
    head += [f"{ours} / {other}" for other in others] + ["goal"]
    rows = []
    partial = mixed = False
    for (workload, nodes, pods), group in grouped(results.rounds).items():
        everyone = [each for rounds in group.values() for each in rounds]
        some = everyone[0]
        unlike = len({_condition(results, each.session) for each in everyone}) > 1
        mixed |= unlike
        row = [
            f"{workload} †" if unlike else workload,
            f"{nodes:,}",
            f"{some.before:,}",
            f"{pods:,}",
        ]
        for name in names:
            rounds = group.get(name, [])
            unfinished = any(each.bound < each.pods for each in rounds)
            partial |= unfinished
            row.append(median(rates(rounds).values()) + ("*" if unfinished else ""))
        verdict = ""
        for other in others:
            compared = ratio(rates(group.get(ours, [])), rates(group.get(other, [])))
            row.append("" if compared is None else compared.floor())
            if other == PEER and compared is not None and workload in BY_NAME:
                verdict = _verdict(workload, nodes, compared.value)
        rows.append([*row, verdict])
    text = f"## Pods bound per second\n\n{table(head, rows)}"
    if partial:
        text += "\n\n\\* a round ended before all pods were bound; the rate covers the bound pods."
    if mixed:
        text += "\n\n† not all rounds were measured under the same conditions."
    return text


def _verdict(workload: str, nodes: int, value: float) -> str:
    goal = BY_NAME[workload].goal(nodes)
    return "" if goal is None else f"{goal:.1f} {'reached' if value >= goal else 'missed'}"


def median(values: Iterable[float], form: str = ".0f") -> str:
    """Return the median as text; nothing without values."""
    values = list(values)
    return format(statistics.median(values), form) if values else ""


def costs(results: Results) -> str:
    """Return start, CPU and memory."""
    head = ["workload", "nodes", "running", "pods", "contender", "start to first bind, s"]
    head += ["CPU s / 1 000 pods", "servers' CPU s", "load's CPU s", "peak RSS, MiB"]
    columns: tuple[tuple[Callable[[Round], float], str], ...] = (
        (lambda r: r.start_to_first_bind_s, ".2f"),
        (lambda r: r.cpu_s_per_1000_pods, ".2f"),
        (lambda r: r.server_cpu_s_per_1000_pods, ".2f"),
        (lambda r: r.load_cpu_s_per_1000_pods, ".2f"),
        (lambda r: r.peak_rss_mib, ".0f"),
    )
    rows = []
    for (workload, nodes, pods), group in grouped(results.rounds).items():
        for name in contenders_in(each for rounds in group.values() for each in rounds):
            rounds = group[name]
            row = [workload, f"{nodes:,}", f"{rounds[0].before:,}", f"{pods:,}", name]
            row += [median([read(each) for each in rounds], form) for read, form in columns]
            rows.append(row)
    return f"## Start, CPU and memory (medians)\n\n{table(head, rows)}"


def group_attempts(results: Results) -> str:
    """Return the attempts for groups of pods and what one takes."""
    head = ["workload", "nodes", "pods", "contender", "attempts", "mean attempt, ms"]
    rows = []
    for (workload, nodes, pods), group in grouped(results.rounds).items():
        for name, rounds in group.items():
            if any(each.group_attempts for each in rounds):
                row = [workload, f"{nodes:,}", f"{pods:,}", name]
                row.append(median([each.group_attempts for each in rounds]))
                row.append(median([each.group_attempt_ms for each in rounds], ".2f"))
                rows.append(row)
    return f"## Attempts for groups of pods (medians)\n\n{table(head, rows)}"


def latency(results: Results, *, ours: str) -> str:
    """Return the time from creation to binding."""
    groups: dict[tuple[int, int, int], dict[str, list[LatencyRound]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for each in sorted(results.latencies, key=lambda r: (r.nodes, r.rate, r.number)):
        groups[each.nodes, each.rate, each.pods][each.contender].append(each)
    head = ["pods/s", "nodes", "contender", "created p50, ms", "p50, ms", "p90, ms", "p99, ms"]
    head += ["max, ms", "not bound", "CPU", f"p99: {ours} / {PEER}"]
    rows = []
    for (nodes, rate, _), group in groups.items():
        for name in contenders_in(each for rounds in group.values() for each in rounds):
            rounds = group[name]
            row = [str(rate), f"{nodes:,}", name]
            row += [
                median([getattr(each, field) for each in rounds], ".1f")
                for field in ("created_p50_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms")
            ]
            row.append(str(sum(each.pods - each.bound for each in rounds)))
            row.append(median([each.cpu_share for each in rounds], ".0%"))
            compared = None
            if name == ours:
                compared = ratio(
                    {each.number: each.p99_ms for each in rounds},
                    {each.number: each.p99_ms for each in group.get(PEER, [])},
                )
            rows.append([*row, "" if compared is None else str(compared)])
    return f"## From creation to binding at a steady rate\n\n{table(head, rows)}"


def decisions(results: Results) -> str:
    """Return decisions/s and how the cost grows along each series."""
    parts = ["## Decisions without an API server"]
    order = sorted(results.decisions, key=lambda d: (d.series, d.kind, d.nodes, d.pods, d.terms))
    head = ["series", "pods ask for", "nodes", "running", "terms", "decisions/s", "p50, us"]
    rows = [
        [
            each.series,
            each.kind,
            f"{each.nodes:,}",
            f"{each.pods:,}",
            str(each.terms),
            f"{each.per_s:.0f}",
            f"{each.cycle_us:.0f}",
            f"{each.p99_us:.0f}",
        ]
        for each in order
    ]
    parts.append(table([*head, "p99, us"], rows))
    fits = []
    for series, kind in dict.fromkeys((each.series, each.kind) for each in order):
        points = [
            (float(getattr(each, series)), each.cycle_us)
            for each in order
            if (each.series, each.kind) == (series, kind)
        ]
        exponents = (growth(points), growth(sorted(points)[-2:]))
        if exponents[0] is not None:
            fits.append([series, kind, *("" if k is None else f"{k:.2f}" for k in exponents)])
    if fits:
        parts.append(
            "The cost of a decision fits a power of the size: 0 does not grow, 1 grows with it.\n\n"
            + table(["grows with", "pods ask for", "exponent", "of the two largest"], fits)
        )
    return "\n\n".join(parts)


def device_decisions(results: Results) -> str:
    """Return the time of decisions about pods with claims, and what the first one costs."""
    head = ["series", "pods ask for", "nodes", "devices", "allocated", "claims", "unprepared, ms"]
    head += ["read ahead, ms", "longest piece, ms", "first after that, ms", "p50, us", "p99, us"]
    rows = [
        [
            each.series,
            each.kind,
            f"{each.nodes:,}",
            f"{each.devices:,}",
            f"{each.allocated:,}",
            str(each.claims),
            f"{each.cold_ms:.1f}",
            f"{each.ahead_ms:.1f}",
            f"{each.longest_ahead_ms:.1f}",
            f"{each.first_ms:.1f}",
            f"{each.cycle_us:.0f}",
            f"{each.p99_us:.0f}",
        ]
        for each in sorted(results.device_decisions, key=lambda each: each.key)
    ]
    return "## Decisions about pods with claims, without an API server\n\n" + table(head, rows)


def cycles(results: Results) -> str:
    """Return the time of a cycle beside watch events."""
    head = ["pods ask for", "nodes", "running", "events/s sent", "taken in", "wall p50, us"]
    head += ["wall p99, us", "thread p50, us", "thread p99, us", "I/O thread's CPU"]
    head += ["waits: for a core", "for the other thread"]
    rows = [
        [
            each.kind,
            f"{each.nodes:,}",
            f"{each.pods:,}",
            str(each.rate),
            f"{each.taken:.0f}",
            f"{each.wall_p50_us:.0f}",
            f"{each.wall_p99_us:.0f}",
            f"{each.thread_p50_us:.0f}",
            f"{each.thread_p99_us:.0f}",
            f"{each.loop_share:.0%}",
            f"{each.core_wait_share:.1%}",
            f"{each.blocked_share:.1%}",
        ]
        for each in sorted(results.cycles, key=lambda c: (c.kind, c.nodes, c.rate))
    ]
    return (
        "## Cycles beside watch events\n\n"
        + table(head, rows)
        + "\n\nThe difference between wall clock and thread clock is waiting, shown as shares of "
        "all the time: ready to run without a core, or blocked until the I/O thread releases the "
        "interpreter or the cache's lock."
    )


def memory(results: Results) -> str:
    """Return what bound pods take."""
    rows = []
    for each in sorted(results.memory, key=lambda m: msgspec.structs.astuple(m)[:2]):
        taken_mib = each.rss_mib - each.base_rss_mib
        rows.append(
            [
                f"{each.pods:,}",
                f"{each.nodes:,}",
                f"{each.base_rss_mib:.0f}",
                f"{each.rss_mib:.0f}",
                f"{each.peak_rss_mib:.0f}",
                f"{taken_mib * 1024 / max(each.pods, 1):.1f}",
                f"{each.seconds:.1f}",
            ]
        )
    head = ["bound pods", "nodes", "RSS before, MiB", "RSS, MiB", "peak, MiB", "KiB / pod"]
    return f"## Memory of bound pods\n\n{table([*head, 'taken in, s'], rows)}"
