"""scheduler_perf's PreemptionBasic, PreemptionPVs and PreemptionAsync on a real API server.

Nodes, pods and their proportions are those of kube-scheduler 1.36,
test/integration/scheduler_perf, default_preemption: four pods of low priority fill a node of 4 CPUs
but for 400m; one of high priority asks for 3 CPUs, so three of them have to go. In PreemptionPVs
each pod of high priority has a volume of its own.

``python -m tests.scenarios.preemption_kinds --contenders berth,kube-scheduler``
"""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.bench.contenders import Berth, KubeScheduler
from tests.bench.pod_templates import bound_claim
from tests.bench.process_usage import ProcessUsage
from tests.controlplane.audit import accepted_deletes
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.bench.contenders import Contender
    from tests.controlplane.server_process import ServerProcess

Json = dict[str, Any]

NODES = 500
LOW_PER_NODE = 4
VICTIMS_PER_PREEMPTOR = 3
CHURN_S = 0.2
"""Between two pods of high priority in PreemptionAsync."""

_PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 10,
}


@dataclass(frozen=True)
class Outcome:
    """What became of one kind with one scheduler."""

    preemptors: int
    """Pods of high priority, and how many of them were bound."""
    bound_preemptors: int
    normal: int
    """Pods of no priority that came meanwhile, and how many of them were bound."""
    bound_normal: int
    victims: int
    """Pods that were deleted by the scheduler."""
    deleted_twice: tuple[str, ...]
    """Names of pods with more than one accepted DELETE."""
    strangers: tuple[str, ...]
    """Names of victims that were neither low nor normal pods."""
    normal_per_s: float
    """Normal pods bound in a second, while others preempted; 0 where there were none."""
    preemption_s: float
    """From the first preemptor's creation to the last one's binding."""
    cpu_s: float
    """What the scheduler used of the CPU meanwhile."""


def play_basic(
    plane: ControlPlane, contender: Contender, *, nodes: int = NODES, timeout_s: float = 300.0
) -> Outcome:
    """Let as many preemptors come at once as there are nodes."""
    return _play(plane, contender, nodes, timeout_s, preemptors=nodes, normal=0, at_once=True)


def play_pvs(
    plane: ControlPlane, contender: Contender, *, nodes: int = NODES, timeout_s: float = 300.0
) -> Outcome:
    """Let as many preemptors come at once as there are nodes, each with a volume of its own."""
    return _play(
        plane, contender, nodes, timeout_s, preemptors=nodes, normal=0, at_once=True, claims=True
    )


def play_async(
    plane: ControlPlane,
    contender: Contender,
    *,
    nodes: int = NODES,
    preemptors: int = 20,
    timeout_s: float = 300.0,
) -> Outcome:
    """Let a preemptor come every 200 ms, while there is one normal pod for each node to place."""
    return _play(
        plane, contender, nodes, timeout_s, preemptors=preemptors, normal=nodes, at_once=False
    )


