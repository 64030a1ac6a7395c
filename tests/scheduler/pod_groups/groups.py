"""Groups, clusters and a planner over them, for the tests of pod groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cache.pod_group_objects import GroupKey, GroupRules, GroupSource
from cache.snapshot import Snapshot
from plugins.framework.attempt_budget import UNLIMITED
from plugins.registry import PLUGINS
from scheduler.config import default_config, effective_profiles
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.pod_groups import GroupPlanner, GroupTask
from tests.profiles import build_profiles
from tests.scheduler.parts import NoBinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.node_info import NodeInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.handle import Services
    from scheduler.pod_groups import GroupPlan
    from scheduler.runtime.framework_runner import FrameworkRunner
    from tests.builders import PodBuilder


def default_framework(services: Services | None = None) -> FrameworkRunner:
    """Return the default profile."""
    profiles = effective_profiles(default_config("berth"))
    framework = build_profiles(
        profiles, PLUGINS, NoBinding() if services is None else services
    ).get("berth")
    assert framework is not None
    return framework


def rules(
    minimum: int = 1,
    *,
    topology: str = "",
    preferred: str = "",
    least: Mapping[str, int] | None = None,
) -> GroupRules:
    """Return the rules of a group."""
    key = GroupKey("default", "gang", GroupSource.LABEL)
    return GroupRules(
        key,
        "uid-gang",
        minimum,
        min_resources=least or {},
        topology_key=topology,
        preferred_topology_key=preferred,
    )


@dataclass
class Cluster:
    """A snapshot of some nodes with a planner over it."""

    nodes: Iterable[NodeInfo]
    seed: int = 1
    framework: FrameworkRunner | None = None
    search_steps: int = 20_000

    def __post_init__(self) -> None:
        self.snapshot = Snapshot.of(list(self.nodes))
        self.profile = self.framework or default_framework()
        self.cycle = SchedulingCycle(self.snapshot, HostSelector(self.seed))
        self.planner = GroupPlanner(self.cycle, self.search_steps)

    def plan(
        self,
        members: Sequence[PodBuilder],
        group: GroupRules | None = None,
        budget: AttemptBudget = UNLIMITED,
    ) -> GroupPlan:
        """Plan a group of which all members are needed unless its rules say otherwise."""
        group = rules(len(members)) if group is None else group
        infos = [member.info() for member in members]
        return self.planner.plan(GroupTask(group, self.profile, infos, group.minimum, budget))

    def facts(self) -> list[dict[str, object]]:
        """Return all that decisions may depend on, by node."""
        return [info.facts() for info in self.snapshot.columns.node_infos]


def nodes_of(plan: GroupPlan) -> dict[str, str]:
    """Return the node of each member that is placed, by the member's name."""
    return {m.decision.info.name: m.decision.node_name for m in plan.placed}
