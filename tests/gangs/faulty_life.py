"""Gangs, single pods and preemptors under faults (``make gangs KIND=faults``).

Two replicas of Berth reach a real API server through a proxy that lets binds fail. In the middle of
a gang the leader is killed, later the API server is away, and nodes die with a part of a gang. What
controllers would do is done here: pods of a dead node are deleted and made anew. Then gangs of a
high priority need room that others have, and at last nodes die that nobody can replace. When
nothing changes any more, the API server says what is left of each gang.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import tempfile
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.failing_proxy import BINDS, FailingProxy, Fault
from tests.controlplane.metrics import scrape
from tests.controlplane.pod_groups import (
    FIELD_API,
    LABEL_API,
    groups_path,
    install_x_pod_groups,
)
from tests.devices.histories import PODS_PATH, pod_history
from tests.gangs.crowd import HIGH, Crowd
from tests.scenarios.lease_witness import POLICY
from tests.scenarios.replicas import LEADS, STANDS_BY, TIMES, Replica, own_kubeconfig, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scheduler.leader_election import ElectionTimes
    from tests.devices.histories import PodVersion
    from tests.gangs.gangs import Gang

FAULTS: Final = (
    Fault.CONFLICT,
    Fault.ERROR_BEFORE,
    Fault.ANSWER_LOST,
    Fault.ERROR_AFTER,
    Fault.NOT_SENT,
    Fault.NO_ANSWER,
)
_DEADLINE_S: Final = 90.0
_REST_DEADLINE_S: Final = 240.0
_POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is, and how much fails.

    Attributes
    ----------
    room
        The CPU of the nodes as a multiple of what gangs and single pods ask for, without the gangs
        of a high priority, which shall need room of others.
    gangs
        Without priority; half of them of each API.
    preemptors
        Gangs of a high priority.
    binds
        The share of binds that fail.
    away_s
        How long the API server is away.
    last_nodes
        How many nodes die at the end.
    quiet_s
        When no pod has changed for so long, all are at rest, if Berth says so as well.
    """

    room: float = 1.15
    gangs: int = 40
    singles: int = 60
    preemptors: int = 4
    binds: float = 0.15
    away_s: float = 8.0
    last_nodes: int = 4
    quiet_s: float = 15.0
    seed: int = 1
    times: ElectionTimes = TIMES


@dataclass(frozen=True, slots=True)
class Life:
    """What happened, and what is left at rest, as the API server has it.

    Attributes
    ----------
    gangs
        All gangs that were created, preemptors included.
    cache
        What Berth says of its cache and its queue (``/debug/cache``).
    log
        The audit log.
    """

    size: Size
    gangs: Sequence[Gang]
    preemptors: Sequence[Gang]
    nodes: Sequence[Mapping[str, Any]]
    pods: Sequence[Mapping[str, Any]]
    groups: Sequence[Mapping[str, Any]]
    versions: Sequence[PodVersion]
    cache: Mapping[str, Any]
    metrics: str
    log: Sequence[Mapping[str, Any]]
    requests: Mapping[str, int]
    failed: Mapping[tuple[str, Fault], int]
    acts: Sequence[tuple[str, float]]
    is_at_rest: bool


def live(size: Size, say: Callable[[str], object] = lambda _: None) -> Life:
    """Let all of it happen."""
    with (
        _audited_plane() as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        FailingProxy(plane, {BINDS: size.binds}, size.seed, FAULTS) as proxy,
    ):
        install_x_pod_groups(plane)
        play = _Play(plane, api, proxy, size, say)
        try:
            with play.pods.following(api):
                return play.run()
        finally:
            play.end()


@contextlib.contextmanager
def _audited_plane() -> Iterator[ControlPlane]:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as policy:
        yaml.safe_dump(dict(POLICY), policy)
        policy.flush()
        arguments = [f"--audit-policy-file={policy.name}"]
        with ControlPlane(load=True, pod_groups=True, extra_apiserver_args=arguments) as plane:
            yield plane