def _play(
    plane: ControlPlane,
    contender: Contender,
    nodes: int,
    timeout_s: float,
    *,
    preemptors: int,
    normal: int,
    at_once: bool,
    claims: bool = False,
) -> Outcome:
    name = contender.scheduler_name
    low = [
        _pod(f"low-{index:05}", name, "900m", terminationGracePeriodSeconds=0)
        for index in range(nodes * LOW_PER_NODE)
    ]
    high = [
        _pod(f"high-{index:05}", name, "3000m", priorityClassName="high", **_volume(index, claims))
        for index in range(preemptors)
    ]
    others = [
        _pod(f"normal-{index:05}", name, "100m", terminationGracePeriodSeconds=0)
        for index in range(normal)
    ]
    process: ServerProcess | None = None
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([_PRIORITY])
        api.create_many([make_node(f"node-{index:05}") for index in range(nodes)])
        try:
            process = contender.start(plane)
            api.create_many(low)
            api.wait_bound(len(low), timeout_s=timeout_s)
            if claims:
                names = (f"high-{index:05}" for index in range(preemptors))
                api.create_many([each for one in names for each in bound_claim(one, "default")])
            used_s = ProcessUsage.of(process.pid).cpu_s
            started_s = time.monotonic()
            churn = threading.Thread(
                target=_create, args=(plane, high, 0.0 if at_once else CHURN_S), daemon=True
            )
            churn.start()
            normal_s = 0.0
            if others:
                api.create_many(others)
                _wait(api, "normal-", normal, timeout_s)
                normal_s = time.monotonic() - started_s
            churn.join(timeout_s)
            bound_high = _wait(api, "high-", preemptors, timeout_s)
            preemption_s = time.monotonic() - started_s
            cpu_s = ProcessUsage.of(process.pid).cpu_s - used_s
            bound_normal = _bound(api, "normal-")
        finally:
            if process is not None:
                process.kill()
    deleted = Counter(
        each.name for each in accepted_deletes(plane.audit_events()) if each.resource == "pods"
    )
    return Outcome(
        preemptors=preemptors,
        bound_preemptors=bound_high,
        normal=normal,
        bound_normal=bound_normal,
        victims=len(deleted),
        deleted_twice=tuple(sorted(each for each, count in deleted.items() if count > 1)),
        strangers=tuple(sorted(each for each in deleted if each.startswith("high-"))),
        normal_per_s=normal / normal_s if normal_s else 0.0,
        preemption_s=preemption_s,
        cpu_s=cpu_s,
    )


def _volume(index: int, claims: bool) -> Json:
    source = {"claimName": f"high-{index:05}"}
    return {"volumes": [{"name": "data", "persistentVolumeClaim": source}]} if claims else {}


def _create(plane: ControlPlane, pods: Sequence[Json], pause_s: float) -> None:
    with BlockingApi(plane.admin_kubeconfig) as api:
        if not pause_s:
            api.create_many(pods)
            return
        for pod in pods:
            api.create_many([pod])
            time.sleep(pause_s)


def _wait(api: BlockingApi, prefix: str, count: int, timeout_s: float) -> int:
    """Wait until so many pods are bound, or time is up; return how many are."""
    deadline_s = time.monotonic() + timeout_s
    while (bound := _bound(api, prefix)) < count and time.monotonic() < deadline_s:
        time.sleep(0.25)
    return bound


def _bound(api: BlockingApi, prefix: str) -> int:
    return sum(
        pod["metadata"]["name"].startswith(prefix) and bool(pod["spec"].get("nodeName"))
        for pod in api.pods("default")
    )


def _pod(name: str, scheduler_name: str, cpu: str, **spec: Any) -> Json:
    return make_pod(name, scheduler_name=scheduler_name, cpu=cpu, memory="500Mi", **spec)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print a line for each kind and scheduler; return 1 when something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.preemption_kinds")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--preemptors", type=int, default=20, help="of PreemptionAsync")
    parser.add_argument("--contenders", default="berth")
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument("--timeout", type=float, default=300.0)
    options = parser.parse_args(arguments)
    known: dict[str, Callable[[], Contender]] = {"berth": Berth, "kube-scheduler": KubeScheduler}
    at_once = {"Basic": play_basic, "PVs": play_pvs}
    wrong = False
    kinds = [kind for kind in ("Basic", "PVs", "Async") if options.only in kind]
    for kind, name in itertools.product(kinds, options.contenders.split(",")):
        with ControlPlane() as plane:
            if kind in at_once:
                found = at_once[kind](
                    plane, known[name](), nodes=options.nodes, timeout_s=options.timeout
                )
            else:
                found = play_async(
                    plane,
                    known[name](),
                    nodes=options.nodes,
                    preemptors=options.preemptors,
                    timeout_s=options.timeout,
                )
        wrong |= found.bound_preemptors < found.preemptors or bool(found.deleted_twice)
        print(
            f"Preemption{kind:<8}{name:<16}"
            f"{found.bound_preemptors:5} of {found.preemptors:5} preemptors  "
            f"{found.victims:5} victims, {len(found.deleted_twice)} deleted twice  "
            f"{found.bound_normal:5} of {found.normal:5} normal pods, "
            f"{found.normal_per_s:5.0f} pods/s  {found.preemption_s:6.1f} s, "
            f"CPU {found.cpu_s:.1f} s",
            flush=True,
        )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
