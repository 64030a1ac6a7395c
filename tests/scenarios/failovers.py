"""Leaders that end under load, one after another, and the audit log as the witness.

    python -m tests.scenarios.failovers --count 20

Two replicas share a Lease while pods keep coming. In turn the leader is told to stop (SIGTERM),
killed (SIGKILL), or stopped for longer than its lease and then let go on (SIGSTOP, SIGCONT). The
API server's audit log then says how long it took until the next leader bound a pod, that no pod
was bound twice, and that nobody wrote anything outside of its own time as leader.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import itertools
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import yaml

from tests.controlplane.access import USER
from tests.controlplane.audit import bind_records, check_binds
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.lease_witness import POLICY, Testimony, testify, writer_of
from tests.scenarios.replicas import LEADS, LEASE, STANDS_BY, TIMES, Replica, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

NODES: Final = 100
PODS_A_SECOND: Final = 40
BINDS_A_ROUND: Final = 20
"""How many pods a leader has bound before it ends: it shall end in the middle of work."""

STOPPED_S: Final = TIMES.lease_s + 2.0
AFTER_TERM_S: Final = 2.0
AFTER_EXPIRY_S: Final = TIMES.lease_s + 2.0


@dataclass(frozen=True, slots=True)
class Failover:
    """How one leader ended.

    Attributes
    ----------
    at
        When it was told to stop, killed or stopped.
    exit_status
        128 + the signal for one that was killed.
    """

    how: signal.Signals
    at: dt.datetime
    old: str
    new: str
    exit_status: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of failovers came to."""

    failovers: Sequence[Failover]
    testimony: Testimony
    pods: int
    binds_of_each: frozenset[int]
    """How many binds of a pod were carried out: {1} is what is wanted."""
    violations: Sequence[str]

    def seconds_to_first_bind(self, failover: Failover) -> float:
        """Return how long after the end of a leader the next one bound a pod."""
        tenure = next(t for t in self.testimony.tenures if t.identity == failover.new)
        first = min(
            write.at
            for write in self.testimony.writes
            if write.writer == tenure.writer and write.code == 201 and "/binding" in write.what
        )
        return (first - failover.at).total_seconds()


class Load:
    """Pods that keep coming, from ``with`` to its end."""

    def __init__(self, api: BlockingApi) -> None:
        self._api = api
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self.created = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        batch = PODS_A_SECOND // 4
        while not self._stopped.wait(0.25):
            numbers = range(self.created, self.created + batch)
            self._api.create_many(make_pod(f"load-{i:06}", cpu="1m") for i in numbers)
            self.created += batch


class Succession:
    """Two replicas at any time: the leader and the next one."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._numbers = itertools.count(1)
        self._started: list[Replica] = []
        self.leader = self.start()
        wait_until(lambda: self.leader.has_said(LEADS), "the first replica leads")
        self.standby = self.start()

    def start(self) -> Replica:
        """Start a replica, and return once it stands by."""
        replica = Replica(self._plane, next(self._numbers))
        self._started.append(replica)

        def ready() -> bool:
            if replica.exit_status is not None:
                raise AssertionError(f"{replica} ended:\n{replica.log_tail()}")
            return replica.has_said(STANDS_BY)

        wait_until(ready, f"{replica} stands by")
        return replica

    def fail_over(self, how: signal.Signals) -> Failover:
        """End the leader in the middle of work; afterwards the standby leads, and has a standby."""
        old, new = self.leader, self.standby
        wait_until(lambda: bound_by(old) >= BINDS_A_ROUND, f"{old} is at work")
        at = dt.datetime.now(dt.UTC)
        stopped_s = time.monotonic()
        old.signal(how)
        wait_until(lambda: new.has_said(LEADS) and bound_by(new) > 0, f"{new} binds pods")
        if how is signal.SIGSTOP:
            wait_until(lambda: time.monotonic() - stopped_s > STOPPED_S, "the lease is over")
            old.signal(signal.SIGCONT)
        wait_until(lambda: old.exit_status is not None, f"{old} ends")
        self.leader, self.standby = new, self.start()
        return Failover(how, at, old.identity, new.identity, old.exit_status)

    def end(self) -> None:
        """End all replicas, the standby first, as a user would."""
        for replica in (self.standby, self.leader):
            replica.signal(signal.SIGTERM)
            wait_until(lambda r=replica: r.exit_status is not None, f"{replica} ends")  # type: ignore[misc]

    def clean_up(self) -> None:
        """Leave nothing running."""
        for replica in self._started:
            replica.end()


def bound_by(replica: Replica) -> int:
    """Return how many pods a replica says that it has bound."""
    line = 'scheduler_schedule_attempts_total{profile="berth",result="scheduled"} '
    try:
        with urllib.request.urlopen(f"http://{replica.address}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return 0
    return int(float(next((e.split()[-1] for e in text.splitlines() if e.startswith(line)), "0")))


@contextlib.contextmanager
def audited_plane() -> Iterator[ControlPlane]:
    """A control plane whose audit log names who writes what into Leases."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as policy:
        yaml.safe_dump(dict(POLICY), policy)
        policy.flush()
        with ControlPlane(extra_apiserver_args=[f"--audit-policy-file={policy.name}"]) as plane:
            yield plane


