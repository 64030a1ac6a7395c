"""What a start costs: from the start of the process to the first bound pod, and to the last.

Contenders take turns on the same etcd and API server: nodes, pods that run, and pods that wait,
all of which exist before the process does. Of berth's own lines the log says when a phase began;
CPU is that of the process until then, by the kernel's clocks of its threads.

``python -m tests.bench start --running 1000,20000``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from tests.bench.contenders import contender
from tests.bench.load_client import BoundWatch
from tests.bench.pod_templates import MEASURED, PLAIN, SCHEDULER_NAME
from tests.bench.process_usage import ProcessUsage
from tests.bench.records import FIRST_BIND, LAST_BIND, MANY, MANY_BOUND, Start
from tests.bench.results import ResultsFile, put
from tests.bench.saved_control_plane import SavedControlPlane
from tests.bench.stage import Limits, Stage, Started, until_bound
from tests.bench.start_tables import median_start
from tests.bench.workloads import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.bench.contenders import Contender

PHASES: Final = {
    "starting": "imported",
    "connected": "connected",
    "first lists are complete": "listed",
    "scheduling": "scheduling",
}
"""Lines of berth's log, and what is done by then."""

_LOOK_S: Final = 0.005


@dataclass
class CpuCurve:
    """The CPU time of a process against the clock, looked up a few hundred times a second.

    *Concurrency*: :meth:`at` once :meth:`stop` has returned.
    """

    pid: int
    _points: list[tuple[float, float]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def at(self, moment_s: float) -> float:
        """Return CPU seconds by a moment of :func:`time.time`."""
        return max((cpu_s for at_s, cpu_s in self._points if at_s <= moment_s), default=0.0)

    def _run(self) -> None:
        tasks, threads = Path(f"/proc/{self.pid}/task"), dict[str, float]()
        while not self._ended.wait(_LOOK_S):
            try:
                for task in tasks.iterdir():
                    # Nanoseconds; a thread that has ended keeps what it was last seen with.
                    threads[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
            except (OSError, IndexError):
                continue
            self._points.append((time.time(), sum(threads.values())))


def phases_of(lines: Iterable[str], since_s: float) -> dict[str, float]:
    """Return when the phases of the last start in a log were over, as :func:`time.time` says it.

    Parameters
    ----------
    since_s
        Lines from before belong to another start.
    """
    found: dict[str, float] = {}
    for line in lines:
        try:
            read = json.loads(line)
            at_s = datetime.fromisoformat(read["timestamp"]).timestamp()
        except (ValueError, TypeError, KeyError):
            continue
        phase = PHASES.get(read.get("event", ""))
        if phase is not None and at_s >= since_s:
            found.setdefault(phase, at_s)
    return found


def workload(nodes: int, running: int, pods: int) -> Workload:
    """Return a cluster with so many pods that run and so many that wait."""
    return Workload("Start", (PLAIN,), (running / nodes, pods / nodes))


class Starts:
    """Starts contenders one after the other on what was arranged."""

    def __init__(
        self, stage: Stage, plane: SavedControlPlane, *, nodes: int, running: int, pods: int
    ) -> None:
        self._stage = stage
        self._plane = plane
        self._nodes = nodes
        self._running = running
        self._pods = pods

    def play(self, made: Contender, number: int, session: int, *, bound: int) -> Start:
        """Start one, wait until so many pods are bound, and end it.

        Raises
        ------
        RuntimeError
            It has ended, or has bound nothing.
        """
        self._stage.restore()
        with self._stage.running(made) as started:
            return uvloop.run(self._observe(made, number, session, bound, started))

    async def _observe(
        self, made: Contender, number: int, session: int, bound: int, started: Started
    ) -> Start:
        curve = CpuCurve(started.process.pid)
        curve.start()
        # Both clocks at one moment: logs have the one, watches the other.
        offset_s = time.time() - time.monotonic()
        begun_s = started.at_s + offset_s
        try:
            async with self._stage.client() as client:
                watch = BoundWatch(client, MEASURED)
                await watch.open()
                following = asyncio.ensure_future(watch.run())
                try:
                    await until_bound(watch, bound, started.process, [following], Limits())
                finally:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
        finally:
            curve.stop()
        server_cpu_s = self._plane.servers_cpu_s() - started.server_cpu_s
        rss_mib = ProcessUsage.of(started.process.pid).rss_bytes / 2**20
        log = started.process.log_file.read_text(errors="replace").splitlines()
        moments = phases_of(log, begun_s)
        moments |= bindings(sorted(watch.bound_s.values())[:bound], offset_s)
        return Start(
            nodes=self._nodes,
            running=self._running,
            pods=self._pods,
            bound=bound,
            contender=made.name,
            number=number,
            session=session,
            wall_s={phase: round(at_s - begun_s, 4) for phase, at_s in moments.items()},
            cpu_s={phase: round(curve.at(at_s), 4) for phase, at_s in moments.items()},
            server_cpu_s=server_cpu_s,
            rss_mib=rss_mib,
        )


def bindings(bound_s: Sequence[float], offset_s: float = 0.0) -> dict[str, float]:
    """Return when the first pod, the 200th and the last were bound.

    Parameters
    ----------
    bound_s
        In order. With fewer than 200, that moment is left out.
    offset_s
        Is added to each.
    """
    places = {FIRST_BIND: 0, MANY_BOUND: MANY - 1, LAST_BIND: len(bound_s) - 1}
    return {
        phase: bound_s[place] + offset_s for phase, place in places.items() if place < len(bound_s)
    }


def line(start: Start) -> str:
    """Return one start for people: seconds, and CPU seconds by then."""
    phases = "  ".join(
        f"{phase} {wall_s:5.2f} ({start.cpu_s[phase]:4.2f})"
        for phase, wall_s in start.wall_s.items()
    )
    return (
        f"{start.contender:<16.40}  {phases}  servers {start.server_cpu_s:5.2f}"
        f"  RSS {start.rss_mib:.0f} MiB"
    )


def summary(starts: Sequence[Start]) -> Iterable[str]:
    """Yield the medians of each contender and phase."""
    for name in dict.fromkeys(start.contender for start in starts):
        yield line(median_start([start for start in starts if start.contender == name]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench start", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=4000, help="that wait")
    parser.add_argument("--running", default="1000,20000", help="pods that run, by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contenders", default="kube-scheduler,berth", help="berth@FOLDER too")
    parser.add_argument("--bound", type=int, help="end each start after so many, not after all")
    parser.add_argument("--json", type=Path, help="the file that the figures are added to")
    options = parser.parse_args(arguments)
    file = ResultsFile(options.json)
    try:
        contenders = [contender(name, SCHEDULER_NAME) for name in options.contenders.split(",")]
    except ValueError as error:
        parser.error(str(error))
    with SavedControlPlane() as plane:
        stage = Stage(plane)
        for running in map(int, options.running.split(",")):
            stage.arrange(
                workload(options.nodes, running, options.pods), options.nodes, options.pods
            )
            print(f"{options.nodes} nodes, {running} pods run, {options.pods} wait", flush=True)
            starts = Starts(stage, plane, nodes=options.nodes, running=running, pods=options.pods)
            played = []
            for number in range(1, options.rounds + 1):
                for each in contenders:
                    start = starts.play(
                        each, number, file.session, bound=options.bound or options.pods
                    )
                    put(file.results.starts, start)
                    file.save()
                    played.append(start)
                    print(f"  {line(start)}", flush=True)
            print("medians")
            for text in summary(played):
                print(f"  {text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
