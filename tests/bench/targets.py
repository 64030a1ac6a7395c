"""The targets of the project, and whether the figures reach them.

A ratio is that of medians. Values are rounded towards the side that misses the target, so that a
value that misses it is never printed as one that reaches it.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tests.bench.berth_tables import by_part, cycle_us
from tests.bench.start_tables import by_cluster, first_binds, pod_kib
from tests.bench.statistics_of import ratio, rounded
from tests.bench.tables import PEER, grouped, rates, table
from tests.bench.workloads import BY_NAME, LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.bench.records import LatencyRound, Round
    from tests.bench.results import Results
    from tests.bench.workloads import Workload

BASIC: Final = BY_NAME["Basic"]

OF_OTHER_PODS: Final = 6.0
"""The goal of workloads with affinity and spreading with 5 000 nodes."""


class Row(NamedTuple):
    """A target, what was measured, and whether it is reached."""

    target: str
    measured: str
    verdict: str


class Limit(NamedTuple):
    """The value that a figure has to reach.

    Attributes
    ----------
    value
        With two decimals at most.
    at_most
        Whether smaller figures are better.
    """

    value: float
    at_most: bool

    def is_reached(self, figure: float) -> bool:
        """Return whether the figure is on the right side."""
        return figure <= self.value if self.at_most else figure >= self.value

    def text(self, figure: float) -> str:
        """Return the figure with two decimals, rounded towards the side that misses."""
        return rounded(figure, up=self.at_most)

    def verdict(self, figure: float) -> str:
        """Return ``reached`` or ``missed``."""
        return "reached" if self.is_reached(figure) else "missed"

    def row(self, target: str, figures: Mapping[str, float]) -> Row:
        """Return the row of several figures by name: their range, and those that miss."""
        low, high = self.text(min(figures.values())), self.text(max(figures.values()))
        missed = {name: each for name, each in figures.items() if not self.is_reached(each)}
        return Row(
            target,
            low if len(figures) == 1 else f"{low} to {high}",
            _counted(
                len(figures), [f"{name} ({self.text(each)})" for name, each in missed.items()]
            ),
        )

    def beside(
        self, target: str, mine: Mapping[int, float], theirs: Mapping[int, float], form: str
    ) -> Iterator[Row]:
        """Yield the row of the ratio of two contenders' figures by round, if both have some."""
        compared = ratio(mine, theirs)
        if compared is not None:
            medians = (form.format(statistics.median(each.values())) for each in (mine, theirs))
            measured = f"{' against '.join(medians)} ({self.text(compared.value)})"
            yield Row(target, measured, self.verdict(compared.value))


def at_least(value: float) -> Limit:
    """Return a limit that larger figures reach."""
    return Limit(value, at_most=False)


def at_most(value: float) -> Limit:
    """Return a limit that smaller figures reach."""
    return Limit(value, at_most=True)


def _counted(count: int, missed: list[str]) -> str:
    text = f"{count - len(missed)} of {count} reached"
    return f"{text}; missed: {', '.join(missed)}" if missed else text


class Target(Protocol):
    """Something that the project aims at."""

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield a row for each size that has figures."""
        ...


class Throughput:
    """Pods/s beside kube-scheduler; each workload has its goals.

    Where workloads aim at more than others with as many nodes, those that do have a row of their
    own, and also count in the other row.
    """

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield a row for each number of nodes and each goal there."""
        measured: dict[int, list[tuple[Workload, str, float]]] = defaultdict(list)
        for (name, nodes, pods), group in grouped(results.rounds).items():
            workload = BY_NAME.get(name)
            compared = ratio(rates(group.get(ours, [])), rates(group.get(PEER, [])))
            if workload is None or workload.goal(nodes) is None or compared is None:
                continue
            label = name if pods == workload.counts(nodes)[1] else f"{name} of {pods:,} pods"
            measured[nodes].append((workload, label, compared.value))
        for nodes, found in measured.items():
            for goal in sorted({workload.goal(nodes) or 0.0 for workload, _, _ in found}):
                those = [each for each in found if (each[0].goal(nodes) or 0.0) >= goal]
                kind = _kind(goal, [workload for workload, _, _ in those])
                yield at_least(goal).row(
                    f"{goal:.1f} times the pods/s of {PEER}, {nodes:,} nodes{kind}",
                    {label: value for _, label, value in those},
                )


