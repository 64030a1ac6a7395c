"""The scheduler's own parts put together without an API server, for tests of what lies between."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cache.devices import Devices
from cache.disruption_budgets import DisruptionBudgets
from cache.namespaces import Namespaces
from cache.pod_groups import PodGroups
from cache.scheduler_cache import SchedulerCache
from cache.storage import Storage
from cache.workloads import Workloads
from plugins.registry import PLUGINS
from scheduler.config import default_config, effective_profiles
from scheduler.event_handlers.pods_and_nodes import EventHandlers
from scheduler.metrics import Metrics
from scheduler.runtime.known_pods import KnownPods
from scheduler.runtime.waiting_pods import WaitingPods
from tests.fakes.clock import FakeClock
from tests.fakes.nobody import Nobody
from tests.plugins.conformance import IdlePreemption
from tests.profiles import build_profiles
from tests.scheduler.queueing.queues import make_queue

if TYPE_CHECKING:
    from cache.pod_info import PodInfo
    from plugins.framework.status import Status


class NoBinding(Nobody):
    """A handle for plugins in tests that bind nothing, in a cluster without namespaces."""

    def __init__(self) -> None:
        self.namespaces = Namespaces()
        self.workloads = Workloads()
        self.preemption = IdlePreemption()
        self.storage = Storage()
        self.disruption_budgets = DisruptionBudgets()
        self.pod_groups = PodGroups()
        self.devices = Devices()

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        raise AssertionError("nothing is bound here")


@dataclass
class Parts:
    """Cache, queue and handlers with one profile named ``berth`` and a clock that stands still."""

    clock: FakeClock = field(default_factory=FakeClock)
    ttl_s: float = 30.0

    def __post_init__(self) -> None:
        self.metrics = Metrics()
        self.cache = SchedulerCache(ttl_s=self.ttl_s)
        self.waiting_pods = WaitingPods()
        self.profiles = build_profiles(
            effective_profiles(default_config("berth")), PLUGINS, NoBinding()
        )
        self.queue = make_queue(
            self.clock,
            sort_key=self.profiles.sort_key,
            pre_enqueue=self.profiles.pre_enqueue,
            registrations=self.profiles.registrations,
        )
        self.pods = KnownPods(self.cache, self.queue, self.waiting_pods)
        self.pod_groups = PodGroups()
        self.handlers = EventHandlers(self.pods, self.pod_groups, self.profiles, self.metrics)

    def milli_cpu_on(self, node_name: str) -> int:
        """What the cache counts as requested on a node."""
        info = self.cache.dump().nodes.get(node_name)
        return 0 if info is None else info.requested.get("cpu", 0)

    def counter(self, name: str) -> float:
        """The value of a counter with its labels, as it stands in the text format."""
        body, _ = self.metrics.render()
        for line in body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return 0.0
