"""Forecasts beside what happens then on a real API server with a running Berth (make what-if)."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from scheduler.offline.live import list_cluster
from scheduler.process.log_setup import configure_logging
from tests.controlplane.api import ApiClient
from tests.controlplane.binaries import find_or_build
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.what_if.actions import CONFIG, KINDS, first_nodes, kind_of, random_action
from tests.what_if.comparison import MORE_SEEDS, SEEDS, Outcome, Told, ask, differences
from tests.what_if.config_moves import moves
from tests.what_if.kubelets import Kubelets
from tests.what_if.life import CONTROLLERS, Scene
from tests.what_if.workloads import daemon_set

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tests.what_if.actions import Action
    from tests.what_if.kubelets import Happening

BINARIES = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]
CLASSES = {"high": 1000, "agents": 2000}
MOST_SHARE = 0.97


class Row(NamedTuple):
    """One action: the forecast, and what happened.

    Attributes
    ----------
    pods
        Pods with a node afterwards, those that are missing, and those that could not be evicted,
        as forecast and in fact.
    seed
        The seed whose forecast has the outcome: the same numbers for each workload. None if no
        seed has.
    is_but_for_victims
        Whether pods are preempted and a forecast has the outcome for all that nobody preempts.
    distinct
        How many different outcomes the first forecasts had.
    same_nodes, placed
        Of the pods with a node, how many are on a node that has as many by the first forecast.
    why
        What differs from the first forecast.
    """

    number: int
    kind: str
    pods: tuple[tuple[int, int], ...]
    seed: int | None
    is_but_for_victims: bool
    distinct: int
    same_nodes: int
    placed: int
    why: tuple[str, ...]

    def __str__(self) -> str:
        numbers = "  ".join(
            f"{name} {told:3} / {seen:3}"
            for name, (told, seen) in zip(("placed", "missing", "blocked"), self.pods, strict=True)
        )
        verdict = "as forecast" if self.seed == 0 else f"as with seed {self.seed}"
        if self.seed is None:
            verdict = "as forecast but for victims" if self.is_but_for_victims else "DIFFERENT"
        return (
            f"{self.number:4} {self.kind:14} {numbers}  "
            f"{self.distinct:2} outcomes of {SEEDS}  {verdict}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 0 when every outcome was as a forecast, 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m tests.what_if", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="actions")
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--traces", type=Path, help="a folder for what differs (a new one)")
    options = parser.parse_args(arguments)
    if options.traces is None:
        options.traces = Path(tempfile.mkdtemp(prefix=f"what-if-{options.seed}-"))
    options.traces.mkdir(exist_ok=True)
    find_or_build(BINARIES)
    configure_logging("console", "error")
    with ControlPlane(audit=False) as plane:
        manager = start_controller_manager(plane, CONTROLLERS)
        try:
            rows = asyncio.run(_campaign(plane, options))
        finally:
            manager.kill()
    return _report(rows, options)


async def _campaign(plane: ControlPlane, options: argparse.Namespace) -> list[Row]:
    chance = random.Random(options.seed)
    rows = []
    async with ApiClient(plane.admin_kubeconfig) as api:
        for name, value in CLASSES.items():
            await api.post(
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                {"metadata": {"name": name}, "value": value},
            )
        nodes = first_nodes(chance, options.nodes)
        await api.create_many(nodes)
        kubelets = Kubelets(api)
        running = asyncio.create_task(kubelets.run())
        scene = Scene(plane, api, kubelets)
        try:
            await scene.restart_berth()
            await api.create_many([daemon_set()])
            await scene.rest()
            for number in range(options.count):
                names, apps = await scene.node_names(), list(scene.workloads)
                action = random_action(chance, number, kind_of(number), names, apps)
                rows.append(await _round(scene, kubelets, action, number, options.traces))
                sys.stdout.write(f"{rows[-1]}\n")
                for line in rows[-1].why if rows[-1].seed != 0 else ():
                    sys.stdout.write(f"       {line}\n")
                sys.stdout.flush()
                await scene.tidy(action, nodes, MOST_SHARE)
        finally:
            await scene.stop_berth()
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
    return rows


async def _round(
    scene: Scene, kubelets: Kubelets, action: Action, number: int, traces: Path
) -> Row:
    if action.kind == CONFIG:
        return await _config_round(scene, action, number)
    await scene.prepare(action)
    objects = await list_cluster(str(scene.kubeconfig), limits=True)
    told = [ask(objects, action.question, seed) for seed in range(SEEDS)]
    began, since = len(kubelets.happenings), time.monotonic()
    blocked = await scene.do(action)
    seen = Outcome.of(
        await scene.state(), Counter("-".join(each.split("-")[:2]) for each in blocked)
    )
    nodes = Counter(
        pod["spec"]["nodeName"]
        for pod in (await scene.pods()).values()
        if pod["spec"].get("nodeName")
    )
    distinct = len({each.outcome for each in told})
    seed = _seed_of(seen, told, objects, action)
    important = scene.important()
    row = Row(
        number,
        action.kind,
        _numbers(told[0].outcome, seen),
        seed,
        any(
            each.forecast.preempted and each.outcome.among(important) == seen.among(important)
            for each in told
        ),
        distinct,
        (told[0].nodes & nodes).total(),
        nodes.total(),
        tuple(differences(told[0].outcome, seen)),
    )
    if seed is None:
        happened = kubelets.happenings[began:]
        _write_trace(traces / f"{number}.json", objects, action, row, happened, since, scene, told)
    return row


def _seed_of(seen: Outcome, told: list[Told], objects: list[Any], action: Action) -> int | None:
    for seed, each in enumerate(told):
        if each.outcome == seen:
            return seed
    for seed in range(SEEDS, SEEDS + MORE_SEEDS):
        if ask(objects, action.question, seed).outcome == seen:
            return seed
    return None


async def _config_round(scene: Scene, action: Action, number: int) -> Row:
    claims = await moves(scene, action)
    false = [each for each in claims if not each.is_true]
    told = sum(each.told == "moves" for each in claims)
    seen = sum(each.told == "moves" and each.is_true for each in claims)
    return Row(
        number,
        action.kind,
        ((told, seen), (0, 0), (0, 0)),
        None if false else 0,
        False,
        1,
        0,
        0,
        tuple(map(str, false)),
    )


def _numbers(told: Outcome, seen: Outcome) -> tuple[tuple[int, int], ...]:
    def sums(outcome: Outcome) -> tuple[int, int, int]:
        counts = [each for _, each in outcome.workloads]
        blocked = sum(count for _, count in outcome.blocked)
        return sum(each[0] for each in counts), sum(each[1] for each in counts), blocked

    return tuple(zip(sums(told), sums(seen), strict=True))


def _write_trace(
    path: Path,
    objects: list[Any],
    action: Action,
    row: Row,
    happened: Sequence[Happening],
    since: float,
    scene: Scene,
    told: Sequence[Told],
) -> None:
    """Write all that is needed to see why an outcome differs from its forecasts."""
    trace = {
        "kind": action.kind,
        "question": action.question,
        "why": row.why,
        "happened": [str(each._replace(at_s=each.at_s - since)) for each in happened],
        "kubectl": scene.said_by_kubectl.splitlines(),
        "outcomes": [each.outcome for each in told],
        "forecast": told[0].forecast,
        "objects": objects,
    }
    path.write_bytes(msgspec.json.encode(trace))
    sys.stdout.write(f"       trace: {path}\n")


def _report(rows: Sequence[Row], options: argparse.Namespace) -> int:
    out = sys.stdout.write
    placed = sum(row.placed for row in rows)
    same = sum(row.same_nodes for row in rows)
    out(f"seed {options.seed}: {same} of {placed} pods on the nodes of the first forecast\n")
    columns = "actions", "as forecast", "with another seed", "but for victims", "different"
    out(f"{'':16} {'  '.join(columns)}\n")
    for kind in (*KINDS, ""):
        of_kind = [row for row in rows if not kind or row.kind == kind]
        no_seed = [row for row in of_kind if row.seed is None]
        counts = (
            len(of_kind),
            sum(row.seed == 0 for row in of_kind),
            sum(bool(row.seed) for row in of_kind),
            sum(row.is_but_for_victims for row in no_seed),
            sum(not row.is_but_for_victims for row in no_seed),
        )
        cells = (f"{n:{len(name)}}" for n, name in zip(counts, columns, strict=True))
        out(f"{kind or 'in all':16} {'  '.join(cells)}\n")
    return int(any(row.seed is None and not row.is_but_for_victims for row in rows))


if __name__ == "__main__":
    sys.exit(main())