def _kind(goal: float, workloads: Sequence[Workload]) -> str:
    """Return what workloads have in common, if that is why they aim at more."""
    if all(each.ground.devices for each in workloads):
        return ", pods with claims"
    return ", affinity and spreading" if goal == OF_OTHER_PODS else ""


def _basic(results: Results, nodes: int) -> dict[str, list[Round]]:
    """Return the rounds of ``Basic`` with its own number of pods, by contender."""
    return grouped(results.rounds).get((BASIC.name, nodes, BASIC.counts(nodes)[1]), {})


@dataclass(frozen=True, slots=True)
class ShareOfBinding:
    """The rate of ``Basic`` beside that of a contender which only binds."""

    contender: str
    limit: Limit
    nodes: int = LARGEST

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield one row."""
        group = _basic(results, self.nodes)
        yield from self.limit.beside(
            f"{self.limit.value:.2f} times the pods/s of {self.contender}, Basic, "
            f"{self.nodes:,} nodes",
            rates(group.get(ours, [])),
            rates(group.get(self.contender, [])),
            "{:.0f}",
        )


@dataclass(frozen=True, slots=True)
class OwnCpu:
    """CPU seconds for 1 000 pods of ``Basic``, from the start of the process."""

    limit: Limit
    nodes: int = LARGEST

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield one row."""
        rounds = _basic(results, self.nodes).get(ours)
        if rounds:
            used_s = statistics.median(each.cpu_s_per_1000_pods for each in rounds)
            yield Row(
                f"at most {self.limit.value:.2f} s of CPU for 1 000 pods with the start, Basic, "
                f"{self.nodes:,} nodes",
                f"{self.limit.text(used_s)} s",
                self.limit.verdict(used_s),
            )


