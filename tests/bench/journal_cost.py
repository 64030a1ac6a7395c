"""What a journal costs: the same pods with ``--journal`` and without it, in turn.

The first of each pair of rounds has the journal and the second has none; of the next pair it is the
other way round. A ratio is that of the two rounds of a pair.

``python -m tests.bench journal --nodes 1000,5000``
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scheduler.journal.frames import files_of, read_frames
from tests.bench.contenders import Berth
from tests.bench.pod_templates import SCHEDULER_NAME
from tests.bench.runs import chosen
from tests.bench.saved_control_plane import SavedControlPlane
from tests.bench.stage import Limits, Stage
from tests.bench.statistics_of import quantile
from tests.bench.timed_cycles import VARIABLE, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.workloads import Workload
    from tests.controlplane.control_plane import ControlPlane
    from tests.controlplane.server_process import ServerProcess

_WARM_UP: Final = 200
"""The first cycles of a process fill its caches; they are left out."""


_NAMES: Final = (
    ("pods/s", 0),
    ("cycle p50, us", 1),
    ("cycle p99, us", 2),
    ("cycle CPU p50, us", 3),
    ("cycle CPU p99, us", 4),
    ("CPU, ms a pod", 5),
)


class Figures(NamedTuple):
    """One round.

    Attributes
    ----------
    cpu_p50_us, cpu_p99_us
        CPU time of the scheduling thread in a cycle: other work of the machine does not count.
    cpu_ms_per_pod
        Of all threads of the process, its start included.
    """

    pods_per_s: float
    p50_us: float
    p99_us: float
    cpu_p50_us: float
    cpu_p99_us: float
    cpu_ms_per_pod: float
    journal_bytes_per_pod: float


class _Timed(Berth):
    program = ("-m", "tests.bench.timed_cycles")

    def __init__(self, folder: Path, *, has_journal: bool) -> None:
        self.times = folder / "times"
        self.journal = folder / "journal"
        flags = ["--journal", str(self.journal)] if has_journal else []
        super().__init__(scheduler_name=SCHEDULER_NAME, flags=flags)
        self.name = "berth+journal" if has_journal else "berth"

    def start(
        self, control_plane: ControlPlane, plugin_config: Sequence[Any] = ()
    ) -> ServerProcess:
        shutil.rmtree(self.journal, ignore_errors=True)
        os.environ[VARIABLE] = str(self.times)
        return super().start(control_plane, plugin_config)


class Pairs:
    """Rounds with and without a journal.

    Attributes
    ----------
    rounds
        The figures by whether there was a journal.
    """

    def __init__(self, stage: Stage, workload: Workload, nodes: int, pods: int) -> None:
        self._stage = stage
        self._workload = workload
        self._nodes = nodes
        self._pods = pods
        self.rounds: dict[bool, list[Figures]] = {True: [], False: []}

    def play(self, number: int, folder: Path) -> None:
        """Play a pair of rounds."""
        for has_journal in (True, False) if number % 2 else (False, True):
            contender = _Timed(folder, has_journal=has_journal)
            played = self._stage.play(
                self._workload,
                contender,
                nodes=self._nodes,
                pods=self._pods,
                number=number,
                session=0,
                limits=Limits(),
            )
            cycles = read(contender.times)[_WARM_UP:]
            times, cpu = (sorted(each[index] * 1e6 for each in cycles) for index in (0, 1))
            figures = Figures(
                played.pods_per_s,
                quantile(times, 0.5),
                quantile(times, 0.99),
                quantile(cpu, 0.5),
                quantile(cpu, 0.99),
                played.cpu_s_per_1000_pods,
                _bytes_of(contender.journal) / played.bound if has_journal else 0.0,
            )
            self.rounds[has_journal].append(figures)
            print(
                f"  {number}  {contender.name:<14}{figures.pods_per_s:7.0f} pods/s  cycle p50 "
                f"{figures.p50_us:6.0f} us, p99 {figures.p99_us:6.0f} us, of CPU "
                f"{figures.cpu_p50_us:5.0f} and {figures.cpu_p99_us:5.0f} us  "
                f"{figures.cpu_ms_per_pod:5.2f} ms of CPU a pod, "
                f"journal {figures.journal_bytes_per_pod:4.0f} bytes",
                flush=True,
            )

    def summary(self) -> str:
        """Return the medians, and the ratios of the pairs."""
        lines = [f"{self._workload.name}, {self._nodes} nodes, {self._pods} pods:"]
        for name, index in _NAMES:
            with_, without = ([each[index] for each in self.rounds[side]] for side in (True, False))
            ratios = [a / b for a, b in zip(with_, without, strict=True)]
            lines.append(
                f"  {name:<17} with {statistics.median(with_):8.4g}  without "
                f"{statistics.median(without):8.4g}  ratio {statistics.median(ratios):.3f} "
                f"({min(ratios):.3f} to {max(ratios):.3f})"
            )
        return "\n".join(lines)


def _bytes_of(directory: Path) -> int:
    if not directory.exists():
        raise RuntimeError(f"no journal in {directory}")
    # A journal without a record would cost nothing.
    assert any(len(list(read_frames(path))) for path in files_of(directory))
    return sum(path.stat().st_size for path in files_of(directory))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench journal", description=__doc__)
    parser.add_argument("--workloads", default="Basic,TopologySpreading")
    parser.add_argument("--nodes", default="1000,5000", help="separated by commas")
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=6, help="pairs")
    options = parser.parse_args(arguments)
    summaries = []
    with SavedControlPlane() as plane, tempfile.TemporaryDirectory() as folder:
        stage = Stage(plane)
        for nodes in map(int, options.nodes.split(",")):
            for workload in chosen(options.workloads):
                print(f"{workload.name}, {nodes} nodes; load {os.getloadavg()[0]:.1f}", flush=True)
                stage.arrange(workload, nodes, options.pods)
                pairs = Pairs(stage, workload, nodes, options.pods)
                for number in range(1, options.rounds + 1):
                    pairs.play(number, Path(folder))
                summaries.append(pairs.summary())
                print(summaries[-1], flush=True)
    print("\n" + "\n".join(summaries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
