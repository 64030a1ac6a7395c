"""``python -m tests.bench soak``: what grows in a process in which everything is always fresh.

berth runs as a process of its own against a real API server. Pods, nodes, namespaces, Services,
budgets, claims and SchedulingProfiles come at a steady rate, each with identities that nobody has
seen before, and go again after half a minute: how many there are stays the same. Once a minute
memory and the size of every table of the process are written down.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import time
import urllib.request
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvloop

from scheduler.client.errors import ApiError
from tests.bench import fresh_objects
from tests.bench.contenders import Berth
from tests.bench.load_client import LoadClient
from tests.bench.process_usage import ProcessUsage
from tests.bench.results import Session, today
from tests.bench.tables import table
from tests.controlplane.control_plane import ControlPlane, free_ports
from tests.controlplane.objects import make_node
from tests.controlplane.scheduling_profiles import PATH as PROFILES
from tests.controlplane.scheduling_profiles import SchedulingProfiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.controlplane.server_process import ServerProcess

Json = dict[str, Any]

DEFAULT_FILE = Path("docs/benchmarks/soak.json")

_LIFE_S = 30.0
_NODES = 100
"""Besides those that come and go."""

_NAMESPACES = 3
"""In use at a time."""

_WARM_MIN = 5
"""From here on nothing may grow: everything that is filled once is filled by then."""

_QUIET_S = 45.0
"""After the last object has gone, until the last sample."""


class Sample(msgspec.Struct, frozen=True):
    """The process at one moment.

    Attributes
    ----------
    made
        How many objects there have been.
    tables
        Items of each table by name; those that are empty are left out.
    bounded
        Those of them that a limit in number or bytes holds: what is remembered.
    """

    minute: float
    what: str
    rss_mib: float
    cpu_s: float
    made: int
    bound: int
    tables: dict[str, int]
    table_bytes: int
    bounded: dict[str, int] = {}


class Soak(msgspec.Struct):
    """One run."""

    session: Session
    rate: float
    minutes: float
    samples: list[Sample] = []

    def save(self, path: Path) -> None:
        """Write the file and the page beside it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        samples = b",\n".join(map(msgspec.json.encode, self.samples))
        head = msgspec.json.encode(
            {"session": self.session, "rate": self.rate, "minutes": self.minutes}
        )
        path.write_bytes(b'%b,"samples":[\n%b\n]}\n' % (head[:-1], samples))
        path.with_suffix(".md").write_text(page(self), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and return 1 when a table has grown."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=12.0, help="pods a second")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    options = parser.parse_args(arguments)
    session = today(datetime.now(UTC).isoformat(timespec="seconds"))
    soak = Soak(session, options.rate, options.minutes)
    with ControlPlane(
        audit=False, load=True, extra_apiserver_args=["--event-ttl=5m0s"]
    ) as plane:  # fmt: skip
        port = free_ports(1)[0]
        berth = Berth(http_port=port, flags=["--scheduling-profiles"])
        plane.berth_kubeconfig()
        SchedulingProfiles(plane).install()
        process = berth.start(plane)
        try:
            run = _Run(plane, process, port, soak, options.json)
            uvloop.run(run.run())
        finally:
            process.kill()
    print(page(soak))
    return int(bool(grown(soak)))


class _Run:
    """Makes and deletes objects, and takes samples.

    Attributes
    ----------
    made
        How many objects there have been.
    """

    def __init__(
        self, plane: ControlPlane, process: ServerProcess, port: int, soak: Soak, path: Path
    ) -> None:
        self._plane = plane
        self._process = process
        self._port = port
        self._soak = soak
        self._path = path
        self._client: LoadClient
        self._going: deque[tuple[float, Json]] = deque()
        self._namespaces: deque[str] = deque()
        self._scheduler_names: deque[str] = deque(["berth"])
        self._begun_s = time.monotonic()
        self._bound: dict[str, float] = {}
        self.made = 0

    async def run(self) -> None:
        """Run for the time of the soak, and once more look when all has gone."""
        async with LoadClient(self._plane.admin_kubeconfig) as self._client:
            await self._client.create_many(
                make_node(f"node-{index:03}", pods="1000", zone=f"zone-{index % 3}")
                for index in range(_NODES)
            )
            self._begun_s = time.monotonic()
            ends_s = self._begun_s + self._soak.minutes * 60
            async with asyncio.TaskGroup() as group:
                rate = self._soak.rate
                group.create_task(self._every(20.0, ends_s, self._new_namespace))
                await asyncio.sleep(0.5)
                group.create_task(self._every(1 / rate, ends_s, self._new_pod))
                group.create_task(self._every(2.0, ends_s, self._new_node))
                group.create_task(self._every(1.0, ends_s, self._new_service))
                group.create_task(self._every(2.0, ends_s, self._new_budget))
                group.create_task(self._every(10.0, ends_s, self._new_profile))
                group.create_task(self._sample(ends_s))
                group.create_task(self._reap(ends_s))
            await self._delete_all()
            await asyncio.sleep(min(_QUIET_S, self._soak.minutes * 60))
            self._take("after all has gone")

    async def _every(self, period_s: float, ends_s: float, make: Callable[[int], Any]) -> None:
        begun_s, number = time.monotonic(), 0
        while (due_s := begun_s + number * period_s) < ends_s:
            await asyncio.sleep(max(due_s - time.monotonic(), 0.0))
            # A namespace may have begun to go between the choice of it and the request.
            with contextlib.suppress(ApiError):
                await make(number)
            number += 1

    async def _make(self, manifest: Json, life_s: float = _LIFE_S) -> None:
        await self._client.create(manifest)
        self.made += 1
        self._going.append((time.monotonic() + life_s, manifest))

    async def _new_namespace(self, number: int) -> None:
        await self._make(fresh_objects.namespace(number), 20.0 * _NAMESPACES + 2 * _LIFE_S)
        self._namespaces.append(f"ns-{number}")
        if len(self._namespaces) > _NAMESPACES:
            self._namespaces.popleft()

    async def _new_pod(self, number: int) -> None:
        namespace = self._namespaces[number % len(self._namespaces)]
        name = self._scheduler_names[number % len(self._scheduler_names)]
        if number % fresh_objects.KINDS == fresh_objects.WITH_CLAIM:
            await self._make(fresh_objects.claim(number, namespace))
        await self._make(fresh_objects.pod(number, namespace, name))

    async def _new_node(self, number: int) -> None:
        await self._make(fresh_objects.node(number))

    async def _new_service(self, number: int) -> None:
        await self._make(fresh_objects.service(number, self._namespaces[-1]))

    async def _new_budget(self, number: int) -> None:
        await self._make(fresh_objects.budget(number, self._namespaces[-1]))

    async def _new_profile(self, number: int) -> None:
        """Make a profile for a name of its own; the ones before it go, and their pods with them."""
        name = f"soak-{number}"
        strategy = {
            "type": "LeastAllocated",
            "resources": [{"name": "cpu", "weight": number % 99 + 1}],
        }
        manifest = {
            "apiVersion": "scheduling.berth.dev/v1alpha1",
            "kind": "SchedulingProfile",
            "metadata": {"name": name},
            "spec": {
                "schedulerName": name,
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
                ],
            },
        }
        await self._client.transport.request("POST", PROFILES, body=msgspec.json.encode(manifest))
        self.made += 1
        self._going.append((time.monotonic() + 2 * _LIFE_S, manifest))
        self._scheduler_names.append(name)
        if len(self._scheduler_names) > 3:
            del self._scheduler_names[1]

    async def _reap(self, ends_s: float) -> None:
        while (now_s := time.monotonic()) < ends_s:
            # Lives differ, so what is due may stand behind what is not.
            due = [manifest for at_s, manifest in self._going if at_s <= now_s]
            self._going = deque(each for each in self._going if each[0] > now_s)
            for manifest in due:
                await self._delete(manifest)
            await asyncio.sleep(0.2)

    async def _delete_all(self) -> None:
        # Pods first: a namespace goes when it is empty.
        for manifest in sorted(
            (manifest for _, manifest in self._going), key=lambda each: each["kind"] == "Namespace"
        ):
            await self._delete(manifest)
        self._going.clear()

    async def _delete(self, manifest: Json) -> None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        request = self._client.transport.request
        with contextlib.suppress(ApiError):
            if kind == "SchedulingProfile":
                await request("DELETE", f"{PROFILES}/{name}")
            elif kind == "PersistentVolumeClaim":
                await self._client.delete(manifest)
                path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}"
                await request(
                    "PATCH",
                    f"{path}/persistentvolumeclaims/{name}",
                    body=b'{"metadata":{"finalizers":null}}',
                    content_type="application/merge-patch+json",
                )
            else:
                await self._client.delete(manifest)
            if kind == "Namespace":
                # No controller empties it here: it is empty, and this is what one would do then.
                left = await self._client.get(f"/api/v1/namespaces/{name}")
                left["spec"]["finalizers"] = []
                await request(
                    "PUT",
                    f"/api/v1/namespaces/{name}/finalize",
                    body=msgspec.json.encode(left),
                )

    async def _sample(self, ends_s: float) -> None:
        for minute in range(1, int(self._soak.minutes) + 1):
            due_s = min(self._begun_s + minute * 60, ends_s)
            await asyncio.sleep(max(due_s - time.monotonic(), 0.0))
            await asyncio.to_thread(self._take, f"{minute} min")

    def _take(self, what: str) -> None:
        tables = _ask_tables(self._port)
        usage = ProcessUsage.of(self._process.pid)
        sample = Sample(
            minute=round((time.monotonic() - self._begun_s) / 60, 2),
            what=what,
            rss_mib=round(usage.rss_bytes / 2**20, 1),
            cpu_s=round(usage.cpu_s, 1),
            made=self.made,
            bound=self._ask_bound(),
            tables={name: each["items"] for name, each in sorted(tables.items()) if each["items"]},
            table_bytes=sum(each["bytes"] for each in tables.values()),
            bounded={
                name: each["bounded"] for name, each in sorted(tables.items()) if each["bounded"]
            },
        )
        self._soak.samples.append(sample)
        self._soak.save(self._path)
        print(
            f"{what:>20}  RSS {sample.rss_mib:6.1f} MiB  CPU {sample.cpu_s:7.1f} s"
            f"  {sample.made} made, {sample.bound} bound"
            f"  {sum(sample.tables.values())} items in {len(sample.tables)} tables",
            flush=True,
        )

    def _ask_bound(self) -> int:
        """Return how many pods berth has bound by its own count, for profiles that are gone too."""
        for line in _ask(self._port, "/metrics").decode().splitlines():
            if line.startswith("scheduler_schedule_attempts_total") and '"scheduled"' in line:
                series, _, count = line.rpartition(" ")
                self._bound[series] = float(count)
        return round(sum(self._bound.values()))


