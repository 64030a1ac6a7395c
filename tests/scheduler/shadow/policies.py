"""Small policies, nodes by name, and live decisions to hold them against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PreBindPlugin,
    ReservePlugin,
    ScorePlugin,
)
from plugins.framework.status import SUCCESS, unschedulable
from plugins.priority_sort import PrioritySort
from scheduler.config.extension_points import POINTS, points_of
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.runtime.framework_runner import FrameworkRunner
from tests.builders import node, pod

if TYPE_CHECKING:
    from scheduler.decision.decision import Decision


class Handle:
    async def bind_pod(self, info, node_name):
        raise AssertionError("a shadow binds nothing")


class Only(FilterPlugin):
    """Lets only these nodes pass."""

    name = "Only"

    def __init__(self, *names: str, why: str = "not on the list") -> None:
        super().__init__(None, Handle())
        self.names = names
        self.why = why

    def filter_one(self, state, info, node_info):
        return SUCCESS if node_info.name in self.names else unschedulable(self.why)


class Points(ScorePlugin):
    """Gives each node the points that ``given`` says, 0 for others."""

    def __init__(self, name: str = "Points", **given: int) -> None:
        super().__init__(None, Handle())
        self.name = name
        self.given = given

    def score_one(self, state, info, node_info):
        return self.given.get(node_info.name, 0)


class Broken(FilterPlugin):
    """Fails."""

    name = "Broken"

    def __init__(self) -> None:
        super().__init__(None, Handle())

    def filter_one(self, state, info, node_info):
        raise RuntimeError("it fell over")


class Acts(PostFilterPlugin, ReservePlugin, PermitPlugin, PreBindPlugin):
    """Would change something at every point that may, and writes down when it is asked to."""

    name = "Acts"

    def __init__(self) -> None:
        super().__init__(None, Handle())
        self.asked: list[str] = []

    def post_filter(self, state, info, nodes, verdicts):
        self.asked.append("postFilter")
        return None, unschedulable("nobody can go")

    def reserve(self, state, info, node_name):
        self.asked.append("reserve")
        return SUCCESS

    def unreserve(self, state, info, node_name):
        self.asked.append("unreserve")

    def permit(self, state, info, node_name):
        self.asked.append("permit")
        return SUCCESS, 0.0

    async def pre_bind(self, state, info, node_name):
        self.asked.append("preBind")
        return SUCCESS


def policy(*plugins: Plugin, name: str = "berth", weights=None) -> FrameworkRunner:
    """Return a profile of these plugins."""
    every = [PrioritySort(None, Handle()), *plugins, DefaultBinder(None, Handle())]
    points = {point: [p for p in every if point in points_of(type(p))] for point in POINTS}
    given = {p.name: 1 for p in plugins if isinstance(p, ScorePlugin)}
    return FrameworkRunner(name, points, {**given, **(weights or {})})


def nodes(*names: str) -> Snapshot:
    """Return a snapshot of empty nodes with room."""
    return Snapshot.of([node(name).capacity(cpu="4", pods="10").info() for name in names])


def decide(snapshot: Snapshot, live: FrameworkRunner, asked=None) -> Decision:
    """Return what the live policy decides for a pod."""
    info = (asked or pod("web")).info()
    return SchedulingCycle(snapshot, HostSelector(1)).decide(live, CycleState(), info)
