"""An hour of everything with a journal, replayed; and kills at random moments of writing."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.controlplane.binaries import find_or_build
from tests.journal_hours.hour import Size, live
from tests.journal_hours.kills import kill_writers
from tests.journal_hours.replays import replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.journal_hours.kills import Killed
    from tests.journal_hours.replays import Replayed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 0 when everything came out equal."""
    parser = argparse.ArgumentParser(prog="python -m tests.journal_hours", description=__doc__)
    size = Size()
    parser.add_argument("--minutes", type=float, default=size.minutes, help="0: only kills")
    parser.add_argument("--rate", type=float, default=size.rate, help="pods a second")
    parser.add_argument("--nodes", type=int, default=size.nodes)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=size.seed)
    parser.add_argument("--directory", type=Path, help="where journals are kept afterwards")
    parser.add_argument("--again", action="store_true", help="only replay what is there")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="berth-journal-") as temporary:
        directory = options.directory or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        problems = 0
        if options.minutes and not options.again:
            find_or_build(["etcd", "kube-apiserver", "kube-controller-manager"])
            size = Size(options.minutes, options.rate, options.nodes, options.seed)
            happened = live(size, directory, lambda text: print(text, flush=True))
            print(
                f"{happened.pods} pods, {happened.configs} configuration files, "
                f"{happened.plugins} versions of the plugin, nodes: "
                + ", ".join(f"{kind} {n}" for kind, n in sorted(happened.node_changes.items()))
            )
        if options.minutes:
            problems += _replay_all(directory)
        if options.kills and not options.again:
            problems += _kill(options.kills, options.seed, directory / "killed")
        return int(problems > 0)


def _replay_all(directory: Path) -> int:
    problems = 0
    every: Counter[str] = Counter()
    for journal in sorted(directory.glob("journal-*")):
        found = replay(journal, directory / "replayed-plugins")
        if not found.contents.files:
            print(f"{journal.name}: no file; it never led")
            continue
        print(_page(journal, found), flush=True)
        for problem in found.problems()[:20]:
            print(f"  PROBLEM {problem}")
        problems += len(found.problems())
        every += found.contents.kinds
    print("\nall journals together")
    for kind, count in sorted(every.items()):
        print(f"{count:>9} {kind}")
    return problems


def _page(journal: Path, found: Replayed) -> str:
    contents = found.contents
    each = contents.bytes / max(contents.decisions, 1)
    lines = [
        f"\n{journal.name}: {contents.files} files, {contents.bytes} bytes, {contents.records} "
        f"records, {contents.decisions} decisions, {each:.0f} bytes a decision, "
        f"{contents.lost} records lost in gaps; replayed in {found.seconds:.0f} s"
    ]
    lines += [f"{n:>9} {kind}" for kind, n in sorted(contents.kinds.items())]
    lines += [f"{n:>9} decided with plugin: {code}" for code, n in sorted(contents.by_code.items())]
    for code, report in found.by_code.items():
        lines.append(
            f"{report['equal']:>9} equal, {report['different']} different, with plugin {code!r}"
        )
    lines.append(f"{found.reordered:>9} of these saw a change that arrived while they were made")
    lines += [f"{n:>9} not compared: {why}" for why, n in sorted(found.not_compared().items())]
    return "\n".join(lines)


def _kill(count: int, seed: int, directory: Path) -> int:
    killed: list[Killed] = []
    for each in kill_writers(count, seed, directory):
        killed.append(each)
        if each.different:
            print(f"  PROBLEM {each}")
    torn = sum(each.torn_bytes > 0 for each in killed)
    print(
        f"\n{len(killed)} writers killed, {sum(each.files for each in killed)} files, {torn} with "
        f"an incomplete frame: {sum(each.equal for each in killed)} decisions came out equal, "
        f"{sum(each.different for each in killed)} otherwise"
    )
    return sum(each.different for each in killed)


if __name__ == "__main__":
    sys.exit(main())