class _Play:
    def __init__(
        self,
        plane: ControlPlane,
        api: BlockingApi,
        proxy: FailingProxy,
        size: Size,
        say: Callable[[str], object],
    ) -> None:
        self._plane, self._api, self._proxy, self._size = plane, api, proxy, size
        self._say = say
        self._replicas: list[Replica] = []
        self._acts: list[tuple[str, float]] = []
        self._begun_s = time.monotonic()
        self.pods = pod_history(lists_again=True)
        self._crowd = Crowd(api, self.pods, size.seed)

    def run(self) -> Life:
        crowd, size = self._crowd, self._size
        waves = crowd.make_gangs(size.gangs, preemptors=size.preemptors)
        crowd.create_nodes_for(itertools.chain(*waves[:-1]), size.singles, size.room)
        self._start(2)
        self._kill_leader_in_mid_gang(waves[0])
        self._take_api_server_away_in_mid_gang(waves[1])
        self._kill_node_in_mid_gang(waves[2])
        self._act("gangs of a high priority need the room of others")
        crowd.create(waves[3], HIGH)
        self._become_whole(waves[3])
        for node in crowd.nodes_with_a_part()[: size.last_nodes]:
            crowd.kill_node(node)
        self._act(f"{size.last_nodes} more nodes die, and nobody brings new ones")
        is_at_rest = self._rest()
        return self._life(waves[3], is_at_rest=is_at_rest)

    def end(self) -> None:
        """End what still runs."""
        for replica in self._replicas:
            replica.end()

    # --- acts ---------------------------------------------------------------------------------

    def _kill_leader_in_mid_gang(self, gangs: Sequence[Gang]) -> None:
        self._act("gangs and single pods come")
        leader = self._leader()
        self._crowd.create_singles(self._size.singles)
        self._crowd.create(gangs)
        self._wait(self._crowd.partial, "a gang is bound in part")
        leader.signal(signal.SIGKILL)
        self._act(f"{leader} is killed while {self._crowd.partial()} gangs are bound in part")
        wait_until(lambda: leader.exit_status is not None, "the leader is gone")
        self._start(1)
        self._become_whole(gangs)

    def _take_api_server_away_in_mid_gang(self, gangs: Sequence[Gang]) -> None:
        self._crowd.create(gangs)
        self._wait(self._crowd.partial, "a gang is bound in part")
        self._plane.kill_apiserver()
        self._act("the API server is killed while gangs are bound in part")
        time.sleep(self._size.away_s)
        self._plane.start_apiserver()
        self._act("the API server is back")
        self._start(2 - len(self._running()))
        self._become_whole(gangs)

    def _kill_node_in_mid_gang(self, gangs: Sequence[Gang]) -> None:
        self._crowd.create(gangs)
        self._wait(self._crowd.nodes_with_a_part, "a node has a part of a gang")
        node = self._crowd.nodes_with_a_part()[0]
        lost = self._crowd.kill_node(node)
        self._act(f"{node} dies with {lost} pods while gangs are bound")
        self._crowd.create_nodes(1)
        self._become_whole(gangs)

    def _become_whole(self, gangs: Sequence[Gang]) -> None:
        try:
            self._wait(lambda: all(map(self._crowd.is_whole, gangs)), "all gangs are whole")
        except TimeoutError:  # what is left at rest may break a promise
            names = [gang.name for gang in gangs if not self._crowd.is_whole(gang)]
            self._act(f"not whole after {_DEADLINE_S:.0f} s: {', '.join(names)}")

    def _rest(self) -> bool:
        """Return whether nothing changes any more before the time is up."""
        deadline_s = time.monotonic() + _REST_DEADLINE_S
        count, since_s = -1, time.monotonic()
        while time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
            self.pods.check()
            self._crowd.collect()
            if len(self.pods.versions) != count:
                count, since_s = len(self.pods.versions), time.monotonic()
            elif time.monotonic() - since_s > self._size.quiet_s:
                self._act("all is at rest")
                return True
        return False

    # --- Berth --------------------------------------------------------------------------------

    def _start(self, count: int) -> None:
        for _ in range(count):
            self._add_replica()
        self._wait(lambda: all(x.has_said(STANDS_BY) for x in self._running()), "all stand by")
        self._wait(lambda: any(x.has_said(LEADS) for x in self._running()), "one of them leads")

    def _add_replica(self) -> None:
        number = len(self._replicas) + 1
        kubeconfig = self._proxy.kubeconfig(own_kubeconfig(self._plane, number))
        times = self._size.times
        self._replicas.append(Replica(self._plane, number, kubeconfig=kubeconfig, times=times))

    def _running(self) -> list[Replica]:
        return [each for each in self._replicas if each.exit_status is None]

    def _leader(self) -> Replica:
        return next(each for each in self._running() if each.has_said(LEADS))

    # --- what is seen -------------------------------------------------------------------------

    def _life(self, preemptors: Sequence[Gang], *, is_at_rest: bool) -> Life:
        self._wait(lambda: any(x.has_said(LEADS) for x in self._running()), "one of them leads")
        leader = self._leader()
        cache, metrics = _debug_cache(leader.address), scrape(leader.address)
        leader.signal(signal.SIGTERM)
        wait_until(lambda: leader.exit_status is not None, "Berth ends")
        groups = [
            group
            for path in (FIELD_API, LABEL_API)
            for group in self._api.list_all(groups_path(path))
        ]
        return Life(
            size=self._size,
            gangs=self._crowd.gangs,
            preemptors=preemptors,
            nodes=self._api.list_all("/api/v1/nodes"),
            pods=self._api.list_all(PODS_PATH),
            groups=groups,
            versions=self.pods.versions,
            cache=cache,
            metrics=metrics,
            log=list(self._plane.audit_events()),
            requests=dict(self._proxy.requests),
            failed=dict(self._proxy.failed),
            acts=self._acts,
            is_at_rest=is_at_rest,
        )

    def _act(self, what: str) -> None:
        self._acts.append((what, time.monotonic() - self._begun_s))
        self._say(f"{self._acts[-1][1]:6.1f} s  {what}")

    def _wait(self, holds: Callable[[], object], what: str) -> None:
        def holds_and_runs() -> object:
            self.pods.check()
            self._crowd.collect()
            while len(self._running()) < min(len(self._replicas), 2):
                # One that loses its lease ends, and a kubelet would start it again.
                self._add_replica()
            return holds()

        wait_until(holds_and_runs, what, timeout_s=_DEADLINE_S)


def _debug_cache(address: str) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{address}/debug/cache", timeout=60) as answer:
        report: dict[str, Any] = json.load(answer)
    return report


def faults_of(life: Life) -> Counter[Fault]:
    """Return how many binds failed in each way."""
    return Counter({fault: count for (_, fault), count in life.failed.items()})
