"""Two replicas of berth on a real API server: who leads, when, and what the audit log saw."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import re
import signal
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.access import USER
from tests.controlplane.api import ApiError
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios import failovers
from tests.scenarios.lease_witness import testify as read_log
from tests.scenarios.replicas import (
    LEADS,
    LEASE,
    LEASE_PATH,
    STANDS_BY,
    TIMES,
    Replica,
    own_kubeconfig,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def outcome(controlplane_binaries) -> failovers.Outcome:
    """One failover of each kind under load; `python -m tests.scenarios.failovers` makes more."""
    return failovers.run(3)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGTERM, id="told to stop"),
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGSTOP, id="stopped for longer than the lease"),
    ],
)
def test_the_next_leader_binds_in_time(outcome, how):
    (failover,) = [each for each in outcome.failovers if each.how is how]
    assert outcome.seconds_to_first_bind(failover) <= failovers.limit_s(how)
    assert failover.exit_status == failovers.wanted_status(how)


def test_each_pod_is_bound_once_whoever_leads(outcome):
    assert outcome.binds_of_each == {1}


def test_nobody_writes_outside_of_its_own_time_as_leader(outcome):
    assert outcome.violations == []
    assert len(outcome.testimony.tenures) == 4
    assert len({write.writer for write in outcome.testimony.writes}) == 4


@pytest.fixture(scope="module")
def plane(controlplane_binaries) -> Iterator[ControlPlane]:
    with failovers.audited_plane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_node("node", cpu="64")])
        yield plane


@pytest.fixture
def api(plane) -> Iterator[BlockingApi]:
    with BlockingApi(plane.admin_kubeconfig) as api:
        yield api


class Stage:
    """Replicas of one test."""

    def __init__(self, plane: ControlPlane, api: BlockingApi, first: int) -> None:
        self.plane = plane
        self.api = api
        self.replicas: list[Replica] = []
        self._next = first
        self.since = dt.datetime.now(dt.UTC)

    def start(self, until: str, kubeconfig: Path | None = None) -> Replica:
        replica = Replica(self.plane, self._next, kubeconfig=kubeconfig)
        self._next += 1
        self.replicas.append(replica)
        wait_until(lambda: replica.has_said(until) or replica.exit_status, f"it is {until}")
        assert replica.exit_status is None, replica.log_tail()
        return replica

    def kubeconfig(self) -> Path:
        return own_kubeconfig(self.plane, self._next)

    def lease(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.get(LEASE_PATH)
        return found

    def binds(self, name: str) -> None:
        """Return once a new pod is bound."""
        self.api.create_many([make_pod(name, cpu="1m")])
        path = f"/api/v1/namespaces/default/pods/{name}"
        wait_until(lambda: self.api.get(path)["spec"].get("nodeName"), f"{name} is bound")


@pytest.fixture
def stage(plane, api) -> Iterator[Stage]:
    stage = Stage(plane, api, next(first_numbers))
    try:
        yield stage
    finally:
        for replica in stage.replicas:
            replica.end()
        with contextlib.suppress(ApiError):  # one of them may have deleted it
            api.delete(LEASE_PATH)


first_numbers = itertools.count(1_000, 1_000)


def metric(replica: Replica, name: str) -> float:
    with urllib.request.urlopen(f"http://{replica.address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(rf"^{re.escape(name)} (.*)$", text, re.MULTILINE)
    assert found is not None, f"{name} is not there"
    return float(found[1])


def is_ready(replica: Replica) -> bool:
    with urllib.request.urlopen(f"http://{replica.address}/readyz", timeout=10) as answer:
        return answer.status == 200


def test_the_lease_says_what_kubectl_and_other_tools_read(stage):
    leader = stage.start(LEADS)
    spec = stage.lease()["spec"]
    assert spec["holderIdentity"] == leader.identity
    assert spec["leaseDurationSeconds"] == TIMES.lease_s
    assert spec["leaseTransitions"] == 0
    for name in ("acquireTime", "renewTime"):
        age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(spec[name])
        assert dt.timedelta(0) <= age < dt.timedelta(minutes=2)
    wait_until(lambda: stage.lease()["spec"]["renewTime"] != spec["renewTime"], "it renews")
    assert stage.lease()["spec"]["acquireTime"] == spec["acquireTime"]


def test_a_standby_is_ready_keeps_its_cache_and_writes_nothing(stage):
    leader = stage.start(LEADS)
    standby = stage.start(STANDS_BY)
    stage.api.create_many([make_node("late", cpu="64")])
    stage.binds("while-standing-by")
    assert is_ready(leader)
    assert is_ready(standby)
    assert metric(leader, 'leader_election_master_status{name="berth"}') == 1
    assert metric(standby, 'leader_election_master_status{name="berth"}') == 0
    assert (metric(leader, "berth_leader"), metric(standby, "berth_leader")) == (1, 0)
    wait_until(
        lambda: metric(standby, 'scheduler_cache_size{type="nodes"}') == 2, "it has seen the node"
    )
    stage.api.delete("/api/v1/nodes/late")
    # The standby has a token of its own; by it nothing was written in all this time.
    identity = {each.identity: each.writer for each in read(stage).tenures}
    writers = {write.writer for write in read(stage).writes}
    assert identity[leader.identity] in writers
    standby.signal(signal.SIGTERM)
    wait_until(lambda: standby.exit_status is not None, "the standby ends")
    assert standby.exit_status == 0
    assert standby.identity not in {each.identity for each in read(stage).tenures}
    assert read(stage).violations(TIMES.lease_s) == []


def read(stage: Stage) -> Any:
    events = [
        event
        for event in stage.plane.audit_events()
        if dt.datetime.fromisoformat(event["requestReceivedTimestamp"]) >= stage.since
    ]
    return read_log(events, user=USER, lease=LEASE)


def test_a_lease_deleted_under_its_holder_is_made_again_and_nobody_else_leads(stage):
    leader = stage.start(LEADS)
    standby = stage.start(STANDS_BY)
    # Who has never seen the holder of a Lease that is gone makes it at once.
    wait_until(lambda: standby.said("leader seen", "leader") == leader.identity, "it knows whose")
    before = stage.lease()["metadata"]["uid"]
    stage.api.delete(LEASE_PATH)

    def made_again() -> bool:
        try:
            return bool(stage.lease()["metadata"]["uid"] != before)
        except ApiError:
            return False

    wait_until(made_again, "the lease is made again")
    assert stage.lease()["spec"]["holderIdentity"] == leader.identity
    stage.binds("after-deletion")
    assert leader.exit_status is None
    assert not standby.has_said(LEADS)


def test_a_leader_whose_lease_another_takes_ends_with_1_and_writes_nothing_more(stage):
    leader = stage.start(LEADS)
    stage.binds("before-the-taking")
    standby = stage.start(STANDS_BY)
    stage.api.patch(LEASE_PATH, {"spec": {"holderIdentity": "somebody-else"}})
    wait_until(lambda: leader.exit_status is not None, "it ends")
    assert leader.exit_status == 1
    assert "somebody-else" in leader.said("leadership lost", "why")
    # The standby respects whoever it is for the duration of the lease, and leads then.
    wait_until(lambda: standby.has_said(LEADS), "the standby leads")
    stage.binds("after-the-taking")
    assert stage.lease()["spec"]["leaseTransitions"] == 1
    assert read(stage).violations(TIMES.lease_s) == []


def test_a_leader_that_was_stopped_for_a_moment_goes_on(stage):
    leader = stage.start(LEADS)
    leader.signal(signal.SIGSTOP)
    leader.signal(signal.SIGCONT)
    stage.binds("after-the-moment")
    assert leader.exit_status is None
    assert read(stage).violations(TIMES.lease_s) == []


def test_labels_on_the_lease_survive_and_disturb_nobody(stage):
    leader = stage.start(LEADS)
    stage.api.patch(LEASE_PATH, {"metadata": {"labels": {"team": "storage"}}})
    renewed = stage.lease()["spec"]["renewTime"]
    wait_until(lambda: stage.lease()["spec"]["renewTime"] != renewed, "it renews")
    assert stage.lease()["metadata"]["labels"] == {"team": "storage"}
    assert leader.exit_status is None


def test_a_leader_that_the_api_server_does_not_answer_ends_before_its_lease_does(stage):
    with Partition(stage.plane) as partition:
        kubeconfig = partition.kubeconfig(stage.kubeconfig())
        leader = stage.start(LEADS, kubeconfig)
        standby = stage.start(STANDS_BY)
        stage.binds("before-the-partition")
        partition.begin()
        wait_until(lambda: leader.exit_status is not None, "the leader ends")
        assert leader.exit_status == 1
        assert "could not be renewed" in leader.said("leadership lost", "why")
        wait_until(lambda: standby.has_said(LEADS), "the standby leads")
        ended = next(line for line in leader.lines() if line["event"] == "leadership lost")
        began = next(line for line in standby.lines() if line["event"] == LEADS)
        assert ended["timestamp"] < began["timestamp"]
        stage.binds("behind-the-partition")
    assert read(stage).violations(TIMES.lease_s) == []


class Partition:
    """A network between a replica and the API server that can fall silent."""

    def __init__(self, plane: ControlPlane) -> None:
        import asyncio
        import threading

        from tests.scheduler.informers.tcp_proxy import TcpProxy

        self._plane = plane
        self._loop = asyncio.new_event_loop()
        self._run = lambda work: asyncio.run_coroutine_threadsafe(work, self._loop).result()
        self._thread = threading.Thread(target=self._loop.run_forever, name="partition")
        self._proxy = TcpProxy(int(plane.url.rpartition(":")[2]))

    def __enter__(self) -> Partition:
        self._thread.start()
        self._run(self._proxy.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._proxy.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def kubeconfig(self, direct: Path) -> Path:
        through = f"https://127.0.0.1:{self._proxy.port}"
        direct.write_text(direct.read_text().replace(self._plane.url, through))
        return direct

    def begin(self) -> None:
        self._loop.call_soon_threadsafe(self._proxy.freeze)


def test_a_standby_told_to_stop_ends_with_0_and_leaves_the_lease_alone(stage):
    leader = stage.start(LEADS)
    standby = stage.start(STANDS_BY)
    standby.signal(signal.SIGTERM)
    wait_until(lambda: standby.exit_status is not None, "the standby ends")
    assert standby.exit_status == 0
    assert stage.lease()["spec"]["holderIdentity"] == leader.identity
