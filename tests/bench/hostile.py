"""``python -m tests.bench hostile``: how long others wait while one tenant is hostile.

One spec after the other stands beside ordinary pods on a real API server. A contender that no
longer binds is ended and started anew from the saved state, so that each spec finds a healthy one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from tests.bench.contenders import NAMES, contender
from tests.bench.hostile_figures import Figures, Round
from tests.bench.latency import WARM_UP
from tests.bench.load_client import BoundWatch
from tests.bench.pod_templates import MEASURED, PLAIN, SCHEDULER_NAME
from tests.bench.process_usage import ProcessUsage
from tests.bench.results import today
from tests.bench.saved_control_plane import SavedControlPlane
from tests.bench.scraping import Scrape, scrape
from tests.bench.stage import Limits, Stage, until_bound
from tests.bench.workloads import BY_NAME as WORKLOADS
from tests.bench.workloads import node_name
from tests.controlplane.api import ApiClient, ApiError
from tests.controlplane.control_plane import free_ports
from tests.hostile import arranging
from tests.hostile.catalogue import BY_NAME, SPECS, ground
from tests.hostile.tenant import Tenant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.contenders import Contender
    from tests.bench.load_client import LoadClient
    from tests.bench.stage import Started
    from tests.hostile.tenant import HostileSpec, Json

DEFAULT_FILE = Path("docs/benchmarks/hostile.json")
WORKLOAD = WORKLOADS["Basic"]

_ORDINARY = 6
_EVERY_S = 0.4
"""Six ordinary pods within two and a half seconds: during the first attempts and those after."""

_CHANGE_EVERY_S = 0.1
_RECOVERY_S = 5.0
"""Who has bound nothing so long after the objects were deleted is started anew."""


@dataclass(frozen=True)
class Measured:
    """A contender and what it is called in the file.

    Attributes
    ----------
    port
        Where its metrics are.
    """

    contender: Contender
    name: str
    commit: str
    port: int

    def scrape(self) -> Scrape | None:
        """Read its metrics; None when it does not answer."""
        return scrape(self.port, https=self.name.startswith("kube-scheduler"))


def measured(name: str) -> Measured:
    """Return a contender with a port of its own.

    Raises
    ------
    ValueError
        There is none of that name.
    """
    port = free_ports(1)[0]
    made = contender(name, SCHEDULER_NAME, port)
    folder = name.partition("@")[2] or "."
    commit = "" if name.startswith("kube") else commit_of(folder)
    return Measured(made, f"berth@{commit}" if "@" in name else name, commit, port)


def commit_of(folder: str) -> str:
    """Return the short name of a checkout's commit."""
    command = ["git", "-C", folder, "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def tenant(nodes: int) -> Tenant:
    """Return a tenant who knows the names of all nodes."""
    return Tenant(SCHEDULER_NAME, tuple(node_name(index) for index in range(nodes)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the file does not hold yet."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench hostile", description=__doc__)
    parser.add_argument("--specs", default="", help="names or their beginnings, by commas; all")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument(
        "--contenders", default="kube-scheduler,berth", help=f"{', '.join(NAMES)}, berth@FOLDER"
    )
    parser.add_argument("--limit", type=float, default=30.0, help="seconds that a pod may wait")
    parser.add_argument("--again", action="store_true", help="measure also what the file holds")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    options = parser.parse_args(arguments)
    try:
        contenders = [measured(name) for name in options.contenders.split(",")]
        specs = chosen(options.specs)
    except (ValueError, subprocess.CalledProcessError) as error:
        parser.error(str(error))
    figures = Figures.load(options.json)
    figures.sessions.append(today(datetime.now(UTC).isoformat(timespec="seconds")))
    with SavedControlPlane() as plane:
        stage = Stage(plane)
        stage.arrange(WORKLOAD, options.nodes, WARM_UP)
        for each in contenders:
            waiting = [
                spec
                for spec in specs
                if options.again
                or not figures.holds("rounds", (spec.name, options.nodes, each.name))
            ]
            play = OneAtATime(plane, stage, each, options.nodes, options.limit)
            for played in play.rounds(waiting, len(figures.sessions) - 1):
                figures.add("rounds", played)
                figures.save(options.json)
                print(line(played), flush=True)
    return 0


def chosen(names: str) -> list[HostileSpec]:
    """Return the specs whose names begin so; all without names.

    Raises
    ------
    ValueError
        None begins so.
    """
    found = []
    for name in filter(None, names.split(",")):
        those = [spec for spec in SPECS if spec.name.startswith(name)]
        if not those:
            raise ValueError(f"no spec begins with {name!r}: {', '.join(BY_NAME)}")
        found += [BY_NAME[name]] if name in BY_NAME else those
    return list(dict.fromkeys(found)) or list(SPECS)


class OneAtATime:
    """Lets one spec after the other stand beside ordinary pods."""

    def __init__(
        self, plane: SavedControlPlane, stage: Stage, who: Measured, nodes: int, limit_s: float
    ) -> None:
        self._plane = plane
        self._stage = stage
        self._who = who
        self._nodes = nodes
        self._tenant = tenant(nodes)
        self._limit_s = limit_s

    def rounds(self, waiting: list[HostileSpec], session: int) -> Any:
        """Yield a round for each spec; a contender that does not recover is started anew."""
        while waiting:
            self._stage.restore()
            with self._stage.running(self._who.contender) as started, asyncio.Runner(
                loop_factory=uvloop.new_event_loop
            ) as runner:  # fmt: skip
                scene = _Scene(self._plane, self._stage, started)
                runner.run(scene.open())
                try:
                    healthy = True
                    while waiting and healthy:
                        played = runner.run(self._play(scene, waiting.pop(0), session))
                        healthy = played.recovered
                        yield played
                finally:
                    runner.run(scene.close())

    async def _play(self, scene: _Scene, spec: HostileSpec, session: int) -> Round:
        objects = list(arranging.by_kind(spec.make(self._tenant)))
        before = await asyncio.to_thread(self._who.scrape)
        await arranging.create(scene.api, objects)
        stirring = asyncio.ensure_future(scene.stir(spec, objects))
        names = [f"{spec.name}-{index}" for index in range(_ORDINARY)]
        created_s = await scene.ordinary(names, _EVERY_S)
        await scene.wait(names, self._limit_s)
        after = await asyncio.to_thread(self._who.scrape)
        rss = scene.rss_mib()
        await _end(stirring)
        with contextlib.suppress(ApiError):
            await arranging.delete(scene.api, objects)
        probe = f"{spec.name}-after"
        await scene.ordinary([probe], 0)
        await scene.wait([probe], _RECOVERY_S)
        bound_s = scene.watch.bound_s
        await scene.delete_ordinary([*names, probe])
        return Round(
            spec=spec.name,
            about=spec.about,
            nodes=self._nodes,
            contender=self._who.name,
            commit=self._who.commit,
            session=session,
            behind_ms=[
                round((bound_s[name] - created_s[name]) * 1e3, 2)
                for name in names
                if name in bound_s
            ],
            pods=len(names),
            limit_s=self._limit_s,
            attempts=after.attempts_since(before) if before and after else None,
            rss_mib=rss,
            rss_after_mib=scene.rss_mib(),
            recovered=scene.alive and all(name in bound_s for name in (*names, probe)),
        )


class _Scene:
    """A contender that runs, and the clients of those who make it work."""

    def __init__(self, plane: SavedControlPlane, stage: Stage, started: Started) -> None:
        self._plane = plane
        self._stack = contextlib.AsyncExitStack()
        self._stage = stage
        self._process = started.process
        self.api: ApiClient
        self.load: LoadClient
        self.watch: BoundWatch

    async def open(self) -> None:
        """Wait until the contender has bound the first pods; make what the tenant counts on."""
        self.api = await self._stack.enter_async_context(ApiClient(self._plane.admin_kubeconfig))
        self.load = await self._stack.enter_async_context(self._stage.client())
        self.watch = BoundWatch(self.load, MEASURED)
        await self.watch.open()
        self._following = asyncio.ensure_future(self.watch.run())
        await until_bound(self.watch, WARM_UP, self._process, [self._following], Limits())
        await self.api.create_many(ground())

    async def close(self) -> None:
        """End the clients."""
        await _end(self._following)
        await self._stack.aclose()

    @property
    def alive(self) -> bool:
        """Whether the contender has not ended."""
        return self._process.running

    def rss_mib(self) -> float:
        """Return the memory of the contender; 0 when it has ended."""
        if not self.alive:
            return 0.0
        return round(ProcessUsage.of(self._process.pid).rss_bytes / 2**20, 1)

    async def ordinary(self, names: list[str], every_s: float) -> dict[str, float]:
        """Create ordinary pods one after the other; return when each was sent."""
        sent_s = {}
        for name in names:
            sent_s[name] = time.monotonic()
            await self.load.create(PLAIN.pod(name, MEASURED))
            await asyncio.sleep(every_s)
        return sent_s

    async def delete_ordinary(self, names: list[str]) -> None:
        """Delete ordinary pods."""
        for name in names:
            await self.load.delete(PLAIN.pod(name, MEASURED))

    async def wait(self, names: list[str], limit_s: float) -> None:
        """Wait until all are bound, the limit is over or the contender has ended."""
        deadline_s = time.monotonic() + limit_s
        while not all(name in self.watch.bound_s for name in names):
            if time.monotonic() > deadline_s or not self.alive:
                return
            await asyncio.sleep(0.02)

    async def stir(self, spec: HostileSpec, objects: list[list[Json]]) -> None:
        """Change what is there, again and again, until cancelled."""
        number = 0
        while spec.change is not None or spec.comes_and_goes:
            await asyncio.sleep(_CHANGE_EVERY_S)
            number += 1
            if spec.change is not None:
                await arranging.change(self.api, spec, objects[0][0], number)
            else:
                await arranging.delete(self.api, objects)
                await arranging.create(self.api, objects)


async def _end(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def line(played: Round) -> str:
    """Return one round for people."""
    worst = played.worst_ms
    behind = f"> {played.limit_s:.0f} s" if worst == float("inf") else f"{worst:.0f} ms"
    attempts = "no answer" if played.attempts is None else f"{played.attempts}"
    return (
        f"{played.contender:<16}{played.spec:<42} behind {behind:>9}"
        f"  RSS {played.rss_mib:.0f}, then {played.rss_after_mib:.0f} MiB"
        f"{'' if played.recovered else '  NOT RECOVERED'}  {attempts}"
    )


if __name__ == "__main__":
    sys.exit(main())
