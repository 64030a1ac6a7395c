"""Devices under faults (``make devices``), and with a second scheduler (``make rivals``)."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from rich.console import Console

from tests.controlplane.binaries import find_or_build
from tests.devices import faulty_life, promises, rival_life, summary
from tests.devices.rivalry import examine, judge

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the two; 0 when all promises are kept, 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m tests.devices", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    faults = kinds.add_parser("faults", help="failing binds, and a leader that is killed")
    size = faulty_life.Size()
    faults.add_argument("--pods", type=int, default=size.pods)
    faults.add_argument("--nodes", type=int, default=size.nodes)
    faults.add_argument("--devices", type=int, default=size.devices, help="of each node")
    faults.add_argument("--count", type=int, default=size.count, help="devices of each pod")
    faults.add_argument("--binds", type=float, default=size.binds, help="share that fails")
    faults.add_argument("--claims", type=float, default=size.claims, help="share that fails")
    faults.add_argument("--seed", type=int, default=size.seed)
    rivals = kinds.add_parser("rivals", help="kube-scheduler allocates from the same pool")
    contest = rival_life.Contest()
    rivals.add_argument("--seconds", type=float, default=contest.seconds)
    rivals.add_argument("--nodes", type=int, default=contest.nodes)
    rivals.add_argument("--devices", type=int, default=contest.devices, help="of each node")
    rivals.add_argument("--pods", type=int, default=contest.pods, help="of each scheduler")
    rivals.add_argument("--lifetime", dest="lifetime_s", type=float, default=contest.lifetime_s)
    rivals.add_argument("--seed", type=int, default=contest.seed)
    rivals.add_argument(
        "--separated", action="store_true", help="each scheduler has a class of its own"
    )
    options = vars(parser.parse_args(arguments))
    kind = options.pop("kind")
    console = Console() if sys.stdout.isatty() else Console(width=160)
    find_or_build(["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"])
    return {"faults": _faults, "rivals": _rivals}[kind](console, options)


def _faults(console: Console, options: dict[str, object]) -> int:
    life = faulty_life.live(faulty_life.Size(**options), console.print)  # type: ignore[arg-type]
    judged = promises.judge(life)
    console.print(summary.page_of_faults(life, judged))
    return int(any(each.broken for each in judged))


def _rivals(console: Console, options: dict[str, object]) -> int:
    contest = rival_life.Contest(**options)  # type: ignore[arg-type]
    rivalry = rival_life.compete(contest, console.print)
    findings = examine(rivalry)
    judged = judge(rivalry, findings)
    console.print(summary.page_of_rivals(rivalry, findings, judged))
    return int(any(each.broken for each in judged))


if __name__ == "__main__":
    sys.exit(main())