def _ask(port: int, path: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.read()


def _ask_tables(port: int) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads(_ask(port, "/debug/cache?tables"))
    return found


def grown(soak: Soak) -> dict[str, list[int]]:
    """Return the tables that have grown since everything was warm: items by sample.

    A table that goes up and down has grown when its smallest size of the last third is above its
    largest of the first third of that time, by a fifth and by fifty items. What a limit holds is
    left aside: memories are filled once.
    """
    warm = min(_WARM_MIN, soak.minutes / 3)
    samples = [each for each in soak.samples if each.minute >= warm - 0.1 and "min" in each.what]
    third = max(len(samples) // 3, 1)
    if len(samples) < 2:
        return {}
    found = {}
    for name in sorted({name for sample in samples for name in sample.tables}):
        items = [sample.tables.get(name, 0) - sample.bounded.get(name, 0) for sample in samples]
        least, most = min(items[-third:]), max(items[:third])
        if least > most * 1.2 and least > most + 50:
            found[name] = items
    return found


def page(soak: Soak) -> str:
    """Return the page."""
    last = soak.minutes
    marks = [each for each in soak.samples if each.what in {f"{n} min" for n in (1, 5, 30, 60)}]
    finals = [each for each in soak.samples if "min" in each.what][-1:]
    marks += [each for each in finals if each not in marks]
    marks += [each for each in soak.samples if "min" not in each.what]
    names = sorted(
        {name for each in marks for name in each.tables},
        key=lambda name: (-max(each.tables.get(name, 0) for each in marks), name),
    )
    bold = grown(soak)
    session = soak.session
    parts = [
        "# Soak",
        f"{last:g} minutes, {soak.rate:g} pods a second beside nodes, namespaces, Services, "
        "budgets, claims and SchedulingProfiles, all with new identities; each object is deleted "
        f"after {_LIFE_S:.0f} s or soon thereafter. `make soak` generates this page; `soak.json` "
        "has every minute.",
        f"- {session.cores} cores of {session.processor}, {session.memory_gib:.0f} GiB, Linux "
        f"{session.kernel}, {session.python}; commit {session.commit or 'unknown'}",
        "## Memory",
        table(
            ["", *(each.what for each in marks)],
            [
                ["RSS, MiB", *(f"{each.rss_mib:.0f}" for each in marks)],
                ["tables, MiB", *(f"{each.table_bytes / 2**20:.1f}" for each in marks)],
                ["CPU, s", *(f"{each.cpu_s:.0f}" for each in marks)],
                ["objects made", *(str(each.made) for each in marks)],
                ["pods bound", *(str(each.bound) for each in marks)],
            ],
        ),
        "## Tables",
        f"Items of all tables of one kind together; those with fewer than {_FEW} are omitted. "
        + (f"Grown: {', '.join(f'`{name}`' for name in bold)}." if bold else "No table has grown."),
        table(
            ["", *(each.what for each in marks)],
            [
                [f"`{name}`", *(str(each.tables.get(name, 0)) for each in marks)]
                for name in names
                if name in bold or max(each.tables.get(name, 0) for each in marks) >= _FEW
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


_FEW = 100
"""Tables that never have so many items are in the JSON alone."""


if __name__ == "__main__":
    sys.exit(main())
