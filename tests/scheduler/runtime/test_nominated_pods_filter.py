"""That both forms agree is in tests/properties/test_nominated_filters.py."""

from __future__ import annotations

import gc

from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.node_resources_fit import NodeResourcesFit
from plugins.priority_sort import PrioritySort
from scheduler.config.extension_points import POINTS, points_of
from scheduler.queueing.nominator import Nominator
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.runtime.nominated_nodes import FEW_NODES, NominatedNodes
from scheduler.runtime.nominated_pods_filter import CrowdedFilter
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle


def test_an_outcome_that_nobody_has_any_more_is_freed_without_the_garbage_collector() -> None:
    cache, snapshot, nominator = SchedulerCache(), Snapshot(), Nominator(lambda uid: True)
    for index in range(FEW_NODES + 4):
        cache.add_node(node(f"n{index}").capacity(cpu="4", pods="110").build())
    cache.update_snapshot(snapshot)
    nominator.add(pod("ahead").uid("ahead").priority(10).request(cpu="3").info(), "n1")
    handle = RecordingHandle()
    plugins = [each(None, handle) for each in (PrioritySort, DefaultBinder, NodeResourcesFit)]
    used = {"queueSort", "preFilter", "filter", "bind"}
    runner = FrameworkRunner(
        "berth",
        {
            point: [each for each in plugins if point in used and point in points_of(type(each))]
            for point in POINTS
        },
        {},
    )
    runner.nominated = NominatedNodes(nominator.latest)
    info, nodes = pod("asks").uid("asks").request(cpu="2").info(), snapshot.all_nodes()

    def attempt() -> int:
        state = CycleState()
        runner.run_pre_filter(state, info, nodes)
        outcome = runner.run_filter(state, info, nodes)
        return len(outcome.rejected())

    assert attempt() == 1
    gc.collect()
    gc.disable()
    try:
        assert attempt() == 1
        # Not the number of objects in cycles: other tests of this process may leave some.
        assert not [each for each in gc.get_objects() if isinstance(each, CrowdedFilter)]
    finally:
        gc.enable()