def run(count: int, *, say: bool = False) -> Outcome:
    """Let `count` leaders end, and ask the audit log what happened."""
    kinds = (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)
    with audited_plane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many(make_node(f"node-{i:03}", cpu="64", pods="1000") for i in range(NODES))
        succession = Succession(plane)
        try:
            with Load(api) as load:
                failovers = []
                for number, how in zip(range(1, count + 1), itertools.cycle(kinds), strict=False):
                    failovers.append(succession.fail_over(how))
                    if say:
                        print(f"{number:3} {how.name:8} {load.created} pods", flush=True)
            api.wait_bound(load.created)
            succession.end()
        finally:
            succession.clean_up()
        events = list(plane.audit_events())
        testimony = testify(events, user=USER, lease=LEASE)
        pods = api.pods()
        return Outcome(
            failovers=failovers,
            testimony=testimony,
            pods=len(pods),
            binds_of_each=frozenset(binds_carried_out(events, pods)),
            violations=[*testimony.violations(TIMES.lease_s), *_check_binds(events, pods)],
        )


def binds_carried_out(
    events: Sequence[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]]
) -> Iterator[int]:
    """Yield for each pod how many of its binds were carried out.

    When a client dies with a request under way, the API server may carry it out and note that it
    has failed: of such a bind the pod itself is the witness.
    """
    records = defaultdict(list)
    for record in bind_records(events):
        records[record.uid].append(record)
    for pod in pods:
        of_pod = records[pod["metadata"]["uid"]]
        accepted = sum(record.accepted for record in of_pod)
        unsure = any(
            record.node == pod["spec"].get("nodeName") and (record.code >= 500 or not record.code)
            for record in of_pod
        )
        yield accepted or int(unsure)


def _check_binds(
    events: Sequence[Mapping[str, Any]], pods: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield violations: of all together, and of each process by itself.

    The next leader may choose another node for a pod whose binding died with the last one.
    """
    yield from check_binds(events, user="", pods=pods)
    by_writer = defaultdict(list)
    for event in events:
        by_writer[writer_of(event)].append(event)
    for of_writer in by_writer.values():
        yield from check_binds(of_writer, user=USER)


def limit_s(how: signal.Signals) -> float:
    """Return within how many seconds after the end of a leader the next one has to bind."""
    return AFTER_TERM_S if how is signal.SIGTERM else AFTER_EXPIRY_S


def wanted_status(how: signal.Signals) -> int:
    """Return the exit status of a leader that ends so."""
    return {signal.SIGTERM: 0, signal.SIGKILL: 137, signal.SIGSTOP: 1}[how]


def main() -> int:
    """Run from the command line; 0 when everything held."""
    parser = argparse.ArgumentParser(description=__doc__, prog="tests.scenarios.failovers")
    parser.add_argument("--count", type=int, default=20)
    outcome = run(parser.parse_args().count, say=True)
    is_well = outcome.binds_of_each == {1} and not outcome.violations
    print(f"\nlease {TIMES.lease_s:g} s; seconds from the end of a leader to the next one's bind:")
    for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        of_kind = [each for each in outcome.failovers if each.how is how]
        took = sorted(outcome.seconds_to_first_bind(each) for each in of_kind)
        if took:
            is_well &= took[-1] <= limit_s(how)
            is_well &= all(each.exit_status == wanted_status(how) for each in of_kind)
            line = ", ".join(f"{seconds:.2f}" for seconds in took)
            print(f"  {how.name:8} (limit {limit_s(how):g}) {line}")
    print(f"pods {outcome.pods}, binds of each {sorted(outcome.binds_of_each)}")
    print(f"leaders {len(outcome.testimony.tenures)}, writes {len(outcome.testimony.writes)}")
    for violation in outcome.violations:
        print(f"VIOLATION {violation}")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
