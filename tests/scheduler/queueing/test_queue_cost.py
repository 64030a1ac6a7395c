"""What each call costs, counted in executed lines of the queue: the same number everywhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from plugins.framework.cluster_events import ALL_EVENTS, ASSIGNED_POD_ADD, NODE_ADD
from tests.builders import pod
from tests.scheduler.queueing.stage import NODE_LABEL, Stage

if TYPE_CHECKING:
    from collections.abc import Callable


def executed_lines(call: Callable[[], object]) -> int:
    count = 0

    def trace(frame: Any, what: str, argument: Any) -> Any:
        nonlocal count
        # Only the queue's own: a garbage collection may run code of others in between.
        if not frame.f_globals["__name__"].startswith("scheduler.queueing."):
            return None
        count += what == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def gated(stage: Stage, count: int) -> None:
    for index in range(count):
        stage.queue.add(pod(f"gated-{index}").gate("g").info())


def refused(stage: Stage, count: int) -> None:
    for index in range(count):
        stage.queue.add(pod(f"refused-{index}").info())
    popped = [stage.pop() for _ in range(count)]
    for queued in popped:
        stage.refuse(queued, "Fit")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda queue: queue.move_all(NODE_ADD, None, None), id="node"),
        pytest.param(lambda queue: queue.move_all(ALL_EVENTS, None, None), id="everything"),
        pytest.param(
            lambda queue: queue.move_all(ASSIGNED_POD_ADD, None, None), id="no use to any"
        ),
        pytest.param(lambda queue: queue.pop(0), id="pop"),
        pytest.param(lambda queue: queue.add(pod("one").info()), id="add"),
        pytest.param(lambda queue: queue.flush_backoff(), id="flush of backoff"),
        pytest.param(lambda queue: queue.flush_unschedulable_leftover(), id="flush of the late"),
        pytest.param(lambda queue: queue.counts(), id="counts"),
    ],
)
def test_gated_pods_cost_nothing(call):
    # kubernetes PR 139162, #124384.
    lines = []
    for count in (1, 300):
        stage = Stage()
        refused(stage, 3)
        gated(stage, count)
        call(stage.queue)
        lines.append(executed_lines(lambda stage=stage: call(stage.queue)))
    assert lines[0] == lines[1]


def test_no_gate_is_asked_about_an_event_that_cannot_concern_it():
    stage = Stage()
    gated(stage, 50)
    asked = stage.gates_asked
    stage.queue.move_all(NODE_ADD, None, None)
    stage.queue.move_all(ALL_EVENTS, None, None)
    assert stage.gates_asked == asked


def test_an_event_that_is_of_no_use_to_a_group_costs_nothing_for_its_pods():
    lines = []
    for count in (1, 300):
        stage = Stage()
        refused(stage, count)
        stage.queue.move_all(NODE_LABEL, None, None)
        lines.append(
            executed_lines(lambda stage=stage: stage.queue.move_all(NODE_LABEL, None, None))
        )
    assert lines[0] == lines[1]


def test_the_time_limit_is_only_looked_up_for_those_who_exceed_it():
    lines = []
    for count in (1, 300):
        stage = Stage()
        refused(stage, count)
        lines.append(executed_lines(stage.queue.flush_unschedulable_leftover))
    assert lines[0] == lines[1]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda queue, info: queue.add(info), id="add"),
        pytest.param(
            lambda queue, info: (queue.add(info), queue.delete(info.uid)), id="add and delete"
        ),
        pytest.param(
            lambda queue, info: (queue.add(info), queue.pop(0), queue.done(info.uid)),
            id="a whole life",
        ),
    ],
)
def test_the_lines_for_one_pod_do_not_depend_on_the_others(call):
    lines = []
    for count in (1, 500):
        stage = Stage()
        for index in range(count):
            stage.queue.add(pod(f"p{index}").info())
        info = pod("one").priority(1).info()
        lines.append(executed_lines(lambda s=stage, i=info: call(s.queue, i)))
    assert lines[0] == lines[1]
