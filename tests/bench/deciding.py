"""The deciding half of the scheduler without an API server: cache, snapshot, cycle, profile."""

from __future__ import annotations

import gc
from collections import deque
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.registry import PLUGINS
from scheduler.assembly import Setting, assemble
from scheduler.config import default_config, running_profiles
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.metrics import Metrics
from scheduler.options import Options
from tests.bench.large_clusters import renamed
from tests.fakes.nobody import Nobody
from tests.fakes.ports import fake_ports
from tests.fakes.watched import FakeWatched
from tests.profiles import build_profiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.objects import Pod

STAY = 8
"""Cycles for which a pod stays."""

WAITING = 8
"""Pods that are known before they are decided about."""


class Parts:
    """Cache, default profile, queue and handlers, put together as the scheduler does it.

    Attributes
    ----------
    cache, handlers
        What knows of nodes and pods, and what tells it.
    devices
        The slices, classes and claims.
    framework
        The default profile.
    live_pods
        Those that preemption may find.
    """

    def __init__(self) -> None:
        watched, config = FakeWatched(), default_config("berth")
        setting = Setting(config, Options(), Metrics())
        made = assemble(fake_ports(Nobody()), lambda handlers, others: watched, setting)
        self.cache = made.known.pods.cache
        self.devices = made.known.cluster.devices
        self.handlers = made.known.handlers
        self.live_pods = watched.pods
        services = made.deciding.services
        made.deciding.profiles.swap(build_profiles(running_profiles(config), PLUGINS, services))
        (self.framework,) = made.deciding.profiles


class Deciding:
    """Decides for one pod after another as the scheduling thread does.

    Attributes
    ----------
    parts
        The cache that it looks at, and all that belongs to it.
    wall_us, thread_us
        Of each cycle, from the update of the snapshot to the assumed pod.

    Concurrency: confined to one thread; the cache may change meanwhile.
    """

    def __init__(self) -> None:
        self.parts = Parts()
        self._framework = self.parts.framework
        self._cycle = SchedulingCycle(Snapshot(), HostSelector(1), coming=self._coming)
        self._waiting: deque[PodInfo] = deque()
        self._number = 0
        self._placed: deque[PodInfo] = deque()
        self.wall_us: list[float] = []
        self.thread_us: list[float] = []

    def begin(self, kind: Sequence[Pod], cycles: int = 20) -> None:
        """Let what is kept between cycles be built; forget the times of that."""
        self.decide(kind, cycles, 60.0)
        self.wall_us.clear()
        self.thread_us.clear()
        gc.collect()
        gc.freeze()

    def decide(self, kind: Sequence[Pod], cycles: int, seconds: float) -> None:
        """Decide for so many pods of a kind, or as long as the time lasts.

        Each pod goes again a few cycles later, outside the measured time: the cluster stays as
        full as it is, and each snapshot has a pod that came and one that went.

        Raises
        ------
        RuntimeError
            A pod fits nowhere: this would measure something else.
        """
        cache, cycle, framework = self.parts.cache, self._cycle, self._framework
        ends_s = perf_counter() + seconds
        self._waiting.clear()
        for _ in range(cycles):
            while len(self._waiting) < WAITING:
                self._number += 1
                pod = renamed(kind[self._number % len(kind)], f"pod-{self._number}")
                self._waiting.append(PodInfo(pod))
            info = self._waiting.popleft()
            cpu_s, begun_s = thread_time(), perf_counter()
            cache.update_snapshot(cycle.snapshot)
            decision = cycle.decide(framework, CycleState(), info)
            if not decision.is_placed:
                raise RuntimeError(f"{info.key} fits nowhere: {decision.status}")
            cache.assume_pod(info, decision.node_name)
            now_s = perf_counter()
            self.wall_us.append((now_s - begun_s) * 1e6)
            self.thread_us.append((thread_time() - cpu_s) * 1e6)
            self._placed.append(info)
            if len(self._placed) > STAY:
                cache.forget_pod(self._placed.popleft())
            if now_s > ends_s:
                return

    def _coming(self, count: int) -> Sequence[PodInfo]:
        return list(self._waiting)[:count]