@dataclass(frozen=True, slots=True)
class ServersCpu:
    """CPU of the servers for ``Basic``, beside that with kube-scheduler."""

    limit: Limit
    sizes: tuple[int, ...] = (500, 1000, LARGEST)

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield a row for each number of nodes."""
        for nodes in self.sizes:
            group = _basic(results, nodes)
            mine, theirs = (
                {each.number: each.server_cpu_s_per_1000_pods for each in group.get(name, [])}
                for name in (ours, PEER)
            )
            yield from self.limit.beside(
                f"the servers' CPU at most {self.limit.value:.2f} times that with {PEER}, "
                f"Basic, {nodes:,} nodes",
                mine,
                theirs,
                "{:.2f} s",
            )


@dataclass(frozen=True, slots=True)
class Latency:
    """A percentile of the time from creation to binding beside kube-scheduler's.

    Attributes
    ----------
    percentile
        ``p50`` or ``p99``.
    times
        So many times longer kube-scheduler's has to be. A round in which not all pods were bound
        misses, because a percentile covers the bound pods only.
    """

    percentile: str
    rate: int
    times: int

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield a row for each number of nodes and pods."""
        groups: dict[tuple[int, int], dict[str, list[LatencyRound]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for each in results.latencies:
            if each.rate == self.rate:
                groups[each.nodes, each.pods][each.contender].append(each)
        limit = at_least(self.times)
        for (nodes, _), group in sorted(groups.items()):
            mine_ms, theirs_ms = (
                {each.number: getattr(each, f"{self.percentile}_ms") for each in group[name]}
                for name in (ours, PEER)
            )
            compared = ratio(theirs_ms, mine_ms)
            if compared is None:
                continue
            unbound = sum(each.pods - each.bound for each in group[ours])
            yield Row(
                f"{self.percentile} from creation to binding at most 1/{self.times} of {PEER}'s, "
                f"{self.rate} pods/s, {nodes:,} nodes",
                f"{statistics.median(mine_ms.values()):.1f} ms against "
                f"{statistics.median(theirs_ms.values()):.1f} ms (1/{limit.text(compared.value)})"
                + (f", {unbound} pods not bound" if unbound else ""),
                "missed" if unbound else limit.verdict(compared.value),
            )


@dataclass(frozen=True, slots=True)
class FirstBinding:
    """The first binding after the start of the process, beside kube-scheduler's."""

    limit: Limit

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield a row for each cluster."""
        for cluster, group in by_cluster(results.starts).items():
            mine_s, theirs_s = (first_binds(group.get(name, [])) for name in (ours, PEER))
            yield from self.limit.beside(
                f"first binding not later than {PEER}'s, {cluster.nodes:,} nodes, "
                f"{cluster.running:,} running pods, {cluster.pods:,} that wait",
                mine_s,
                theirs_s,
                "{:.2f} s",
            )


@dataclass(frozen=True, slots=True)
class PodMemory:
    """Resident memory of one running pod, beside kube-scheduler's."""

    limit: Limit

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield a row for each cluster."""
        for cluster, by_name in pod_kib(results.starts).items():
            # A difference that is not positive is noise of toy sizes.
            if ours in by_name and by_name.get(PEER, 0.0) > 0:
                compared = by_name[ours] / by_name[PEER]
                yield Row(
                    f"no more memory for a running pod than {PEER}, {cluster.nodes:,} nodes, up to "
                    f"{cluster.running:,} running pods",
                    f"{by_name[ours]:.1f} KiB against {by_name[PEER]:.1f} KiB "
                    f"({self.limit.text(compared)})",
                    self.limit.verdict(compared),
                )


@dataclass(frozen=True, slots=True)
class ManyKinds:
    """The CPU time of a cycle with many kinds of requests in turn, beside that with one."""

    kinds: int
    limit: Limit

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield one row, in which each number of nodes counts."""
        ratios = {
            f"{nodes:,} nodes": by_kinds[self.kinds] / by_kinds[1]
            for nodes, by_kinds in cycle_us(results.variety).items()
            if {1, self.kinds} <= by_kinds.keys()
        }
        if ratios:
            yield self.limit.row(
                f"{self.kinds:,} kinds of requests in turn take at most {self.limit.value:.1f} "
                "times the CPU time of one",
                ratios,
            )


class OwnStalls:
    """No stall of the event loop of more than 20 ms by Berth's own work."""

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield a row for each load, in which each part counts."""
        loads: dict[tuple[int, int, int], dict[str, tuple[int, float]]] = defaultdict(dict)
        for (nodes, rate, pods, part, contender), group in by_part(results.tails).items():
            if contender == ours:
                loads[nodes, rate, pods][part] = (
                    sum(each.own_stalls for each in group),
                    max(each.longest_own_stall_ms for each in group),
                )
        for (nodes, rate, _), parts in loads.items():
            missed = [
                f"{part} ({rounded(longest_ms, 1, up=True)} ms)"
                for part, (count, longest_ms) in parts.items()
                if count
            ]
            longest_ms = max(longest_ms for _, longest_ms in parts.values())
            yield Row(
                "no stall of the event loop of more than 20 ms by its own work, "
                f"{nodes:,} nodes, {rate} pods/s",
                f"longest {rounded(longest_ms, 1, up=True)} ms",
                _counted(len(parts), missed),
            )


class NothingWrong:
    """No pod bound twice and no node overcommitted in large clusters and pools."""

    def rows(self, results: Results, ours: str) -> Iterator[Row]:
        """Yield one row, in which each run counts."""
        if results.large:
            missed = [
                f"{run.nodes:,} nodes, {run.pods:,} pods, {run.pools} pools "
                f"(problems: {run.problems})"
                for run in sorted(results.large, key=lambda run: run.key)
                if run.problems
            ]
            yield Row(
                "no pod bound twice, no node overcommitted in large clusters and pools",
                f"up to {max(run.nodes for run in results.large):,} nodes and "
                f"{max(run.pods for run in results.large):,} running pods",
                _counted(len(results.large), missed),
            )


TARGETS: Final[tuple[Target, ...]] = (
    Throughput(),
    ShareOfBinding("bind-only", at_least(0.80)),
    ShareOfBinding("bind-and-events", at_least(0.92)),
    OwnCpu(at_most(0.35)),
    ServersCpu(at_most(0.45)),
    Latency("p99", rate=200, times=15),
    Latency("p50", rate=100, times=5),
    FirstBinding(at_most(1.0)),
    PodMemory(at_most(1.0)),
    ManyKinds(1000, at_most(2.0)),
    OwnStalls(),
    NothingWrong(),
)


def targets(results: Results, *, ours: str) -> str:
    """Return the section of targets that have figures; nothing where none has."""
    rows = [row for target in TARGETS for row in target.rows(results, ours)]
    if not rows:
        return ""
    return (
        "## Targets\n\n"
        "Only targets that have figures are listed. Ratios are those of the medians, rounded "
        "towards the side that misses.\n\n" + table(["target", "measured", ""], rows, align="---")
    )
