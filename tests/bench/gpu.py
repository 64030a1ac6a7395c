"""``python -m tests.bench gpu FOLDER``: how much of a cluster's GPUs a policy can give away.

The protocol is that of the FGD paper (USENIX ATC '23): the pods of a trace come in random order,
and again, until they ask for 130 % of all GPUs; nothing departs. Figures are means over seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import gpu_trace
from tests.bench.gpu_policies import POLICIES
from tests.bench.gpu_simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.gpu_simulation import Run


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print a line for each run and a table of means, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench gpu", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the trace")
    parser.add_argument("--traces", default="", help="pod lists, by comma; all of the folder")
    parser.add_argument("--policies", default=",".join(POLICIES), help="by comma")
    parser.add_argument("--seeds", default="42-51", help="FIRST-LAST, or one")
    parser.add_argument("--demand", type=float, default=1.3, help="of all GPUs")
    parser.add_argument("--json", type=Path, help="write all runs to this file")
    options = parser.parse_args(arguments)
    present = gpu_trace.names(options.folder)
    traces = options.traces.split(",") if options.traces else present
    policies = options.policies.split(",")
    unknown = set(traces).difference(present) | set(policies).difference(POLICIES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if not traces:
        parser.error(f"no pod lists in {options.folder}")
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    runs: dict[str, list[Run]] = {}
    for name in traces:
        trace = gpu_trace.read(options.folder, name)
        done = runs[name] = []
        for policy in policies:
            for seed in seeds:
                done.append(simulate(trace, policy, seed, options.demand))
                print(line(name, done[-1]), flush=True)
                if options.json is not None:
                    told = {key: [asdict(run) for run in each] for key, each in runs.items()}
                    options.json.write_text(json.dumps(told, indent=1) + "\n")
    print("\n" + table(runs, policies))
    return 0


def line(trace: str, run: Run) -> str:
    """Return one run for people."""
    return (
        f"{trace:<12} {run.policy:<12} seed {run.seed}: {100 * run.allocated:6.2f} % allocated, "
        f"{100 * run.fragment:5.2f} % fragment, {run.placed}/{run.arrived} pods placed, "
        f"{1e6 * run.seconds / run.arrived:.0f} us a pod"
    )


def table(runs: dict[str, list[Run]], policies: Sequence[str]) -> str:
    """Return the means over seeds as Markdown: allocated share, and fragment in brackets."""
    rows = [["trace", *policies], ["---"] * (len(policies) + 1)]
    for trace, done in runs.items():
        row = [trace]
        for policy in policies:
            of_policy = [run for run in done if run.policy == policy]
            allocated = 100 * statistics.fmean(run.allocated for run in of_policy)
            fragment = 100 * statistics.fmean(run.fragment for run in of_policy)
            row.append(f"{allocated:.2f} ({fragment:.2f})")
        rows.append(row)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
