"""Two schedulers on one full cluster, and the pods that kubelets reject (``make neighbours``)."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.results import today
from tests.controlplane.binaries import find_or_build
from tests.neighbours import page
from tests.neighbours.cluster import Size, seeds
from tests.neighbours.contenders import CONTENDERS, NAMES
from tests.neighbours.contest import Contest, play
from tests.neighbours.results import Results

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_FILE = Path("docs/benchmarks/neighbours.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what the file of figures does not have yet, and print what all of it comes to."""
    parser = argparse.ArgumentParser(prog="python -m tests.neighbours", description=__doc__)
    size = Size()
    parser.add_argument("--seeds", default="1-10", help="such as 1-10 or 3,5")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="separated by commas")
    parser.add_argument("--nodes", type=int, default=size.nodes)
    parser.add_argument("--pods", type=int, default=size.pods, help="of each scheduler")
    parser.add_argument("--fill", type=float, default=size.fill, help="share in use before")
    parser.add_argument("--slack", type=float, default=size.slack, help="largest pods a node")
    parser.add_argument("--deadline", type=float, default=300.0, help="seconds for one round")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE, help="file of figures")
    parser.add_argument("--again", action="store_true", help="repeat what the file has")
    parser.add_argument("--markdown", action="store_true", help="print the tables of the page")
    options = parser.parse_args(arguments)
    names = options.contenders.split(",")
    for name in names:
        if name not in CONTENDERS:
            parser.error(f"there is no contender {name!r}: {', '.join(CONTENDERS)}")
    find_or_build(["etcd", "kube-apiserver", "kube-scheduler"])
    results = Results.load(options.json)
    made = Size(options.nodes, options.pods, options.fill, options.slack)
    contests = [
        Contest(name, seed, made, options.deadline)
        for seed in seeds(options.seeds)
        for name in names
    ]
    _play_all(contests, results, options.json, again=options.again)
    for head, rows in page.tables(results):
        print(f"\n{page.as_text(head, rows)}")
    for name in NAMES[1:]:
        if results.of(name):
            print(f"\n{page.verdict(results, name)}")
    if options.markdown:
        print(page.markdown(results))
    return 0


def _play_all(contests: Sequence[Contest], results: Results, path: Path, *, again: bool) -> None:
    """Play one contest after the other; the file is written after each."""
    session = None
    for contest in contests:
        key = (contest.contender, contest.seed, contest.size.nodes, contest.size.pods)
        if not again and any(each.key == key for each in results.rounds):
            continue
        if session is None:
            session = len(results.sessions)
            results.sessions.append(today(f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC"))
        made = play(contest, session)
        results.put(made)
        results.save(path)
        print(page.line(made), flush=True)


if __name__ == "__main__":
    sys.exit(main())
