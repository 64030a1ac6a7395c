"""Worlds on the command line: ``python -m tests.worlds --help``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.worlds import reach, record
from tests.worlds.comparing import first_difference
from tests.worlds.playing import Played, play, play_and_listen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _everywhere(run: Callable[[int], Any], seeds: Sequence[int]) -> list[Any]:
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(run, seeds, chunksize=10))


def _entry(seed: int) -> record.Entry:
    return record.entry_of(play(seed))


def _counts(seed: int) -> Counter[str]:
    return reach.counts(*play_and_listen(seed))


# --- what can be asked for --------------------------------------------------------------------


def show(seeds: range, *, as_json: bool) -> int:
    """Print what happens in some worlds, and every write."""
    for seed in seeds:
        played = play(seed)
        if as_json:
            print(played.to_json())
            continue
        print(f"=== world {record.entry_of(played)}")
        for number, (step, writes) in enumerate(played.steps):
            print(f"{number}: {step}", *(f"        {write}" for write in writes), sep="\n")
        print("=== in the end", *played.placements, sep="\n")
    return 0


def digests(seeds: range) -> int:
    """Print the record's lines of some worlds as they are now."""
    for seed in seeds:
        print(_entry(seed))
    return 0


def make_record() -> int:
    """Replace the record by what all worlds write now."""
    record.write(_everywhere(_entry, record.SEEDS))
    print(f"{record.PATH}: {len(record.SEEDS)} worlds")
    return 0


def check(seeds: range) -> int:
    """Hold worlds against the record."""
    lines = record.differences(_everywhere(_entry, seeds))
    print(*lines, f"{len(seeds)} worlds, {len(lines)} differ from the record", sep="\n")
    if lines:
        print(record.HELP)
    return 1 if lines else 0


def print_reach(seeds: range) -> int:
    """Print what occurs how often, and say what occurs too seldom."""
    total: Counter[str] = sum(_everywhere(_counts, seeds), Counter())
    for what, count in sorted(total.items()):
        print(f"{count:7} {what}")
    seldom = [what for what, least in reach.NEEDED.items() if total[what] < least]
    if seldom and seeds == record.SEEDS:
        print("too seldom:", ", ".join(seldom))
        return 1
    return 0


def compare(checkout: Path, seeds: range) -> int:
    """Print where worlds part from those of another checkout, each at its first difference."""
    python = checkout / ".venv" / "bin" / "python"
    command = [str(python) if python.exists() else sys.executable, "-m", "tests.worlds", "show"]
    wanted = f"{seeds[0]}-{seeds[-1]}"
    answer = subprocess.run(
        [*command, "--json", wanted], cwd=checkout, check=True, stdout=subprocess.PIPE
    )
    parted = 0
    for seed, line in zip(seeds, answer.stdout.splitlines(), strict=True):
        told = first_difference(play(seed), Played.of_json(line))
        if told:
            parted += 1
            print(f"=== world {seed}", *told, sep="\n")
    print(f"{len(seeds)} worlds, {parted} differ from {checkout}")
    return 1 if parted else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.worlds", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    every = record.SEEDS

    def command(name: str, function: Callable[..., int]) -> argparse.ArgumentParser:
        summary = (function.__doc__ or "").splitlines()[0]
        return commands.add_parser(name, help=summary, description=summary)

    shown = command("show", show)
    shown.add_argument("seeds", type=_seeds, metavar="SEED", help="or FIRST-LAST")
    shown.add_argument("--json", action="store_true", help="one line for each world")
    command("digests", digests).add_argument("seeds", type=_seeds, metavar="SEED")
    command("record", make_record)
    for name, function in (("check", check), ("reach", print_reach)):
        command(name, function).add_argument("seeds", type=_seeds, nargs="?", default=every)
    compared = command("compare", compare)
    compared.add_argument("checkout", type=Path)
    compared.add_argument("--seeds", type=_seeds, default=every, metavar="FIRST-LAST")
    options = parser.parse_args(arguments)
    match options.command:
        case "show":
            return show(options.seeds, as_json=options.json)
        case "digests":
            return digests(options.seeds)
        case "record":
            return make_record()
        case "check":
            return check(options.seeds)
        case "reach":
            return print_reach(options.seeds)
        case _:
            return compare(options.checkout, options.seeds)


if __name__ == "__main__":
    sys.exit(main())
