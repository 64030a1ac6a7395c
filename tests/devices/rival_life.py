"""Berth and kube-scheduler allocate from one pool of devices, which is nearly full all the time.

Pods of both ask for a device each, are deleted some seconds after they are bound, and are replaced.
There are more pods than devices, so that both schedulers reach for each device that becomes free.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import free_ports
from tests.controlplane.metrics import scrape
from tests.controlplane.peer import start_kube_scheduler
from tests.devices.claim_writes import audited_plane
from tests.devices.cluster import claim_controller, create_devices, create_template, pod_of_template
from tests.devices.histories import PODS_PATH, claim_history, pod_history
from tests.scenarios.replicas import LEADS, Replica, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.controlplane.api import ApiClient
    from tests.devices.histories import ClaimVersion, History, PodVersion

BERTH: Final = "berth"
KUBE_SCHEDULER: Final = "default-scheduler"

_TICK_S: Final = 0.05
_PODS_A_TICK: Final = 20
_SHORTEST_S: Final = 0.5
_DEADLINE_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Contest:
    """How large the pool is, and how many pods want devices of it.

    Attributes
    ----------
    devices
        Of each node.
    pods
        Of each scheduler, at any time.
    lifetime_s
        How long a pod is bound, on average.
    separated
        Whether each scheduler has half of the devices for itself, by classes of its own.
    """

    seconds: float = 300.0
    nodes: int = 25
    devices: int = 4
    pods: int = 80
    lifetime_s: float = 5.0
    seed: int = 1
    separated: bool = False


@dataclass(frozen=True, slots=True)
class Rivalry:
    """What happened, as the API server has it.

    Attributes
    ----------
    in_use
        The mean share of the devices that were allocated.
    metrics
        Of each scheduler, by its name.
    errors
        Of the attempts of Berth that failed with an error.
    """

    contest: Contest
    events: Sequence[Mapping[str, Any]]
    claims: Sequence[ClaimVersion]
    pods: Sequence[PodVersion]
    in_use: float
    metrics: Mapping[str, str]
    errors: Sequence[str]
    left: Sequence[str]


def compete(contest: Contest, say: Callable[[str], object] = lambda _: None) -> Rivalry:
    """Let both schedulers allocate until the time is up, and all pods go."""
    (port,) = free_ports(1)
    with (
        audited_plane() as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        claim_controller(plane),
    ):
        owners = (BERTH, KUBE_SCHEDULER) if contest.separated else ("",)
        create_devices(api, contest.nodes, contest.devices, owners)
        for name in (BERTH, KUBE_SCHEDULER):
            create_template(api, name, 1, name if contest.separated else "")
        berth = Replica(plane, 1)
        other = start_kube_scheduler(plane, https_port=port)
        try:
            wait_until(lambda: berth.has_said(LEADS), "Berth leads")
            claims, pods = claim_history(), pod_history()
            total = contest.nodes * contest.devices
            say(f"{total} devices, {2 * contest.pods} pods that want one, {contest.seconds:g} s")
            tenants = _Tenants(contest, claims, pods, say)
            with claims.following(api), pods.following(api):
                api.run(tenants.run(api.client))
                wait_until(lambda: not claims.latest, "all claims are gone", timeout_s=_DEADLINE_S)
            return Rivalry(
                contest=contest,
                events=list(plane.audit_events()),
                claims=claims.versions,
                pods=pods.versions,
                in_use=fmean(tenants.in_use),
                metrics={
                    BERTH: scrape(berth.address),
                    KUBE_SCHEDULER: scrape(f"127.0.0.1:{port}", "https"),
                },
                errors=[
                    str(line.get("error", ""))
                    for line in berth.lines()
                    if line.get("event") == "scheduling failed"
                ],
                left=[each.name for each in claims.latest.values()],
            )
        finally:
            berth.end()
            other.kill()


@dataclass(slots=True)
class _Tenants:
    """Create pods of both schedulers, and delete each some time after it is bound."""

    contest: Contest
    claims: History[ClaimVersion]
    pods: History[PodVersion]
    say: Callable[[str], object]
    in_use: list[float] = field(default_factory=list)
    _due_s: dict[str, float] = field(default_factory=dict)
    _alive: dict[str, str] = field(default_factory=dict)
    _created: int = 0

    async def run(self, api: ApiClient) -> None:
        contest, rng = self.contest, random.Random(self.contest.seed)
        ends_s = time.monotonic() + contest.seconds
        says_s = time.monotonic() + contest.seconds / 5
        while time.monotonic() < ends_s:
            await self._create(api)
            await self._delete(api, rng)
            self._sample()
            if time.monotonic() > says_s:
                says_s += contest.seconds / 5
                self.say(f"{self._created} pods so far, {self.in_use[-1]:.0%} of devices in use")
            await asyncio.sleep(_TICK_S)
        left = list(self.pods.latest.values())
        await asyncio.gather(*(api.delete(f"{PODS_PATH}/{pod.name}") for pod in left))

    async def _create(self, api: ApiClient) -> None:
        manifests = []
        for scheduler in (BERTH, KUBE_SCHEDULER):
            alive = sum(each == scheduler for each in self._alive.values())
            for _ in range(min(self.contest.pods - alive, _PODS_A_TICK)):
                name = f"{scheduler}-{self._created:06}"
                manifests.append(pod_of_template(name, scheduler, scheduler))
                self._created += 1
        created = await api.create_many(manifests)
        for pod in created:
            self._alive[pod["metadata"]["uid"]] = pod["spec"]["schedulerName"]

    async def _delete(self, api: ApiClient, rng: random.Random) -> None:
        self.claims.check()
        self.pods.check()
        now_s, over = time.monotonic(), []
        for uid, pod in list(self.pods.latest.items()):
            if pod.node and uid in self._alive:
                lifetime_s = _SHORTEST_S + rng.expovariate(1 / self.contest.lifetime_s)
                if self._due_s.setdefault(uid, now_s + lifetime_s) <= now_s:
                    over.append(pod)
        await asyncio.gather(*(api.delete(f"{PODS_PATH}/{pod.name}") for pod in over))
        for pod in over:
            del self._alive[pod.uid], self._due_s[pod.uid]

    def _sample(self) -> None:
        used = {device for claim in self.claims.latest.values() for device in claim.devices}
        self.in_use.append(len(used) / (self.contest.nodes * self.contest.devices))
