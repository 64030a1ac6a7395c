"""Pods with devices come and go while binds fail and the leader is killed; the API is the witness.

Two replicas of Berth reach a real API server through a proxy that lets binds and writes of claims
fail. In the middle the leader is killed (SIGKILL) and the standby takes over. When all pods are
bound they are deleted. The audit log and the watches say what was written, by whom and how often.
"""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scheduler.leader_election import ElectionTimes
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.failing_proxy import BINDS, CLAIMS, FailingProxy
from tests.controlplane.metrics import metric_sum, scrape
from tests.devices.claim_writes import audited_plane
from tests.devices.cluster import claim_controller, create_devices, create_template, pod_of_template
from tests.devices.histories import PODS_PATH, claim_history, pod_history
from tests.scenarios.replicas import LEADS, STANDS_BY, Replica, own_kubeconfig, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.controlplane.control_plane import ControlPlane
    from tests.controlplane.failing_proxy import Fault
    from tests.devices.histories import ClaimVersion, PodVersion

_BATCH: Final = 50
_AT_ONE_TIME: Final = 32
_DEADLINE_S: Final = 600.0
_TIMES: Final = ElectionTimes()


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is, and how much fails.

    Attributes
    ----------
    devices
        Of each node.
    count
        Devices that each pod requests.
    binds, claims
        The share of binds, and of writes to claims, that fail.
    """

    pods: int = 2000
    nodes: int = 500
    devices: int = 8
    count: int = 2
    binds: float = 0.1
    claims: float = 0.1
    seed: int = 1
    times: ElectionTimes = _TIMES


@dataclass(frozen=True, slots=True)
class Life:
    """What happened, as the API server has it.

    Attributes
    ----------
    events
        The audit log.
    bound_after_s
        When each pod was bound, in seconds after the first was created.
    took_over_s
        From the kill of the leader to the first bind of the next one.
    free
        Devices that Berth reports as free at the end.
    """

    size: Size
    events: Sequence[Mapping[str, Any]]
    claims: Sequence[ClaimVersion]
    pods: Sequence[PodVersion]
    requests: Mapping[str, int]
    failed: Mapping[tuple[str, Fault], int]
    bound_in_s: float
    freed_in_s: float
    took_over_s: float
    bound_by_the_killed: int
    free: float
    left: Sequence[str]


def live(size: Size, say: Callable[[str], object] = lambda _: None) -> Life:
    """Let all pods be bound and deleted."""
    rates = {BINDS: size.binds, CLAIMS: size.claims}
    with (
        audited_plane() as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        claim_controller(plane),
        FailingProxy(plane, rates, size.seed) as proxy,
    ):
        create_devices(api, size.nodes, size.devices)
        create_template(api, "gpus", size.count)
        replicas: list[Replica] = []
        play = _Play(plane, api, proxy, size, say, replicas)
        try:
            with play.claims.following(api), play.pods.following(api):
                return play.run()
        finally:
            for replica in replicas:
                replica.end()


class _Play:
    def __init__(
        self,
        plane: ControlPlane,
        api: BlockingApi,
        proxy: FailingProxy,
        size: Size,
        say: Callable[[str], object],
        replicas: list[Replica],
    ) -> None:
        self._plane, self._api, self._proxy, self._size = plane, api, proxy, size
        self._say = say
        self._replicas = replicas
        self.claims, self.pods = claim_history(), pod_history()

    def run(self) -> Life:
        size = self._size
        leader, standby = self._start_both()
        self._say(f"{size.nodes} nodes with {size.nodes * size.devices} devices; Berth leads")
        began_s = time.monotonic()
        killed_s, by_killed = self._create_and_kill(leader)
        self._say(f"{by_killed} pods are bound, and the leader is killed")
        self._wait(lambda: standby.has_said(LEADS), "the standby leads")
        self._wait(lambda: self._bound() > by_killed, "the standby binds")
        took_over_s = time.monotonic() - killed_s
        self._say(f"the standby binds pods after {took_over_s:.1f} s")
        self._wait(lambda: self._bound() >= size.pods, "all pods are bound")
        bound_in_s = time.monotonic() - began_s
        self._say(f"all {size.pods} pods are bound after {bound_in_s:.1f} s; they are deleted")
        began_s = time.monotonic()
        self._delete_all()
        self._wait(lambda: not self.claims.latest, "all claims are gone")
        freed_in_s = time.monotonic() - began_s
        self._say(f"no claim is left after {freed_in_s:.1f} s")
        total = size.nodes * size.devices
        wait_until(lambda: _free(standby) == total, "Berth knows that all devices are free")
        free = _free(standby)
        standby.signal(signal.SIGTERM)
        wait_until(lambda: standby.exit_status is not None, "Berth ends")
        return Life(
            size=size,
            events=list(self._plane.audit_events()),
            claims=self.claims.versions,
            pods=self.pods.versions,
            requests=dict(self._proxy.requests),
            failed=dict(self._proxy.failed),
            bound_in_s=bound_in_s,
            freed_in_s=freed_in_s,
            took_over_s=took_over_s,
            bound_by_the_killed=by_killed,
            free=free,
            left=[each.name for each in self.claims.latest.values()],
        )

    def _start_both(self) -> tuple[Replica, Replica]:
        """Start two replicas; return the one that leads, and the one that stands by."""
        for number in (1, 2):
            kubeconfig = self._proxy.kubeconfig(own_kubeconfig(self._plane, number))
            times = self._size.times
            started = Replica(self._plane, number, kubeconfig=kubeconfig, times=times)
            self._replicas.append(started)
        first, second = self._replicas
        self._wait(lambda: all(x.has_said(STANDS_BY) for x in self._replicas), "both stand by")
        self._wait(lambda: any(x.has_said(LEADS) for x in self._replicas), "one of them leads")
        return (first, second) if first.has_said(LEADS) else (second, first)

    def _create_and_kill(self, leader: Replica) -> tuple[float, int]:
        """Create all pods, and kill the leader when half of them are bound."""
        names = [f"p{index:05}" for index in range(self._size.pods)]
        half = self._size.pods // 2
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            self._api.create_many([pod_of_template(name, "gpus") for name in batch])
            if leader.exit_status is None and self._bound() >= half:
                break
        else:
            start = len(names)
        self._wait(lambda: self._bound() >= half, "half of the pods are bound")
        leader.signal(signal.SIGKILL)
        killed_s = time.monotonic()
        wait_until(lambda: leader.exit_status is not None, "the leader is gone")
        by_killed = self._bound()
        rest = names[start + _BATCH :]
        self._api.create_many(pod_of_template(name, "gpus") for name in rest)
        return killed_s, by_killed

    def _delete_all(self) -> None:
        waiting = [pod.name for pod in list(self.pods.latest.values())]
        client = self._api.client

        async def delete() -> None:
            while waiting:
                await client.delete(f"{PODS_PATH}/{waiting.pop()}")

        async def delete_all() -> None:
            await asyncio.gather(*(delete() for _ in range(_AT_ONE_TIME)))

        self._api.run(delete_all())

    def _bound(self) -> int:
        self.pods.check()
        return sum(bool(each.node) for each in list(self.pods.latest.values()))

    def _wait(self, holds: Callable[[], object], what: str) -> None:
        def holds_and_runs() -> object:
            self.claims.check()
            self.pods.check()
            for replica in self._replicas:
                if replica.exit_status not in (None, 137):
                    raise AssertionError(f"{replica} ended:\n{replica.log_tail()}")
            return holds()

        wait_until(holds_and_runs, what, timeout_s=_DEADLINE_S)


def _free(replica: Replica) -> float:
    return metric_sum(scrape(replica.address), "berth_devices", state="free")
