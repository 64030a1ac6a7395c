"""What a start takes, as tables in Markdown."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tests.bench.records import FIRST_BIND, START_PHASES
from tests.bench.statistics_of import ratio
from tests.bench.tables import PEER, contenders_in, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.bench.records import Start
    from tests.bench.results import Results


class Cluster(NamedTuple):
    """What was arranged, and how many bindings ended a start."""

    nodes: int
    running: int
    pods: int
    bound: int


def by_cluster(starts: Iterable[Start]) -> dict[Cluster, dict[str, list[Start]]]:
    """Return starts by cluster, the smallest first, and then by contender."""
    groups: dict[Cluster, dict[str, list[Start]]] = defaultdict(lambda: defaultdict(list))
    for each in sorted(starts, key=lambda each: each.key):
        cluster = Cluster(each.nodes, each.running, each.pods, each.bound)
        groups[cluster][each.contender].append(each)
    return {cluster: dict(group) for cluster, group in groups.items()}


def median_start(starts: Sequence[Start]) -> Start:
    """Return the medians of starts of one contender; at least one start is needed."""
    return msgspec.structs.replace(
        starts[0],
        wall_s=_medians([each.wall_s for each in starts]),
        cpu_s=_medians([each.cpu_s for each in starts]),
        server_cpu_s=statistics.median(each.server_cpu_s for each in starts),
        rss_mib=statistics.median(each.rss_mib for each in starts),
    )


def _medians(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    found = {
        phase: [row[phase] for row in rows if phase in row]
        for phase in START_PHASES
        if any(phase in row for row in rows)
    }
    return {phase: statistics.median(values) for phase, values in found.items()}


def first_binds(starts: Iterable[Start]) -> dict[int, float]:
    """Return seconds to the first binding by number of the round."""
    return {each.number: each.wall_s[FIRST_BIND] for each in starts}


def pod_kib(starts: Iterable[Start]) -> dict[Cluster, dict[str, float]]:
    """Return the memory of one running pod in KiB, by cluster and contender.

    It is the difference of the medians of the resident memory with the most and with the fewest
    running pods, divided by the difference of these pods. The cluster is the one with the most; a
    contender that was started with one number of running pods only is left out.
    """
    sizes: dict[tuple[int, int, int, str], dict[int, Start]] = defaultdict(dict)
    for cluster, group in by_cluster(starts).items():
        for name, its in group.items():
            sizes[cluster.nodes, cluster.pods, cluster.bound, name][cluster.running] = median_start(
                its
            )
    found: dict[Cluster, dict[str, float]] = defaultdict(dict)
    for (nodes, pods, bound, name), by_running in sizes.items():
        few, many = min(by_running), max(by_running)
        if few < many:
            taken_mib = by_running[many].rss_mib - by_running[few].rss_mib
            found[Cluster(nodes, many, pods, bound)][name] = taken_mib * 1024 / (many - few)
    return dict(found)


def starts(results: Results, *, ours: str) -> str:
    """Return the medians of starts, and the memory of one running pod."""
    groups = by_cluster(results.starts)
    phases = [
        phase for phase in START_PHASES if any(phase in each.wall_s for each in results.starts)
    ]
    head = ["running", "nodes", "waiting", "until bound", "contender", "rounds"]
    head += [f"{phase}, s" for phase in phases]
    head += [f"CPU s to {FIRST_BIND}", "servers' CPU s", "RSS, MiB"]
    head.append(f"{FIRST_BIND}: {ours} / {PEER}")
    rows = []
    for cluster, group in groups.items():
        for name in contenders_in(each for its in group.values() for each in its):
            median = median_start(group[name])
            row = [f"{cluster.running:,}", f"{cluster.nodes:,}", f"{cluster.pods:,}"]
            row += [f"{cluster.bound:,}", name, str(len(group[name]))]
            row += [
                f"{median.wall_s[phase]:.2f}" if phase in median.wall_s else "" for phase in phases
            ]
            row += [f"{median.cpu_s[FIRST_BIND]:.2f}", f"{median.server_cpu_s:.2f}"]
            row.append(f"{median.rss_mib:.0f}")
            compared = None
            if name == ours:
                compared = ratio(first_binds(group[name]), first_binds(group.get(PEER, [])))
            rows.append([*row, "" if compared is None else str(compared)])
    text = (
        "## From the start of a process to its first binding\n\n"
        "Medians of wall time since the start of the process, by phase. The servers' CPU and the "
        "memory are those when the last binding that was waited for was made.\n\n"
        + table(head, rows)
    )
    taken = [
        [name, f"{cluster.nodes:,}", f"{cluster.running:,}", f"{kib:.1f}"]
        for cluster, by_name in pod_kib(results.starts).items()
        for name, kib in by_name.items()
    ]
    if taken:
        text += (
            "\n\nMemory of one running pod: the difference of the medians with the most and with "
            "the fewest running pods, for each pod of the difference.\n\n"
            + table(["contender", "nodes", "running at most", "KiB / pod"], taken)
        )
    return text
