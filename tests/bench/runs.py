"""``python -m tests.bench run``: contenders in turn on one workload after the other."""

from __future__ import annotations

import argparse
import itertools
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.client.errors import ApiError
from tests.bench.contenders import NAMES, contender
from tests.bench.pod_templates import SCHEDULER_NAME
from tests.bench.results import Results, put
from tests.bench.saved_control_plane import SavedControlPlane
from tests.bench.stage import Limits, Stage
from tests.bench.workloads import BY_NAME, WORKLOADS
from tests.controlplane.control_plane import free_ports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.contenders import Contender
    from tests.bench.records import Round
    from tests.bench.workloads import Workload

DEFAULT_FILE = Path("docs/benchmarks/results.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the file does not hold yet; return 1 when a contender failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench run", description=__doc__)
    parser.add_argument(
        "--workloads", default="", help=f"separated by commas, of: {', '.join(BY_NAME)}"
    )
    parser.add_argument("--nodes", default="100,500,1000,5000,15000", help="separated by commas")
    parser.add_argument("--pods", type=int, help="to be placed, for every workload alike")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--contenders", default="kube-scheduler,berth", help=f"{', '.join(NAMES)}, berth@FOLDER"
    )
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    parser.add_argument("--again", action="store_true", help="measure also what the file holds")
    parser.add_argument("--seconds", type=float, default=120.0, help="for one round at most")
    options = parser.parse_args(arguments)
    try:
        workloads = chosen(options.workloads)
        ports = free_ports(len(options.contenders.split(",")))
        contenders = [
            contender(name, SCHEDULER_NAME, port)
            for name, port in zip(options.contenders.split(","), ports, strict=True)
        ]
        sizes = [int(each) for each in options.nodes.split(",")]
    except ValueError as error:
        parser.error(str(error))
    results = Results.load(options.json)
    run = Run(results, options.json, contenders, options.rounds, Limits(options.seconds))
    for has_groups, some in itertools.groupby(workloads, key=lambda workload: workload.gang > 0):
        some = list(some)
        # Without them nobody pays for an API that no pod uses.
        with SavedControlPlane(pod_groups=has_groups) as plane:
            stage = Stage(plane)
            for nodes in sizes:
                for workload in some:
                    run.workload(stage, workload, nodes, options.pods, again=options.again)
    return int(run.failed)


def chosen(names: str) -> list[Workload]:
    """Return the named workloads, or all; those with the same nodes stand together.

    Those with groups of pods come last.

    Raises
    ------
    ValueError
        There is none of that name.
    """
    for name in filter(None, names.split(",")):
        if name not in BY_NAME:
            raise ValueError(f"there is no workload {name!r}: {', '.join(BY_NAME)}")
    wanted = [BY_NAME[name] for name in names.split(",")] if names else list(WORKLOADS)
    grounds = list(dict.fromkeys(workload.ground for workload in wanted))
    return sorted(wanted, key=lambda each: (each.gang > 0, grounds.index(each.ground)))


class Run:
    """Rounds that go into one file.

    Attributes
    ----------
    failed
        Whether a contender has failed in any of them.
    """

    def __init__(
        self,
        results: Results,
        path: Path,
        contenders: Sequence[Contender],
        rounds: int,
        limits: Limits,
    ) -> None:
        self._results = results
        self._path = path
        self._contenders = contenders
        self._rounds = rounds
        self._limits = limits
        self._session: int | None = None
        self.failed = False

    def workload(
        self, stage: Stage, workload: Workload, nodes: int, pods: int | None, *, again: bool
    ) -> None:
        """Measure one workload at one size: the contenders in turn, round after round."""
        pods = pods or workload.counts(nodes)[1]
        missing = [
            (number, each)
            for number in range(1, self._rounds + 1)
            for each in self._contenders
            if again or not self._results.holds((workload.name, nodes, pods, each.name, number))
        ]
        if not missing:
            return
        print(f"{workload.name}, {nodes} nodes, {pods} pods", flush=True)
        stage.arrange(workload, nodes, pods)
        for number, each in missing:
            try:
                played = stage.play(
                    workload,
                    each,
                    nodes=nodes,
                    pods=pods,
                    number=number,
                    session=self._today(),
                    limits=self._limits,
                )
            except (ApiError, OSError, RuntimeError) as error:
                # One contender that cannot do it shall not cost the others their figures.
                self.failed = True
                print(f"  {number}  {each.name:<20} {error}", file=sys.stderr, flush=True)
                continue
            put(self._results.rounds, played)
            self._results.save(self._path)
            print(f"  {line(played)}", flush=True)

    def _today(self) -> int:
        if self._session is None:
            self._session = self._results.begin(datetime.now(UTC).isoformat(timespec="seconds"))
        return self._session


def line(played: Round) -> str:
    """Return one round for people."""
    missing = f"  only {played.bound} bound" if played.bound < played.pods else ""
    if played.group_attempts:
        missing += f"  {played.group_attempts} attempts of {played.group_attempt_ms:.2f} ms"
    return (
        f"{played.number}  {played.contender:<20}{played.pods_per_s:7.0f} pods/s"
        f"  first bind {played.start_to_first_bind_s:5.2f} s"
        f"  CPU s/1000 pods {played.cpu_s_per_1000_pods:5.2f}"
        f" (servers {played.server_cpu_s_per_1000_pods:5.2f}"
        f", load {played.load_cpu_s_per_1000_pods:4.2f})"
        f"  RSS {played.peak_rss_mib:5.0f} MiB{missing}"
    )
