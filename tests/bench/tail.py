"""``python -m tests.bench tail``: latency of bindings and stalls of the event loop when disturbed.

Pods come at a steady rate as in ``latency``, first alone and then beside one disturbance after the
other, each from the same saved state. A stall of more than 20 ms is Berth's own where its threads
had as much CPU time within it; otherwise the machine had no core for them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from tests.bench.contenders import Berth, contender
from tests.bench.latency import WARM_UP, Arrivals
from tests.bench.loop_stalls import STACKS_VARIABLE, VARIABLE, read
from tests.bench.pod_templates import ASIDE, BEFORE, GATED, HIGH, SCHEDULER_NAME
from tests.bench.records import TailPart
from tests.bench.results import ResultsFile, put
from tests.bench.saved_control_plane import SavedControlPlane
from tests.bench.stage import Stage
from tests.bench.workloads import BY_NAME, node_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from tests.bench.load_client import LoadClient
    from tests.bench.loop_stalls import Pause, Stall
    from tests.bench.records import LatencyRound
    from tests.controlplane.control_plane import ControlPlane
    from tests.controlplane.server_process import ServerProcess

    Json = dict[str, Any]

WORKLOAD: Final = BY_NAME["PreemptionAsync"]
"""Four pods of low priority on each node leave room for four of those that come, and can be evicted
for one that comes first."""

_HERE: Final = Path(__file__).parents[2]

_RELOAD_EVERY_S: Final = 2.5
"""A file counts as changed when two looks, a second apart, find the same new content."""

_AT_A_TIME: Final = 32
"""Requests of a disturbance that are under way."""


class Load(NamedTuple):
    """What disturbs, as the command line has it.

    Parameters
    ----------
    flood
        Updates a second of a watch flood.
    gated
        Pods that wait at a gate.
    edits
        Changes of gated pods a second.
    preemptors
        Pods a second that come first.
    """

    flood: int
    gated: int
    edits: int
    preemptors: int


class Scene(NamedTuple):
    """What a disturbance works on; the client is its own."""

    client: LoadClient
    plane: ControlPlane
    nodes: int
    load: Load


@dataclass(frozen=True)
class Disturbance:
    """What goes on beside the pods that come.

    Parameters
    ----------
    prepare
        Done before they come.
    beside
        Goes on until it is cancelled.
    relists
        Whether the API server goes away.
    """

    name: str
    prepare: Callable[[Scene], Awaitable[None]] | None = None
    beside: Callable[[Scene], Awaitable[None]] | None = None
    relists: bool = False


async def steadily(
    rate: float, do: Callable[[int], Awaitable[None]], *, at_a_time: int = _AT_A_TIME
) -> None:
    """Call `do` with 0, 1, ... at that rate a second, or as often as the server takes it."""
    loop = asyncio.get_running_loop()
    begun, slots = loop.time(), asyncio.Semaphore(at_a_time)
    number = 0

    async def one(number: int) -> None:
        try:
            await do(number)
        finally:
            slots.release()

    async with asyncio.TaskGroup() as group:
        while True:
            await slots.acquire()
            due = begun + number / rate
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            elif loop.time() - due > 1.0:
                begun += loop.time() - due  # what the server cannot take is not caught up with
            group.create_task(one(number))
            number += 1


def heartbeat(number: int, nodes: int) -> tuple[Json, Json]:
    """Return a node and the patch of its status that its kubelet would send."""
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:"
        f"{number % 60:02}Z",
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node_name(number % nodes)}}
    return node, {"status": {"conditions": [condition]}}


def bound_pod_update(number: int, pods: int) -> tuple[Json, Json]:
    """Return a pod that runs already and a patch that changes nothing for the scheduler."""
    meta = {"name": f"before-{number % pods:06}", "namespace": BEFORE}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    return pod, {"metadata": {"annotations": {"example.com/seen": str(number)}}}


def gated_pod_edit(number: int, pods: int) -> tuple[Json, Json]:
    """Return a gated pod and its next change: one of five opens the gate, the others relabel."""
    meta = {"name": f"gated-{number % pods:06}", "namespace": ASIDE}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    if number % 5 == 0:
        return pod, {"spec": {"schedulingGates": None}}
    return pod, {"metadata": {"labels": {"edit": str(number)}}}


def changed_config(config: Json, number: int) -> Json:
    """Return the configuration with other weights in its profile and another second profile."""
    weights = [{"name": "cpu", "weight": 1 + number % 2}, {"name": "memory", "weight": 1}]
    arguments = {"scoringStrategy": {"type": "LeastAllocated", "resources": weights}}
    fit = {"name": "NodeResourcesFit", "args": arguments}
    first = {**config["profiles"][0], "pluginConfig": [fit]}
    return {**config, "profiles": [first, {"schedulerName": f"other-{number % 3}"}]}


async def _flood(scene: Scene) -> None:
    before = WORKLOAD.counts(scene.nodes)[0]

    async def update(number: int) -> None:
        if number % 2:
            await scene.client.patch(*heartbeat(number // 2, scene.nodes), "/status")
        else:
            await scene.client.patch(*bound_pod_update(number // 2, before))

    await steadily(scene.load.flood, update)


async def _reload(scene: Scene) -> None:
    path = scene.plane.folder / "berth.yaml"
    config = yaml.safe_load(path.read_text())
    number = 1
    while True:
        path.write_text(yaml.safe_dump(changed_config(config, number)))
        await asyncio.sleep(_RELOAD_EVERY_S)
        number += 1


async def _preempt(scene: Scene) -> None:
    async def come(number: int) -> None:
        await scene.client.create(HIGH.pod(f"first-{number:06}", ASIDE))

    await steadily(scene.load.preemptors, come)


async def _gate(scene: Scene) -> None:
    await scene.client.create_many(
        GATED.pod(f"gated-{index:06}", ASIDE) for index in range(scene.load.gated)
    )


async def _edit_gated(scene: Scene) -> None:
    async def edit(number: int) -> None:
        await scene.client.patch(*gated_pod_edit(number, scene.load.gated))

    await steadily(scene.load.edits, edit)


async def _gone(scene: Scene) -> None:
    await asyncio.to_thread(scene.plane.force_gone)
    await asyncio.Event().wait()


DISTURBANCES: Final = (
    Disturbance("alone"),
    Disturbance("flood", beside=_flood),
    Disturbance("reloads", beside=_reload),
    Disturbance("preemption", beside=_preempt),
    Disturbance("gated", prepare=_gate, beside=_edit_gated),
    Disturbance("relist", beside=_gone, relists=True),
)


class Observed(Berth):
    """berth with its stalls and pauses in a file, in this checkout or in another one.

    Parameters
    ----------
    path
        The file.
    stacks
        Whether stalls say what the loop was doing, which costs a thread that looks.
    """

    program = (str(Path(__file__).with_name("loop_stalls.py")),)

    def __init__(self, checkout: Path | None, path: Path, *, stacks: bool) -> None:
        # Not -m: another checkout may have no such module, and -P leaves its sources the first.
        super().__init__(scheduler_name=SCHEDULER_NAME, checkout=checkout or _HERE)
        self.name = "berth" if checkout is None else f"berth@{checkout}"
        self._path = path
        self._stacks = stacks

    def start(
        self, control_plane: ControlPlane, plugin_config: Sequence[Any] = ()
    ) -> ServerProcess:
        os.environ[VARIABLE] = str(self._path)
        os.environ[STACKS_VARIABLE] = "1" if self._stacks else ""
        return super().start(control_plane, plugin_config)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each contender beside each disturbance, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench tail", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rate", type=int, default=300, help="pods a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each part")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--flood", type=int, default=2000, help="updates a second")
    parser.add_argument("--gated", type=int, default=10_000, help="pods that wait at a gate")
    parser.add_argument("--edits", type=int, default=100, help="changes of these a second")
    parser.add_argument("--preemptors", type=int, default=10, help="a second")
    names = ",".join(each.name for each in DISTURBANCES)
    parser.add_argument("--only", default=names, help=f"disturbances, by commas: {names}")
    parser.add_argument("--contenders", default="berth", help="berth, berth@FOLDER, by commas")
    parser.add_argument("--stacks", action="store_true", help="print what the loop was doing")
    parser.add_argument("--json", type=Path, help="the file that the figures are added to")
    options = parser.parse_args(arguments)
    file = ResultsFile(options.json)
    chosen = options.only.split(",")
    if unknown := set(chosen) - {each.name for each in DISTURBANCES}:
        parser.error(f"no such disturbance: {', '.join(sorted(unknown))}")
    for name in options.contenders.split(","):
        try:
            known = isinstance(contender(name, SCHEDULER_NAME), Berth)
        except ValueError as error:
            parser.error(str(error))
        if not known:
            parser.error(f"{name} has no event loop to look at")
    load = Load(options.flood, options.gated, options.edits, options.preemptors)
    with SavedControlPlane() as plane, tempfile.TemporaryDirectory() as folder:
        stage = Stage(plane)
        stage.arrange(WORKLOAD, options.nodes, WARM_UP)
        for disturbance in DISTURBANCES:
            if disturbance.name not in chosen:
                continue
            for number in range(1, options.rounds + 1):
                for name in options.contenders.split(","):
                    checkout = name.partition("@")[2]
                    observed = Observed(
                        Path(checkout) if checkout else None,
                        Path(folder) / "stalls",
                        stacks=options.stacks,
                    )
                    part = _Part(disturbance, plane, load, options, Path(folder) / "stalls")
                    played, stalls = part.play(stage, observed, number, file.session)
                    put(file.results.tails, played)
                    file.save()
                    print(line(played), flush=True)
                    for stall in stalls if options.stacks else ():
                        if stall.cause != "system":
                            print(stall_line(stall), flush=True)
    return 0


class _Part:
    """One disturbance with one contender."""

    def __init__(
        self,
        disturbance: Disturbance,
        plane: SavedControlPlane,
        load: Load,
        options: argparse.Namespace,
        path: Path,
    ) -> None:
        self._disturbance = disturbance
        self._plane = plane
        self._load = load
        self._options = options
        self._path = path

    def play(
        self, stage: Stage, observed: Observed, number: int, session: int
    ) -> tuple[TailPart, list[Stall]]:
        options, disturbance = self._options, self._disturbance

        def with_client(
            do: Callable[[Scene], Awaitable[None]] | None,
        ) -> Callable[[LoadClient], Awaitable[None]] | None:
            if do is None:
                return None

            async def run(_: LoadClient) -> None:
                # Its own connections: the pods that come do not queue behind a flood.
                async with stage.client() as client:
                    await do(Scene(client, self._plane, options.nodes, self._load))

            return run

        arrivals = Arrivals(
            options.rate,
            round(options.rate * options.seconds),
            with_client(disturbance.prepare),
            beside=with_client(disturbance.beside),
            workload=WORKLOAD,
            relists=disturbance.relists,
        )
        played = arrivals.play(stage, observed, options.nodes, number, session)
        stalls, pauses = read(self._path)
        stalls, pauses = (
            [each for each in found if arrivals.began_s <= each.at_s <= arrivals.ended_s]
            for found in (stalls, pauses)
        )
        return tail_part(disturbance.name, played, stalls, pauses), stalls


def tail_part(
    name: str, played: LatencyRound, stalls: Sequence[Stall], pauses: Sequence[Pause]
) -> TailPart:
    """Return the figures of one part."""
    return TailPart(
        part=name,
        nodes=played.nodes,
        before=played.before,
        rate=played.rate,
        contender=played.contender,
        number=played.number,
        session=played.session,
        pods=played.pods,
        bound=played.bound,
        p50_ms=played.p50_ms,
        p99_ms=played.p99_ms,
        max_ms=played.max_ms,
        longest_stall_ms=_most(each.wall_s for each in stalls),
        longest_own_stall_ms=_most(each.own_s for each in stalls),
        stalls=dict(Counter(each.cause for each in stalls)),
        gc_runs=len(pauses),
        full_gc_runs=sum(each.generation == 2 for each in pauses),
        gc_cpu_ms=sum(each.cpu_s for each in pauses) * 1e3,
        longest_gc_ms=_most(each.cpu_s for each in pauses),
        garbage=sum(each.collected for each in pauses),
        cpu_share=played.cpu_share,
    )


def line(part: TailPart) -> str:
    """Return one part for people."""
    missing = f"  only {part.bound} of {part.pods} bound" if part.bound < part.pods else ""
    causes = ", ".join(
        f"{cause} {part.stalls.get(cause, 0)}" for cause in ("loop", "interpreter", "system")
    )
    return (
        f"{part.part:<11}{part.contender:<8}"
        f" p50 {part.p50_ms:6.1f}  p99 {part.p99_ms:7.1f}  max {part.max_ms:7.1f} ms"
        f" | stalls: longest {part.longest_stall_ms:6.1f},"
        f" own {part.longest_own_stall_ms:6.1f} ms; > 20 ms: {sum(part.stalls.values())}"
        f" ({causes})"
        f" | GC: {part.gc_runs}, CPU {part.gc_cpu_ms:5.0f} ms,"
        f" longest {part.longest_gc_ms:5.1f} ms, full {part.full_gc_runs},"
        f" garbage {part.garbage}"
        f" | CPU {part.cpu_share:4.0%}{missing}"
    )


def stall_line(stall: Stall) -> str:
    """Return one stall for people."""
    return (
        f"    {stall.cause:<11} {stall.wall_s * 1e3:6.1f} ms, CPU {stall.cpu_s * 1e3:6.1f} ms,"
        f" waited {stall.waited_s * 1e3:6.1f} ms, no core {stall.queued_s * 1e3:6.1f} ms"
        f"  {stall.stack}"
    )


def _most(seconds: Iterable[float]) -> float:
    """Return the largest in ms, 0 where there is none."""
    return float(max(seconds, default=0.0) * 1e3)


if __name__ == "__main__":
    sys.exit(main())
