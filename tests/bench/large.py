"""Runs ``berth run`` on clusters of any size, against a stand-in API server in its own process.

Prints the start, memory, the times of cycles and pods bound a second, and checks that no pod was
bound twice and no node has more than it can run. With several pools, each has a leader of its own;
one is killed in the middle and its standby goes on, and a pod that fits only the last pool is
handed on to it.

``python -m tests.bench large --nodes 50000 --pods 500000 --pools 1``
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.bench.process_usage import ProcessUsage
from tests.bench.records import LargeRun
from tests.bench.results import ResultsFile, put
from tests.bench.stand_in import POOL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PATIENCE_S: Final = 1800.0
_SUM: Final = re.compile(
    r"^scheduler_scheduling_algorithm_duration_seconds_(sum|count) (\S+)$", re.MULTILINE
)
_BUCKET: Final = re.compile(
    r'^scheduler_scheduling_algorithm_duration_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE
)


@dataclass
class Replica:
    """A process of berth."""

    pool: str
    port: int
    process: subprocess.Popen[bytes]

    def metrics(self) -> str:
        """Return its metrics as text."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            text: str = answer.read().decode()
        return text

    def is_ready(self) -> bool:
        """Return whether it knows all, and leads or stands by."""
        try:
            url = f"http://127.0.0.1:{self.port}/readyz"
            with urllib.request.urlopen(url, timeout=5):
                return True
        except OSError:
            return False

    def is_leading(self) -> bool:
        """Return whether it schedules."""
        try:
            return "\nberth_leader 1\n" in self.metrics()
        except OSError:
            return False


class Cluster:
    """The stand-in, and the replicas that work against it."""

    def __init__(
        self, nodes: int, pods: int, pools: int, folder: Path, hand_over_after: str = "3s"
    ) -> None:
        self.pools, self._folder = pools, folder
        self.port = _free_port()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.stand_in"]
            + [str(number) for number in (self.port, nodes, pods, pools)],
            stdout=subprocess.PIPE,
        )
        assert self._server.stdout is not None
        self._server.stdout.readline()
        self.replicas: list[Replica] = []
        address = {"server": f"http://127.0.0.1:{self.port}"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": address}],
            "users": [{"name": "x", "user": {}}],
        }
        (folder / "kubeconfig").write_text(json.dumps(config))
        declared = {
            "apiVersion": "scheduling.berth.dev/v1alpha1",
            "kind": "PoolConfiguration",
            "handOverAfter": hand_over_after,
            "pools": [
                {
                    "name": f"p{index}",
                    "nodeSelector": f"{POOL}=p{index}",
                    "schedulerNames": ["berth"],
                    "leaseName": f"berth-p{index}",
                }
                for index in range(pools)
            ],
        }
        (folder / "pools.yaml").write_text(json.dumps(declared))

    def start(self, index: int) -> Replica:
        """Start a replica of a pool."""
        pool, port = f"p{index}", _free_port()
        config = self._folder / f"{pool}.yaml"
        election = {"leaderElect": True, "resourceName": f"berth-{pool}"}
        election["resourceNamespace"] = "default"
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "berth"}],
            "leaderElection": election,
        }
        config.write_text(json.dumps(document))
        command = [sys.executable, "-m", "scheduler", "run", f"--config={config}"]
        command += [f"--kubeconfig={self._folder / 'kubeconfig'}", "--secure-port=0"]
        command += [f"--insecure-bind-address=127.0.0.1:{port}", "--log-level=warning"]
        if self.pools > 1:
            command += [f"--pools={self._folder / 'pools.yaml'}", f"--pool={pool}"]
        with (self._folder / f"{pool}-{port}.log").open("wb") as log:
            replica = Replica(pool, port, subprocess.Popen(command, stdout=log, stderr=log))
        self.replicas.append(replica)
        return replica

    def state(self) -> dict[str, Any]:
        """Return what the stand-in counts."""
        url = f"http://127.0.0.1:{self.port}/bench/state"
        with urllib.request.urlopen(url, timeout=300) as answer:
            found: dict[str, Any] = msgspec.json.decode(answer.read())
        return found

    def create(self, count: int, *, pool: int = -1, cpu: int = 10) -> None:
        """Create pods; with a pool, they select the nodes of one pool after the other."""
        url = f"http://127.0.0.1:{self.port}/bench/pods?count={count}&pool={pool}&cpu={cpu}"
        urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=600).close()

    def wait(self, what: str, done: Callable[[], bool]) -> float:
        """Wait until something is so; return the seconds that it took."""
        began = time.monotonic()
        while not done():
            for replica in self.replicas:
                if replica.process.poll() not in (None, -signal.SIGKILL):
                    raise SystemExit(f"a replica of {replica.pool} has ended")
            if time.monotonic() - began > _PATIENCE_S:
                raise SystemExit(f"in vain: {what}; {self.state()}")
            time.sleep(0.05)
        return time.monotonic() - began

    def usage(self) -> ProcessUsage:
        """Return what the stand-in has used."""
        return ProcessUsage.of(self._server.pid)

    def stop(self) -> None:
        """End all processes."""
        for replica in self.replicas:
            if replica.process.poll() is None:
                replica.process.kill()
            replica.process.wait()
        self._server.kill()
        self._server.communicate()  # closes the pipe


