"""Mixed load on a real API server, with a journal of each replica: what ``berth replay`` proves.

Two replicas share a Lease, and each writes a journal of its own. Pods of many kinds come and go,
some evict others; nodes come, go and change; the configuration file and a plugin are changed again
and again, with mistakes among the changes. A third of the time in, the leader is killed; after
another third the next one is told to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import math
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from scheduler.leader_election import ElectionTimes
from tests.controlplane.api import ApiClient, ApiError, collection_path
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.fake_provisioner import FakeProvisioner
from tests.controlplane.objects import make_namespace
from tests.controlplane.pod_groups import install_x_pod_groups
from tests.journal_hours.node_churn import NodeChurn
from tests.journal_hours.policies import CODES, write_config, write_plugin
from tests.journal_hours.workload import CLASSES, DRIVER, NAMESPACES, SLOW, STORAGE_CLASS, Workload
from tests.scenarios.replicas import LEADS, STANDS_BY, Replica

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from tests.journal_hours.workload import Json

TIMES: Final = ElectionTimes(lease_s=15.0, renew_s=10.0, retry_s=2.0)
_WAIT_S: Final = 600.0
_FILES: Final = 12
"""A journal of the whole time has at least so many files."""

_WAVE_S: Final = 240.0
"""From one time when the cluster is full to the next."""

_LOST: Final = (ApiError, aiohttp.ClientError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Size:
    """How much happens.

    Attributes
    ----------
    rate
        Pods a second, more or less: a gang comes at once.
    """

    minutes: float = 60.0
    rate: float = 16.0
    nodes: int = 150
    seed: int = 1


@dataclass(slots=True)
class Happened:
    """What happened.

    Attributes
    ----------
    journals
        The directory of each replica's journal, in the order of their starts.
    acts
        What was done to replicas, and when, in seconds.
    slow_ends
        How many pods took some time to end, evicted or deleted.
    """

    size: Size
    journals: list[Path] = field(default_factory=list)
    acts: list[tuple[float, str]] = field(default_factory=list)
    pods: int = 0
    node_changes: Counter[str] = field(default_factory=Counter)
    configs: int = 0
    plugins: int = 0
    slow_ends: int = 0


def live(size: Size, directory: Path, say: Callable[[str], object]) -> Happened:
    """Let all of it happen; journals and plugins are in the directory afterwards."""
    arguments = ["--event-ttl=5m0s"]
    with ControlPlane(
        audit=False, load=True, pod_groups=True, extra_apiserver_args=arguments
    ) as plane:
        install_x_pod_groups(plane)
        manager = start_controller_manager(plane)
        play = _Play(plane, size, directory, say)
        try:
            with BlockingApi(plane.admin_kubeconfig) as api, FakeProvisioner(api, DRIVER):
                asyncio.run(play.run())
        finally:
            manager.kill()
            play.end()
        return play.happened


class _Play:
    def __init__(
        self, plane: ControlPlane, size: Size, directory: Path, say: Callable[[str], object]
    ) -> None:
        self._plane, self._size, self._directory, self._say = plane, size, directory, say
        self._rng = random.Random(size.seed)
        self._api = ApiClient(plane.admin_kubeconfig)
        self._begun_s = time.monotonic()
        self._ends_s = self._begun_s + size.minutes * 60
        self._going: list[tuple[float, int, Json]] = []
        self._numbers = itertools.count()
        self._replicas: list[Replica] = []
        self._plugins = directory / "plugins"
        self.happened = Happened(size)

    async def run(self) -> None:
        """Let it happen until the time is up."""
        size = self._size
        write_plugin(self._plugins, "good")
        async with self._api:
            churn = NodeChurn(self._api, size.seed + 1, size.nodes)
            await self._create_ground()
            await churn.begin()
            self.happened.node_changes = churn.changes
            # The first leader starts alone: the times of acts count from its first decision.
            await self._add_replica()
            await self._until(lambda: self._leader() is not None, "one leads")
            await self._add_replica()
            self._begun_s = time.monotonic()
            self._ends_s = self._begun_s + size.minutes * 60
            life_s = size.nodes * 8.5 / size.rate
            workload = Workload(size.seed, life_s)
            policy_s = max(size.minutes * 60 / 60, 6.0)
            tasks = [
                self._load(workload),
                self._every(3.0, churn.change),
                self._every(policy_s, self._change_config),
                self._every(policy_s * 1.7, self._change_plugin),
                self._every(7.0, self._change_others),
                self._reap(),
                self._be_kubelet(),
                self._end_leaders(),
                self._restart(),
            ]
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(task)
            await self._stop_all()

    def end(self) -> None:
        """End what still runs."""
        for replica in self._replicas:
            replica.end()

    # --- load ---------------------------------------------------------------------------------

    async def _create_ground(self) -> None:
        classes: list[Json] = [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": "Never" if name.startswith("never") else "PreemptLowerPriority",
            }
            for name, value in CLASSES.items()
        ]
        storage = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        namespaces = [make_namespace(name, {"team": name[-1]}) for name in NAMESPACES]
        await self._api.create_many([*namespaces, *classes, storage])

    async def _load(self, workload: Workload) -> None:
        begun_s, pods = time.monotonic(), 0
        while (now_s := time.monotonic()) < self._ends_s:
            phase = math.sin((now_s - begun_s) / _WAVE_S * 2 * math.pi)
            wave = workload.next(1.15 + 0.35 * phase)
            for manifest in wave.objects:
                with contextlib.suppress(*_LOST):
                    await self._api.post(collection_path(manifest), manifest)
                at_s = now_s + wave.life_s
                heapq.heappush(self._going, (at_s, next(self._numbers), manifest))
            pods += wave.pods
            self.happened.pods = pods
            # A machine that is busy makes fewer of them instead of a burst.
            due_s = begun_s + pods / self._size.rate
            begun_s += max(time.monotonic() - due_s - 5.0, 0.0)
            await asyncio.sleep(max(due_s - time.monotonic(), 0.0))

    async def _reap(self) -> None:
        while time.monotonic() < self._ends_s:
            while self._going and self._going[0][0] <= time.monotonic():
                _, _, manifest = heapq.heappop(self._going)
                await self._delete(manifest)
            await asyncio.sleep(0.1)

    async def _delete(self, manifest: Json) -> None:
        path = f"{collection_path(manifest)}/{manifest['metadata']['name']}"
        with contextlib.suppress(*_LOST):
            await self._api.delete(path)
        if manifest["kind"] == "PersistentVolumeClaim":
            with contextlib.suppress(*_LOST):
                await self._api.patch(path, {"metadata": {"finalizers": None}})

    async def _be_kubelet(self) -> None:
        """End pods that take some time for it."""
        path, selector = "/api/v1/pods", f"{SLOW}=yes"

        async def end(pod: Json) -> None:
            self.happened.slow_ends += 1
            await asyncio.sleep(self._rng.uniform(0.2, 4.0))
            await self._delete({**pod, "kind": "Pod"})

        async with asyncio.TaskGroup() as group:
            while time.monotonic() < self._ends_s:
                with contextlib.suppress(*_LOST):
                    async with asyncio.timeout(self._ends_s - time.monotonic()):
                        async for pod in self._leaving(path, selector):
                            group.create_task(end(pod))

    async def _leaving(self, path: str, selector: str) -> Any:
        """Yield each pod that begins to leave, once."""
        seen: set[str] = set()
        _, version = await self._api.list_with_version(path, labelSelector=selector)
        watch = self._api.watch(path, resource_version=version, labelSelector=selector)
        async with contextlib.aclosing(watch) as events:
            async for event in events:
                pod = event["object"]
                uid = pod["metadata"]["uid"]
                if event["type"] == "DELETED":
                    seen.discard(uid)
                elif pod["metadata"].get("deletionTimestamp") and uid not in seen:
                    seen.add(uid)
                    yield pod

    # --- changes ------------------------------------------------------------------------------

    async def _change_config(self) -> None:
        self.happened.configs += 1
        for replica in self._running():
            write_config(replica.config_file, self.happened.configs)

    async def _change_plugin(self) -> None:
        self.happened.plugins += 1
        names = tuple(CODES)
        write_plugin(self._plugins, names[self.happened.plugins % len(names)])

    async def _change_others(self) -> None:
        """Create or change a Service, a budget, or the labels of the namespace."""
        rng = self._rng
        app, namespace = rng.choice(("web", "db", "cache")), rng.choice(NAMESPACES)
        kind = rng.choice(("Service", "PodDisruptionBudget", "Namespace"))
        if kind == "Namespace":
            labels = {"team": rng.choice("abc")}
            path = f"/api/v1/namespaces/{namespace}"
            await self._api.patch(path, {"metadata": {"labels": labels}})
            return
        spec: Json = {"selector": {"app": app}, "ports": [{"port": 80}]}
        version = "v1"
        if kind == "PodDisruptionBudget":
            spec = {"selector": {"matchLabels": {"app": app}}, "maxUnavailable": rng.randint(1, 5)}
            version = "policy/v1"
        manifest = {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": f"x{next(self._numbers)}", "namespace": namespace},
            "spec": spec,
        }
        await self._api.post(collection_path(manifest), manifest)
        at_s = time.monotonic() + rng.uniform(10, 60)
        heapq.heappush(self._going, (at_s, next(self._numbers), manifest))

    async def _every(self, period_s: float, act: Callable[[], Awaitable[None]]) -> None:
        while time.monotonic() + period_s < self._ends_s:
            await asyncio.sleep(period_s * self._rng.uniform(0.5, 1.5))
            with contextlib.suppress(*_LOST):
                await act()

    # --- replicas -----------------------------------------------------------------------------

    async def _end_leaders(self) -> None:
        for part, how in ((1 / 3, signal.SIGKILL), (2 / 3, signal.SIGTERM)):
            at_s = self._begun_s + self._size.minutes * 60 * part
            await asyncio.sleep(max(at_s - time.monotonic(), 0.0))
            leader = self._leader()
            if leader is None:
                continue
            leader.signal(how)
            self._act(f"{leader} leads, and is sent {how.name}")
            ended = (leader, None)
            await self._until(lambda e=ended: self._leader() not in e, "another leads")  # type: ignore[misc]
            self._act(f"{self._leader()} leads")

    async def _restart(self) -> None:
        """Start a replica for one that has ended, as a kubelet does."""
        while time.monotonic() < self._ends_s:
            await asyncio.sleep(1.0)
            for replica in self._replicas:
                if replica.exit_status is not None and str(replica) not in self._told():
                    self._act(f"{replica} ended with {replica.exit_status}")
                    await self._add_replica()
                    break

    def _told(self) -> set[str]:
        return {what.partition(" ended")[0] for _, what in self.happened.acts if " ended" in what}

    async def _add_replica(self) -> None:
        number = len(self._replicas) + 1
        journal = self._directory / f"journal-{number}"
        state = self._directory / f"state-{number}"
        # A file is begun each twelfth of the time, and deleted after two thirds of it: no replica
        # leads for so long.
        age_s = max(int(self._size.minutes * 60 / _FILES * 8), 8)
        flags = ["--journal", str(journal), "--journal-max-age", str(age_s)]
        # Beside other work on the machine, ten milliseconds for a call are soon over.
        flags += ["--plugin-budget", "0.03"]
        flags += ["--plugin-dir", str(self._plugins), "--state-dir", str(state)]
        replica = Replica(self._plane, number, times=TIMES, flags=flags)
        write_config(replica.config_file, self.happened.configs)
        self._replicas.append(replica)
        self.happened.journals.append(journal)
        await self._until(
            lambda: replica.has_said(STANDS_BY) or replica.exit_status is not None,
            f"{replica} stands by",
        )
        # One ends at once if it is started while the plugin that its profiles need is no Python.
        if replica.exit_status is None:
            self._act(f"{replica} stands by")

    def _running(self) -> Sequence[Replica]:
        return [each for each in self._replicas if each.exit_status is None]

    def _leader(self) -> Replica | None:
        return next((each for each in self._running() if each.has_said(LEADS)), None)

    async def _until(self, holds: Callable[[], object], what: str) -> None:
        ends_s = time.monotonic() + _WAIT_S
        while not holds():
            if time.monotonic() > ends_s:
                raise TimeoutError(f"not within {_WAIT_S:.0f} s: {what}")
            await asyncio.sleep(0.2)

    async def _stop_all(self) -> None:
        leader = self._leader()
        for replica in sorted(self._running(), key=lambda each: each is leader):
            replica.signal(signal.SIGTERM)
            await self._until(lambda r=replica: r.exit_status is not None, f"{replica} ends")  # type: ignore[misc]
            self._act(f"{replica} stopped with {replica.exit_status}")

    def _act(self, what: str) -> None:
        at_s = time.monotonic() - self._begun_s
        self.happened.acts.append((at_s, what))
        self._say(f"{at_s:7.1f} s  {what}")
