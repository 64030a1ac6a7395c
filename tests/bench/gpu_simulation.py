"""Pods of a trace placed one after another by the real cache, profile and cycle.

Nothing is bound and nothing departs. Cache, snapshot, plugins and the choice of the node are those
that run in a cluster; only the API server is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING

from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.authoring import PolicyPlugin
from plugins.examples.gpu_fragmentation import GpuFragmentation
from plugins.examples.gpu_fragments import TypicalShapes
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from tests.bench import gpu_trace
from tests.bench.gpu_policies import framework
from tests.bench.large_clusters import renamed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.examples.gpu_fragments import GpuShape
    from scheduler.runtime.framework_runner import FrameworkRunner
    from tests.bench.gpu_trace import Trace

POPULARITY = 0.95
"""The share of pods whose shapes are typical, as in the paper."""


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one order of arrival under one policy.

    ``allocated`` and ``fragment`` are shares of all GPUs, 0..1: what was given away, and what
    lies idle where the typical pods cannot use it.
    """

    policy: str
    seed: int
    allocated: float
    fragment: float
    arrived: int
    placed: int
    seconds: float


def simulate(trace: Trace, policy: str, seed: int, demand: float) -> Run:
    """Let pods come until they ask for ``demand`` of all GPUs; the same seed, the same run.

    Raises
    ------
    RuntimeError
        A plugin failed, or the plugin's books and the pods that were placed do not agree.
    """
    coming = gpu_trace.arrivals(trace, seed, demand)
    counts = gpu_trace.shares(coming)
    typical = TypicalShapes(counts, POPULARITY)
    profile = framework(policy, typical.shares)
    cache = SchedulerCache()
    for node in trace.nodes:
        cache.add_node(node)
    cycle = SchedulingCycle(Snapshot(), HostSelector(seed))
    templates = {each: gpu_trace.as_pod(each) for each in set(coming)}
    allocated = placed = 0
    begun_s = thread_time()
    for number, each in enumerate(coming):
        info = PodInfo(renamed(templates[each], f"pod-{number}"))
        cache.update_snapshot(cycle.snapshot)
        decision = cycle.decide(profile, CycleState(), info)
        if decision.is_placed:
            cache.assume_pod(info, decision.node_name)
            allocated += each.shape.demand_milli
            placed += 1
        elif not decision.status.is_rejection:
            raise RuntimeError(f"{info.key}: {decision.status}")
    seconds = thread_time() - begun_s
    cache.update_snapshot(cycle.snapshot)
    idle, fragment = _left_over(profile, cycle.snapshot, counts)
    if idle + allocated != trace.gpu_milli:
        raise RuntimeError(f"{idle} idle and {allocated} allocated are not {trace.gpu_milli}")
    total = trace.gpu_milli
    return Run(policy, seed, allocated / total, fragment / total, len(coming), placed, seconds)


def _left_over(
    profile: FrameworkRunner, snapshot: Snapshot, counts: Mapping[GpuShape, int]
) -> tuple[int, float]:
    """Return what is left of all GPUs, and how much of that the typical pods cannot use."""
    plugin = next(each for each in profile.points["filter"] if each.name == "GpuFragmentation")
    assert isinstance(plugin, PolicyPlugin)
    policy = plugin.user
    assert isinstance(policy, GpuFragmentation)
    states = policy.states(plugin.nodes(snapshot.all_nodes()))
    typical = TypicalShapes(counts, POPULARITY)
    typical.allow(policy.models)
    return int(states.gpu_milli.sum()), float(typical.fragments(states).sum())
