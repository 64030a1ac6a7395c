from __future__ import annotations

import pytest

from plugins.framework.status import Code
from scheduler.metrics.cycle_metrics import REUSE, durations_of
from scheduler.tracing.spans import Attempt, CycleRecord, Decided, point_spans

OK, ERROR = Code.SUCCESS, Code.ERROR
ATTEMPT = Attempt(7, "default/a", 2, 0.5, "berth")
CYCLE = [
    (REUSE, "hint_not_used", OK, 1.5),
    ("PreFilter", "Fit", OK, 1.75),
    ("PreFilter", "", OK, 2.0),
    ("Filter", "Fit", OK, 3.0),
    ("Filter", "Ports", Code.UNSCHEDULABLE, 3.5),
    ("Filter", "", OK, 4.0),
]
BINDING = [
    ("PreBind", "Volumes", OK, 2.0),
    ("PreBind", "", OK, 2.0),
    ("", "", OK, 5.0),
    ("Bind", "Binder", ERROR, 6.0),
    ("Bind", "", ERROR, 6.0),
]


@pytest.mark.parametrize("marks", [CYCLE, BINDING], ids=["cycle", "binding"])
def test_spans_last_as_long_as_the_metrics_say(marks) -> None:
    spans = {span.name: span.ended - span.began for span in point_spans(ATTEMPT, marks, 1.0)}
    spans.pop("wait", None)
    measured = {
        point: seconds
        for point, plugin, _, seconds in durations_of(marks, 1.0)
        if not plugin or point == REUSE
    }
    assert spans == measured


def test_plugins_are_attributes_of_their_extension_point() -> None:
    (_, _, filtering) = point_spans(ATTEMPT, CYCLE, 1.0)
    assert filtering.attributes == {
        "berth.plugin.Fit_ms": 1000.0,
        "berth.plugin.Ports_ms": 500.0,
        "berth.plugin.Ports": "Unschedulable",
    }


def test_a_wait_is_a_span_of_its_own() -> None:
    names = [(span.name, span.began, span.ended) for span in point_spans(ATTEMPT, BINDING, 1.0)]
    assert names == [("PreBind", 1.0, 2.0), ("wait", 2.0, 5.0), ("Bind", 5.0, 6.0)]


def test_the_way_from_point_to_point_is_no_wait() -> None:
    marks = [("", "", OK, 1.0005), ("Bind", "", OK, 2.0)]
    assert [span.name for span in point_spans(ATTEMPT, marks, 1.0)] == ["Bind"]


def test_an_extension_point_that_failed_is_an_error() -> None:
    (*_, bind) = point_spans(ATTEMPT, BINDING, 1.0)
    assert bind.error == "Error"


@pytest.mark.parametrize(
    ("code", "result", "error"),
    [
        pytest.param(Code.UNSCHEDULABLE, "unschedulable", "", id="refused"),
        pytest.param(Code.PENDING, "unschedulable", "", id="pending"),
        pytest.param(Code.ERROR, "error", "Error", id="failed"),
        pytest.param(Code.SUCCESS, "error", "Success", id="placed and not assumed"),
    ],
)
def test_an_attempt_without_a_binding_ends_with_its_cycle(code, result, error) -> None:
    record = CycleRecord(
        ATTEMPT, [], 1.0, 2.0, code, True, Decided(3, "", 10, 0), frozenset({"b", "a"})
    )
    (span,) = record.spans()
    assert (span.began, span.ended, span.error) == (0.5, 2.0, error)
    assert span.attributes["berth.result"] == result
    assert span.attributes["berth.rejected_by"] == ("a", "b")


def test_an_attempt_that_is_being_bound_has_not_ended() -> None:
    record = CycleRecord(ATTEMPT, [], 1.0, 2.0, OK, False, Decided(3, "n1", 10, 1), frozenset())
    assert list(record.spans()) == []
