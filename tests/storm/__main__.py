"""The simulation on the command line: ``make storm``, or ``python -m tests.storm --help``."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from tests.storm.campaigns import Campaign
from tests.storm.histories import History, shrink
from tests.storm.mutation_trials import BUDGET, HEAD, Trials
from tests.storm.mutations import FORMER, MUTATIONS, without
from tests.storm.playing import STEPS, Played, play
from tests.storm.scenario_text import NoScenarioError, scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Play seeds; return 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each world, at least")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--state", type=Path, help="file of what has been played")
    parser.add_argument("--keep-going", action="store_true", help="play on after a failure")
    parser.add_argument("--last", type=int, default=40, help="lines of the trace of a failure")
    parser.add_argument("--counts", action="store_true", help="print what was reached how often")
    parser.add_argument("--shrink", action="store_true", help="take away what does not matter")
    parser.add_argument("--play", type=Path, help="play a history from a file")
    parser.add_argument("--extras", help="instead of those of each seed: groups+volumes, or none")
    parser.add_argument("--mutation", default="", help="a protection that is taken away")
    parser.add_argument("--mutations", help="try them: all, step7, or a list")
    parser.add_argument("--budget", type=int, default=BUDGET, help="steps for each of them")
    options = parser.parse_args(argv)
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets of texts are walked in the order of their hashes.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.storm", *(argv or sys.argv[1:])])
    if options.mutations:
        return _try_mutations(options)
    shrunk: list[History] = []
    with without(options.mutation):
        status = _replay(options, shrunk) if options.play else _campaign(options, shrunk)
    for history in shrunk:
        _print_scenario(history, options.mutation)
    return status


def _replay(options: argparse.Namespace, shrunk: list[History]) -> int:
    history = History.of(options.play.read_text(encoding="utf-8"))
    played = history.play()
    print(_line(played))
    if played.broken:
        _print_failure(played)
        if options.shrink:
            shrunk.append(history)
    return 1 if played.broken else 0


def _try_mutations(options: argparse.Namespace) -> int:
    """Print a table: after how many steps worlds notice that a protection is missing."""
    listed = {"all": MUTATIONS, "step7": FORMER}.get(options.mutations, {})
    names = [*listed] or options.mutations.split(",")
    trials = Trials(options.state, options.budget, options.seed, options.steps)
    print(HEAD, flush=True)
    missed = 0
    for name in names:
        trial = trials.of(name)
        missed += not trial.invariant
        print(trial, flush=True)
        if options.counts:
            print(f"    {trial.message}", flush=True)
        for seed in trial.discarded:
            print(f"    Seed {seed} does not count: it fails without the mutation, too.")
    print(f"\n{len(names)} mutations, {missed} not noticed")
    return 1 if missed else 0


def _campaign(options: argparse.Namespace, shrunk: list[History]) -> int:
    campaign = Campaign(options.state)
    before = len(campaign.seeds)
    seeds = range(options.seed, options.seed + options.seeds)
    todo = [seed for seed in seeds if seed not in campaign.seeds]
    began, steps, failed = time.perf_counter(), 0, 0
    gc.collect()
    gc.freeze()  # the collection after each world passes all modules over
    for played in _everywhere(todo, options):
        steps += played.steps
        if len(todo) <= 20:
            print(_line(played))
        if not played.broken:
            campaign.passed(played)
            continue
        failed += 1
        _print_failure(played)
        if options.shrink:
            history = shrink(played, lambda line: print(line, flush=True))
            print(f"# {played.message}\n{history}", end="")
            shrunk.append(history)
        if not options.keep_going:
            break
    seconds = time.perf_counter() - began
    print(f"{len(todo)} seeds, {steps} steps in {seconds:.1f} s: {steps / seconds:.0f} steps/s")
    print(f"{failed} with a broken promise; {before} played before")
    if options.counts or len(todo) > 20:
        print(*campaign.report(), sep="\n")
        for what, count in sorted(campaign.counts.items()):
            print(f"{count:9} {what}")
    return 1 if failed else 0


def _print_scenario(history: History, mutation: str) -> None:
    try:
        print(f"A regression scenario of it:\n{scenario_of(history, mutation)}", end="")
    except NoScenarioError as error:
        print(f"No regression scenario: {error}. Play the history with --play.")


def _everywhere(seeds: Sequence[int], options: argparse.Namespace) -> Iterator[Played]:
    extras = options.extras
    if extras is not None:
        extras = [name for name in extras.split("+") if name not in ("", "none")]
    run = partial(play, steps=options.steps, extras=extras, remember=options.last)
    if options.processes == 1:
        yield from map(run, seeds)
        return
    # Not ProcessPoolExecutor: on Python 3.11 it stops when a process has played its last world.
    with get_context("spawn").Pool(options.processes, maxtasksperchild=50) as pool:
        yield from pool.imap(run, seeds)


def _line(played: Played) -> str:
    setting = played.setting
    return (
        f"seed {played.seed}: {played.steps} steps, {played.simulated_s:.0f} s simulated in "
        f"{played.seconds:.2f} s, {setting.replicas} replicas, interleave {setting.interleave}, "
        f"extras {'+'.join(setting.extras) or 'none'}, "
        f"trace {played.trace_hash}"
    )


def _print_failure(played: Played) -> None:
    print(f"FAILED seed {played.seed} after {played.steps} steps: {played.message}")
    print(*_indented(played.last), sep="\n", flush=True)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
