"""``python -m tests.bench attempts``: what one attempt costs, as a share of its budget.

Every workload of scheduler_perf, without an API server: the pods that run are there, then pods that
count are decided about one after another, and those that come meanwhile, on a cache that was
rehearsed like that of a new process. Told are the dearest attempt and the hundredth dearest, in CPU
seconds of the thread.
"""

from __future__ import annotations

import argparse
import gc
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec

from cache.objects import Pod
from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.attempt_budget import AttemptBudget
from plugins.framework.cycle_state import CycleState
from plugins.registry import PLUGINS
from scheduler.client.codec import Decoder
from scheduler.config import default_config, running_profiles
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.rehearsal import rehearse
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import OfflineServices
from scheduler.queueing import DEFAULT_ATTEMPT_BUDGET_S
from scheduler.runtime.nominated_nodes import NominatedNodes
from scheduler.runtime.profile_builder import build_framework
from tests.bench.statistics_of import quantile
from tests.bench.workloads import NAMESPACES, WORKLOADS
from tests.scenarios import perf_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scheduler.runtime.profile_map import Profiles
    from tests.bench.workloads import Workload

Json = dict[str, Any]

_POD = Decoder(Pod)
_CHURNS = 5


@dataclass(frozen=True)
class Played:
    """A cluster, and the pods to be decided about."""

    name: str
    objects: list[Json]
    pods: list[Json]


def of_workload(workload: Workload, nodes: int, count: int) -> Played:
    """Return one of the workloads of the other benchmarks."""
    objects = [*NAMESPACES, *workload.ground.objects(nodes), *workload.objects]
    objects += workload.pods_before(nodes)
    pods: list[Json] = []
    for made in workload.pods_to_place(count):
        (pods if made["kind"] == "Pod" else objects).append(made)
    for number in range(_CHURNS if workload.churn is not None else 0):
        for made in workload.churn.objects(number) if workload.churn else ():
            (pods if made["kind"] == "Pod" else objects).append(made)
    return Played(workload.name, objects, pods)


def of_kind(kind: perf_kinds.Kind, nodes: int, count: int) -> Played:
    """Return one of the kinds of pods that have to do with each other."""
    before, _ = kind.counts(nodes, 1.0)
    objects = [*perf_kinds._NAMESPACES, *kind.nodes(nodes), *kind.objects]
    for index in range(before):
        place = kind.namespaces[index % len(kind.namespaces)]
        pod = perf_kinds._pod(f"first-{index:05}", place, kind.before, perf_kinds.Berth())
        pod["spec"]["nodeName"] = f"node-{index % nodes:05}"
        objects.append(pod)
    pods = [
        perf_kinds._pod(f"then-{index:05}", kind.measured, kind.pod, perf_kinds.Berth())
        for index in range(count)
    ]
    return Played(kind.name, objects, pods)


def costs(played: Played) -> list[float]:
    """Return the CPU seconds of each attempt, the dearest first."""
    cluster = Cluster()
    for each in with_uids(played.objects):
        cluster.add(msgspec.Raw(msgspec.json.encode(each)))
    (profile,) = running_profiles(default_config("berth"))
    framework = build_framework(profile, 0, PLUGINS, OfflineServices(cluster))
    framework.nominated = NominatedNodes(cluster.nominator.latest)
    cycle = SchedulingCycle(Snapshot(), HostSelector(1))
    rehearse(cluster.cache, cycle, cast("Profiles", [framework]))
    # As the process does once its first lists are complete.
    gc.collect()
    gc.freeze()
    found = []
    for each in with_uids(played.pods):
        pod = _POD.decode(msgspec.json.encode(each))
        cluster.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
        info = PodInfo(pod)
        cluster.cache.update_snapshot(cycle.snapshot)
        budget = AttemptBudget(3600.0)
        decision = cycle.decide(framework, CycleState(budget), info)
        found.append(budget.used_s())
        if decision.is_placed:
            cluster.cache.assume_pod(info, decision.node_name)
    return sorted(found, reverse=True)


def with_uids(objects: Iterable[Json]) -> Iterable[Json]:
    """Yield the objects with what the API server would have added."""
    for each in objects:
        metadata = each["metadata"]
        metadata.setdefault("uid", f"{metadata.get('namespace', '')}/{metadata['name']}")
        yield each


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each workload; return 1 when one of them reaches the budget."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench attempts", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=1_000, help="to be decided about, of each")
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    options = parser.parse_args(arguments)
    makers = [
        *((each.name, of_workload, each) for each in WORKLOADS),
        *((each.name, of_kind, each) for each in perf_kinds.KINDS),
    ]
    worst_s = 0.0
    for name, make, kind in makers:
        if options.only not in name:
            continue
        found = costs(make(kind, options.nodes, options.pods))  # type: ignore[operator]
        worst_s = max(worst_s, found[0])
        print(
            f"{name:<40}{1000 * found[0]:8.1f} ms  {found[0] / DEFAULT_ATTEMPT_BUDGET_S:6.1%} of "
            f"the budget  p99 {1000 * quantile(sorted(found), 0.99):7.2f} ms  "
            f"p50 {1000 * quantile(sorted(found), 0.5):7.3f} ms",
            flush=True,
        )
    return 1 if worst_s >= DEFAULT_ATTEMPT_BUDGET_S else 0


if __name__ == "__main__":
    sys.exit(main())
