"""Gangs on a real API server, beside kube-scheduler, and on paper (``make gangs KIND=...``)."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

from tests.controlplane.binaries import find_or_build
from tests.gangs import (
    competing,
    faults_page,
    faulty_life,
    never,
    never_page,
    pages,
    placements,
    promises,
    shares,
    victims,
)
from tests.gangs.contenders import BERTH, NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one kind; 0 when Berth keeps its promises, 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m tests.gangs", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    contest = competing.Contest()
    compete = kinds.add_parser("competing", help="gangs on a cluster with room for half of them")
    compete.add_argument("--gangs", type=int, default=contest.gangs)
    compete.add_argument("--smallest", type=int, default=contest.smallest, help="pods of a gang")
    compete.add_argument("--largest", type=int, default=contest.largest, help="pods of a gang")
    compete.add_argument("--share", type=float, default=contest.share, help="that has room")
    compete.add_argument("--orders", type=int, default=contest.orders)
    compete.add_argument("--quiet", dest="quiet_s", type=float, default=contest.quiet_s)
    compete.add_argument("--deadline", dest="deadline_s", type=float, default=contest.deadline_s)
    size = never.Wait()
    waiting = kinds.add_parser(
        "never", help="a gang that cannot fit, on an idle and a busy cluster"
    )
    waiting.add_argument("--members", type=int, default=size.members)
    waiting.add_argument("--nodes", type=int, default=size.nodes)
    waiting.add_argument("--minutes", type=float, default=size.minutes, help="for each of 4 parts")
    waiting.add_argument("--rate", type=int, default=size.rate, help="single pods a second")
    faults = kinds.add_parser("faults", help="gangs while binds fail, leaders and nodes die")
    life = faulty_life.Size()
    faults.add_argument("--room", type=float, default=life.room, help="CPU of the nodes by demand")
    faults.add_argument("--gangs", type=int, default=life.gangs)
    faults.add_argument("--singles", type=int, default=life.singles)
    faults.add_argument("--preemptors", type=int, default=life.preemptors)
    faults.add_argument("--binds", type=float, default=life.binds, help="share that fails")
    faults.add_argument("--away", dest="away_s", type=float, default=life.away_s)
    placing = kinds.add_parser("placements", help="plans against an exhaustive search")
    placing.add_argument("--cases", type=int, default=placements.CASES)
    patience = shares.Patience()
    placing.add_argument("--quiet", type=float, default=patience.quiet_s, help="with contenders")
    placing.add_argument("--deadline", type=float, default=patience.deadline_s)
    evicting = kinds.add_parser("victims", help="victims of groups against an exhaustive search")
    evicting.add_argument("--cases", type=int, default=victims.CASES)
    for each in (compete, waiting, faults, placing, evicting):
        each.add_argument("--seed", type=int, default=contest.seed)
    placing.add_argument(
        "--contenders", help="on a real API server instead, such as " + ",".join(NAMES)
    )
    for each in (compete, waiting):
        each.add_argument("--contenders", default=",".join(NAMES), help="separated by commas")
    options = vars(parser.parse_args(arguments))
    kind = options.pop("kind")
    console = Console() if sys.stdout.isatty() else Console(width=120)
    if kind == "placements" and options["contenders"] is None:
        return placements.campaign(console, options["cases"], options["seed"])
    if kind == "victims":
        return victims.campaign(console, **options)
    find_or_build(["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"])
    names = str(options.pop("contenders", BERTH)).split(",")
    run = {"placements": _shares, "competing": _competing, "never": _never, "faults": _faults}[kind]
    return run(console, names, options)


def _competing(console: Console, names: Sequence[str], options: dict[str, object]) -> int:
    contest = competing.Contest(**options)  # type: ignore[arg-type]
    result = competing.compete(contest, names, console.print)
    console.print(pages.page_of_contest(result))
    ours = [rest for rest in result.rests if rest.name == BERTH]
    return int(any(pages.problems(result, rest) for rest in ours))


def _shares(console: Console, names: Sequence[str], options: dict[str, Any]) -> int:
    patience = shares.Patience(options["quiet"], options["deadline"])
    return shares.campaign(console, names, options["cases"], options["seed"], patience)


def _never(console: Console, names: Sequence[str], options: dict[str, object]) -> int:
    size = never.Wait(**options)  # type: ignore[arg-type]
    waited = never.wait(size, names, console.print)
    console.print(never_page.page(size, waited))
    return int(any(never_page.problems(each) for each in waited if each.name == BERTH))


def _faults(console: Console, _: Sequence[str], options: dict[str, object]) -> int:
    life = faulty_life.live(faulty_life.Size(**options), console.print)  # type: ignore[arg-type]
    judged = promises.judge(life)
    console.print(faults_page.page(life, judged))
    return int(any(each.broken for each in judged))


if __name__ == "__main__":
    sys.exit(main())
