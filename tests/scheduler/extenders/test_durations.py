"""What a cycle waits for extenders is told as theirs."""

from __future__ import annotations

from plugins.framework.cycle_state import CycleState
from scheduler.config import Extender
from scheduler.metrics.cycle_metrics import EXTENDER_FILTER, EXTENDER_PRIORITIZE
from tests.scheduler.extenders.scripted_extender import Points, says


def test_each_question_is_marked_between_the_points_that_it_stands_between(stage):
    server = stage.serve(
        filter=says({"NodeNames": ["a", "b"]}), prioritize=says([{"Host": "a", "Score": 1}])
    )
    extender = Extender(
        server.url,
        filter_verb="filter",
        prioritize_verb="prioritize",
        weight=1,
        node_cache_capable=True,
    )
    state = CycleState()
    state.marks = []
    stage.decide(extender, points=Points(a=1), state=state)
    points = [point for point, plugin, _, _ in state.marks if not plugin]
    assert points == [
        "PreFilter",
        "Filter",
        EXTENDER_FILTER,
        "PreScore",
        "Score",
        EXTENDER_PRIORITIZE,
    ]
