"""What is nominated counts at once, is tried first, and ends when it no longer holds."""

from __future__ import annotations

import msgspec
import pytest

from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import PostFilterPlugin
from plugins.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from plugins.node_resources_fit import NodeResourcesFit
from plugins.priority_sort import PrioritySort
from plugins.taint_toleration import TaintToleration
from scheduler.config.extension_points import POINTS, points_of
from scheduler.cycle.failure_handler import Failure, FailureHandler
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.reports import Reports
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.runtime.nominated_nodes import NominatedNodes
from tests.builders import PodBuilder, node, pod
from tests.plugins.conformance import RecordingHandle
from tests.scheduler.parts import Parts


class MakesRoom(PostFilterPlugin):
    """Promises what it is told to promise, and remembers what it was asked."""

    name = "MakesRoom"

    def __init__(self, nominated: str | None = "n1", status: Status = SUCCESS) -> None:
        super().__init__(None, RecordingHandle())
        self.answer = (nominated, status)
        self.helpable: list[str] = []
        self.told: dict[str, Status] = {}

    def post_filter(self, state, info, nodes, verdicts):
        self.helpable = [nodes.node_info(int(row)).name for row in verdicts.helpable_rows()]
        self.told = {each.name: verdicts.status_of(each.name) for each in nodes.node_infos()}
        return self.answer


class Notes:
    """Stands where Events and statuses are written."""

    def __init__(self) -> None:
        self.nominations: list[str | None] = []

    def event(self, *args: object, **more: object) -> None:
        pass

    def unscheduled(self, made, reason, message, nominated=None) -> None:
        self.nominations.append(nominated)


class Scene:
    """Two nodes of 4 CPUs, full, a queue, and cycles that end as in the scheduling loop."""

    def __init__(self, *plugins: PostFilterPlugin) -> None:
        self.parts = Parts()
        handle = RecordingHandle()
        listed = [
            PrioritySort(None, handle),
            DefaultBinder(None, handle),
            TaintToleration(None, handle),
            NodeResourcesFit(None, handle),
            *plugins,
        ]
        used = {"queueSort", "preFilter", "filter", "postFilter", "bind"}
        self.runner = FrameworkRunner(
            "berth",
            {p: [x for x in listed if p in used and p in points_of(type(x))] for p in POINTS},
            {},
        )
        self.queue = self.parts.queue
        self.runner.nominated = NominatedNodes(self.queue.nominator.latest)
        self.cycle = SchedulingCycle(Snapshot(), HostSelector(1))
        self.notes = Notes()
        self.live: dict[str, object] = {}
        self.failures = FailureHandler(
            self.queue,
            lambda namespace, name: self.live.get(name),  # type: ignore[arg-type, return-value]
            Reports(self.notes, self.notes, self.parts.metrics),  # type: ignore[arg-type]
            self.parts.clock,
        )
        for name in ("n1", "n2"):
            self.parts.cache.add_node(node(name).capacity(cpu="4", pods="110").build())
            self.parts.cache.add_pod(self.filler(name).info())

    def filler(self, node_name: str) -> PodBuilder:
        return pod(f"low-{node_name}").uid(f"low-{node_name}").request(cpu="4").on(node_name)

    def make_room(self, node_name: str) -> None:
        self.parts.cache.remove_pod(self.filler(node_name).info())

    def add(self, name: str, priority: int = 0, cpu: str = "3", nominated: str = "") -> None:
        made = pod(name).uid(name).scheduler("berth").priority(priority).request(cpu=cpu).build()
        if nominated:
            status = msgspec.structs.replace(made.status, nominated_node_name=nominated)
            made = msgspec.structs.replace(made, status=status)
        self.live[name] = made
        self.queue.add(PodInfo(made))

    def try_next(self) -> str:
        """Run the next pod's cycle; return its node, or nothing if it was refused."""
        self.parts.clock.advance(20)
        queued = self.queue.pop(timeout_s=0)
        assert queued is not None
        self.parts.cache.update_snapshot(self.cycle.snapshot)
        decision = self.cycle.decide(self.runner, CycleState(), queued.info)
        self.decision = decision
        if not decision.is_placed:
            self.failures.handle(queued, Failure.of_decision(decision))
            return ""
        self.parts.cache.assume_pod(queued.info, decision.node_name)
        self.queue.nominator.delete(queued.info.uid)
        return decision.node_name

    def nominated(self, name: str) -> str | None:
        return self.queue.nominator.node_of(name)


