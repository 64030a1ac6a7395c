"""``make relaxations``: relaxations of random pods against a brute-force search."""

from __future__ import annotations

import argparse
import sys

from tests.relaxations.checking import PODS_OF_A_CLUSTER, Tally, check_case

MAX_WRONG = 20


def main() -> int:
    """Check pods on random clusters; return 1 if a relaxation was wrong."""
    parser = argparse.ArgumentParser(prog="make relaxations", description=__doc__)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, help="the first cluster")
    options = parser.parse_args()
    tally, wrong = Tally(), []
    clusters = -(-options.pods // PODS_OF_A_CLUSTER)
    for index in range(options.first, options.first + clusters):
        wrong += check_case(options.seed, index, tally)
        if len(wrong) >= MAX_WRONG:
            break
    for sentence in wrong[:MAX_WRONG]:
        sys.stdout.write(f"WRONG {sentence}\n")
    sys.stdout.write(report(tally, options.seed))
    return 1 if wrong else 0


def report(tally: Tally, seed: str) -> str:
    """Return the figures as lines."""
    share = 100 * tally.helped / max(tally.refused, 1)
    times = sorted(tally.cpu_s) or [0.0]
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(tally.kinds.items()))
    return (
        f"seed {seed}: {tally.pods} pods, {tally.placed} placed, {tally.refused} refused\n"
        f"  refused pods with a relaxation: {tally.helped} ({share:.1f} %), "
        f"{tally.only_pairs} of them by pairs alone\n"
        f"  without: {tally.only_new_node} with a new node alone, {tally.no_help} with nothing\n"
        f"  node groups: {tally.groups}, {tally.groups_helped} with a relaxation; "
        f"{tally.minimal} compared with the brute force\n"
        f"  relaxations carried out: {tally.relaxations}, {tally.pairs} of them pairs; "
        f"new nodes: {tally.new_nodes}; ways for the runner-up: {tally.instead}\n"
        f"  by kind: {kinds}\n"
        f"  CPU time: median {times[len(times) // 2] * 1000:.1f} ms, "
        f"most {times[-1] * 1000:.1f} ms\n"
    )


if __name__ == "__main__":
    sys.exit(main())