def quantile(before: str, after: str, share: float) -> float:
    """Return a quantile of the cycles between two scrapes, in ms, from their histogram."""
    old = {float(bound): float(count) for bound, count in _BUCKET.findall(before)}
    grown = [
        (float(bound), float(count) - old.get(float(bound), 0.0))
        for bound, count in _BUCKET.findall(after)
    ]
    total = grown[-1][1] if grown else 0.0
    low = passed = 0.0
    for bound, count in grown:
        if count >= share * total > 0:
            if bound == float("inf"):
                return low * 1e3
            return (low + (bound - low) * (share * total - passed) / (count - passed)) * 1e3
        low, passed = bound, count
    return 0.0


def mean(before: str, after: str) -> float:
    """Return the mean of the cycles between two scrapes, in ms."""
    old, new = dict(_SUM.findall(before)), dict(_SUM.findall(after))
    count = float(new["count"]) - float(old["count"])
    return (float(new["sum"]) - float(old["sum"])) / count * 1e3 if count else 0.0


def run(nodes: int, pods: int, pools: int, waiting: int, session: int) -> LargeRun:
    """Run one size, and return its figures; problems are printed."""
    with tempfile.TemporaryDirectory() as name:
        cluster = Cluster(nodes, pods, pools, Path(name))
        try:
            figures = _bind(cluster, waiting)
            if pools > 1:
                figures |= _kill_one(cluster, cluster.replicas[0], waiting)
                figures |= _hand_one_on(cluster)
            state = cluster.state()
        finally:
            cluster.stop()
    for problem in state["problems"]:
        print(problem, file=sys.stderr, flush=True)
    return LargeRun(
        nodes=nodes,
        pods=pods,
        pools=pools,
        waiting=waiting,
        session=session,
        problems=len(state["problems"]),
        refused_bindings=state.get("refused", 0),
        **figures,
    )


def _bind(cluster: Cluster, waiting: int) -> dict[str, Any]:
    """Start a leader for each pool, and let them bind so many pods."""
    # One pod for each pool: the first binding is the end of the start.
    cluster.create(cluster.pools, pool=0)
    leaders: list[Replica] = []
    start_s = []
    for index in range(cluster.pools):
        # One after the other: on few cores they would only share them.
        began = time.monotonic()
        leaders.append(cluster.start(index))
        cluster.wait("a first binding", lambda: cluster.state()["bound"] > len(start_s))
        start_s.append(round(time.monotonic() - began, 2))
    started = [ProcessUsage.of(each.process.pid) for each in leaders]
    before = [each.metrics() for each in leaders]
    bound, stand_in_cpu_s = cluster.state()["bound"], cluster.usage().cpu_s
    cluster.create(waiting, pool=0)
    began = time.monotonic()
    cluster.wait("all are bound", lambda: cluster.state()["bound"] >= bound + waiting)
    took = cluster.state()["last_bound_s"] - began
    used = sum(ProcessUsage.of(each.process.pid).cpu_s for each in leaders)
    used -= sum(each.cpu_s for each in started)
    stand_in_cpu_s = cluster.usage().cpu_s - stand_in_cpu_s
    scrapes = list(zip(before, [each.metrics() for each in leaders], strict=True))
    return {
        "start_s": start_s,
        "start_cpu_s": [round(each.cpu_s, 2) for each in started],
        "rss_mib": [each.rss_bytes >> 20 for each in started],
        "pods_per_s": round(waiting / took),
        "cpu_s_per_1000": round(used / waiting * 1000, 3),
        "stand_in_cpu_s_per_1000": round(stand_in_cpu_s / waiting * 1000, 3),
        "cycle_mean_ms": [round(mean(old, new), 3) for old, new in scrapes],
        "cycle_p50_ms": [round(quantile(old, new, 0.5), 3) for old, new in scrapes],
        "cycle_p99_ms": [round(quantile(old, new, 0.99), 3) for old, new in scrapes],
    }


def _kill_one(cluster: Cluster, leader: Replica, waiting: int) -> dict[str, Any]:
    """Kill the leader of a pool while it binds; its standby binds the rest."""
    standby = cluster.start(int(leader.pool[1:]))
    cluster.wait("the standby knows all", standby.is_ready)
    bound = cluster.state()["bound"]
    cluster.create(waiting, pool=0)
    cluster.wait("a part is bound", lambda: cluster.state()["bound"] > bound + waiting // 10)
    os.kill(leader.process.pid, signal.SIGKILL)
    took = cluster.wait("all are bound", lambda: cluster.state()["bound"] >= bound + waiting)
    return {"after_kill_s": round(took, 1), "new_leader": standby.is_leading()}


def _hand_one_on(cluster: Cluster) -> dict[str, Any]:
    """Create a pod that fits the nodes of the last pool only, and belongs to the first one."""
    bound = cluster.state()["bound"]
    cluster.create(1, cpu=8000)
    took = cluster.wait("it is bound", lambda: cluster.state()["bound"] > bound)
    return {"handed_on_s": round(took, 1), "hops": cluster.state().get("handed on", 0)}


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


def main(arguments: Sequence[str] | None = None) -> int:
    """Run sizes and print their figures; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench large")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--pools", type=int, default=1)
    parser.add_argument("--waiting", type=int, default=5000)
    parser.add_argument("--json", type=Path, help="the file that the figures are added to")
    options = parser.parse_args(arguments)
    file = ResultsFile(options.json)
    figures = run(options.nodes, options.pods, options.pools, options.waiting, file.session)
    put(file.results.large, figures)
    file.save()
    sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
    return 1 if figures.problems else 0