class TestCountsAtOnce:
    """kubernetes/kubernetes#72124: another pod takes the room before the API has heard of it."""

    def test_a_pod_of_the_same_priority_leaves_the_room(self):
        scene = Scene(MakesRoom())
        scene.add("first", priority=10)
        scene.try_next()
        scene.make_room("n1")
        scene.add("second", priority=10)
        scene.runner.points["postFilter"][0].answer = ("", unschedulable())  # type: ignore[attr-defined]
        assert scene.try_next() == ""

    def test_a_pod_of_a_higher_priority_may_take_it(self):
        scene = Scene(MakesRoom())
        scene.add("first", priority=10)
        scene.try_next()
        scene.make_room("n1")
        scene.add("second", priority=11)
        assert scene.try_next() == "n1"

    def test_the_api_is_told(self):
        scene = Scene(MakesRoom())
        scene.add("first", priority=10)
        scene.try_next()
        assert (scene.nominated("first"), scene.notes.nominations) == ("n1", ["n1"])

    def test_what_is_assumed_is_nominated_no_longer(self):
        scene = Scene(MakesRoom())
        scene.add("first", priority=10)
        scene.try_next()
        scene.make_room("n1")
        scene.queue.activate(["first"])
        assert scene.try_next() == "n1"
        assert scene.nominated("first") is None


class TestItsOwnNodeFirst:
    def test_the_others_are_not_looked_at(self):
        scene = Scene()
        scene.make_room("n1")
        scene.make_room("n2")
        scene.add("first", nominated="n2")
        assert scene.try_next() == "n2"
        assert (scene.decision.evaluated_nodes, scene.decision.feasible_nodes) == (1, 1)

    def test_if_it_will_not_do_any_other_will(self):
        scene = Scene()
        scene.make_room("n1")
        scene.add("first", nominated="n2")
        assert scene.try_next() == "n1"

    def test_one_that_is_gone_is_passed_over(self):
        scene = Scene()
        scene.make_room("n1")
        scene.add("first", nominated="gone")
        assert scene.try_next() == "n1"


class TestEnds:
    """kubernetes/kubernetes#106780: a nomination that no longer holds is cleared."""

    @pytest.mark.parametrize(
        "plugins",
        [
            pytest.param((MakesRoom("", unschedulable("no help")),), id="preemption helps nowhere"),
            pytest.param((), id="nobody preempts"),
        ],
    )
    def test_in_memory_and_in_the_api(self, plugins):
        scene = Scene(*plugins)
        scene.add("first", nominated="n2")
        scene.try_next()
        assert (scene.nominated("first"), scene.notes.nominations) == (None, [""])

    def test_with_its_node(self):
        scene = Scene(MakesRoom(None, unschedulable("not eligible")))
        scene.add("first", nominated="gone")
        scene.try_next()
        assert (scene.nominated("first"), scene.notes.nominations) == (None, [""])

    @pytest.mark.parametrize(
        ("taint", "left"),
        [
            pytest.param("gpu", (None, [""]), id="its node will not do"),
            pytest.param("", ("n2", [None]), id="its node may do"),
        ],
    )
    def test_where_a_plugin_fails(self, taint, left):
        scene = Scene(MakesRoom(None, Status(Code.ERROR, ("not found",))))
        if taint:
            tainted = node("n2").capacity(cpu="4", pods="110").taint(taint).build()
            scene.parts.cache.update_node(tainted)
        scene.add("first", nominated="n2")
        scene.try_next()
        assert (scene.nominated("first"), scene.notes.nominations) == left

    def test_where_a_plugin_leaves_it_it_stays(self):
        scene = Scene(MakesRoom(None, unschedulable("victims are leaving")))
        scene.add("first", nominated="n2")
        scene.try_next()
        assert (scene.nominated("first"), scene.notes.nominations) == ("n2", [None])


class TestDiesWithItsPod:
    """kubernetes/kubernetes#102339: no room is kept for a pod that is gone."""

    def test_deleted_while_it_waits(self):
        scene = Scene(MakesRoom())
        scene.add("first", priority=10)
        scene.try_next()
        scene.queue.delete("first")
        scene.make_room("n1")
        scene.add("second")
        assert scene.try_next() == "n1"

    def test_deleted_while_it_is_tried(self):
        class Deletes(MakesRoom):
            def post_filter(self, state, info, nodes, verdicts):
                scene.queue.delete("first")
                return "n1", SUCCESS

        scene = Scene(Deletes())
        scene.add("first", priority=10)
        scene.try_next()
        assert len(scene.queue.nominator) == 0


class TestWhatPostFiltersSee:
    def test_nodes_where_it_may_help_and_why_the_others_will_not_do(self):
        plugin = MakesRoom()
        scene = Scene(plugin)
        scene.parts.cache.update_node(node("n2").capacity(cpu="4", pods="110").taint("gpu").build())
        scene.add("first")
        scene.try_next()
        assert plugin.helpable == ["n1"]
        assert {name: status.code for name, status in plugin.told.items()} == {
            "n1": Code.UNSCHEDULABLE,
            "n2": Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        }

    def test_the_first_that_gives_up_for_good_ends_the_round(self):
        last = MakesRoom()
        last.name = "Last"  # type: ignore[misc]
        scene = Scene(MakesRoom(None, unresolvable("never")), last)
        scene.add("first")
        scene.try_next()
        assert (last.told, scene.nominated("first")) == ({}, None)

    def test_the_reasons_of_all_are_told(self):
        scene = Scene(MakesRoom(None, unschedulable("one")), MakesRoom(None, unschedulable("two")))
        scene.add("first")
        scene.try_next()
        assert scene.decision.message().endswith("one, two")
