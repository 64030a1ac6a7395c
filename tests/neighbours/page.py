"""The figures as a text for the terminal, and as tables in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.statistics_of import quantile
from tests.neighbours.cluster import FIRST, SECOND
from tests.neighbours.contenders import KUBE_SCHEDULERS, NAMES
from tests.neighbours.results import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.results import Session
    from tests.neighbours.results import Results, Round, Summary

GOAL: Final = 0.1
"""Of the rejected pods of a second kube-scheduler, those of Berth with the guard at most."""

_NAMED: Final = ("kube-scheduler", "etcd", "berth")


def line(made: Round) -> str:
    """Return one round in a line."""
    parts = [
        f"{name}: {party.running} run, {party.rejections} rejected, {party.pods_per_s:.0f} pods/s"
        for name, party in made.parties.items()
    ]
    load = f"load {made.load[0]:.1f} to {made.load[1]:.1f}"
    return f"seed {made.seed:3}  {made.contender:20} " + "; ".join([*parts, load])


def tables(results: Results) -> list[tuple[str, list[list[str]]]]:
    """Return titles and rows of all tables; the first row of each is its head."""
    played = [name for name in NAMES if results.of(name)]
    pairs = [(name, party) for name in played for party in (FIRST, SECOND)]
    summaries = {(name, party): summary(results.of(name), party) for name, party in pairs}
    return [
        ("Pods that kubelets rejected", _rejected(summaries)),
        ("By seed: rejected pods of the second scheduler", _by_seed(results, played)),
        ("How much later the second bind arrived", _gaps(summaries)),
        ("Time and cost, medians of the rounds", _times(summaries)),
    ]


def markdown(results: Results) -> str:
    """Return the conditions and the tables as Markdown."""
    used = sorted({each.session for each in results.rounds})
    conditions = dict.fromkeys(_condition(results.sessions[number]) for number in used)
    sizes = sorted({(each.nodes, each.pods) for each in results.rounds})
    loads = [load for each in results.rounds for load in each.load]
    lines = [f"- {nodes} nodes, {pods} pods of each scheduler" for nodes, pods in sizes]
    lines += [f"- {each}" for each in conditions]
    lines.append(f"- load average of the machine: {min(loads):.1f} to {max(loads):.1f}")
    parts = ["\n".join(lines), *(as_markdown(head, rows) for head, rows in tables(results))]
    parts += [f"- {verdict(results, name)}" for name in NAMES[1:] if results.of(name)]
    return "\n\n".join(parts)


def _condition(session: Session) -> str:
    versions = ", ".join(
        f"{name} {session.versions[name]}" for name in _NAMED if name in session.versions
    )
    return (
        f"{session.cores} cores of {session.processor}, {session.memory_gib:.0f} GiB, Linux "
        f"{session.kernel}, {session.python}; {versions}; commit {session.commit or 'unknown'}"
    )


def verdict(results: Results, name: str) -> str:
    """Return how the rejected pods of a contender compare with two kube-schedulers'."""
    theirs = summary(results.of(KUBE_SCHEDULERS), SECOND)
    ours = summary(results.of(name), SECOND)
    if not theirs.rejections or theirs.rounds != ours.rounds:
        return "no verdict: the rounds are not comparable"
    share = ours.rejections / theirs.rejections
    word = "at most" if share <= GOAL else "more than"
    return (
        f"{name}: {ours.rejections} rejected pods in {ours.rounds} rounds, {share:.0%} of the "
        f"second kube-scheduler's {theirs.rejections}: {word} {GOAL:.0%}"
    )


def as_text(head: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table for the terminal."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if column > 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([head, *(f"  {each}" for each in lines)])


def as_markdown(head: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown under its title."""
    rule = ["---" if column < 2 else "---:" for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:])]
    return "\n".join([f"## {head}", "", *lines])


def _rejected(summaries: dict[tuple[str, str], Summary]) -> list[list[str]]:
    reasons = sorted({reason for each in summaries.values() for reason in each.rejected})
    head = ["pair", "scheduler", "pods", "run", "binds", "rejected", *reasons]
    return [head] + [
        [
            name,
            party,
            str(each.pods),
            str(each.running),
            str(each.binds),
            str(each.rejections),
            *(str(each.rejected.get(reason, 0)) for reason in reasons),
        ]
        for (name, party), each in summaries.items()
    ]


def _by_seed(results: Results, played: Sequence[str]) -> list[list[str]]:
    seeds = sorted({each.seed for each in results.rounds})
    rows = [["pair", "scheduler", *map(str, seeds)]]
    for name in played:
        found = {x.seed: str(x.parties[SECOND].rejections) for x in results.of(name)}
        rows.append([name, SECOND, *(found.get(seed, "") for seed in seeds)])
    return rows


def _gaps(summaries: dict[tuple[str, str], Summary]) -> list[list[str]]:
    head = ["pair", "came second", "collisions", "before the answer", "shown by then"]
    rows = [[*head, "median", "90 %", "longest"]]
    for (name, party), each in summaries.items():
        gaps = each.gaps_ms
        figures = [f"{quantile(gaps, share):.1f} ms" for share in (0.5, 0.9, 1.0)] if gaps else []
        counts = [len(gaps), sum(gap < 0 for gap in gaps), each.shown]
        rows.append([name, party, *map(str, counts), *(figures or ["", "", ""])])
    return rows


def _times(summaries: dict[tuple[str, str], Summary]) -> list[list[str]]:
    rows = [["pair", "scheduler", "pods/s", "until all run", "CPU of 1 000 pods"]]
    rows += [
        [
            name,
            party,
            f"{each.pods_per_s:.0f}",
            f"{each.all_s:.1f} s",
            f"{each.cpu_s_per_1000:.2f} s",
        ]
        for (name, party), each in summaries.items()
    ]
    return rows
