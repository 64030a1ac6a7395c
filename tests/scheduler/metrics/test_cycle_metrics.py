from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from plugins.framework.status import SUCCESS, Code, unschedulable
from scheduler.metrics import Metrics, cycle_metrics
from scheduler.metrics.cycle_metrics import EXTENDER_FILTER, REUSE, durations_of
from scheduler.metrics.instruments import MAX_WAITING, Registry
from scheduler.metrics.metrics import GONE_KEPT
from tests.builders import pod

OK = Code.SUCCESS


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    for family in parse(metrics.render()[0].decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return None


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(
            [("Filter", "A", OK, 1.5), ("Filter", "B", OK, 2.0), ("Filter", "", OK, 2.25)],
            [("Filter", "A", OK, 0.5), ("Filter", "B", OK, 0.5), ("Filter", "", OK, 1.25)],
            id="a plugin begins where the one before ended",
        ),
        pytest.param(
            [("PreFilter", "", OK, 1.5), ("Filter", "", OK, 1.75)],
            [("PreFilter", "", OK, 0.5), ("Filter", "", OK, 0.25)],
            id="a point begins where the one before ended",
        ),
        pytest.param(
            [("", "", OK, 5.0), ("Bind", "B", OK, 6.0), ("Bind", "", OK, 6.0)],
            [("Bind", "B", OK, 1.0), ("Bind", "", OK, 1.0)],
            id="what was waited for is nobody's time",
        ),
        pytest.param(
            [("Filter", "", OK, 1.5), (EXTENDER_FILTER, "", OK, 5.0), ("PreScore", "A", OK, 5.25)],
            [("Filter", "", OK, 0.5), (EXTENDER_FILTER, "", OK, 3.5), ("PreScore", "A", OK, 0.25)],
            id="what extenders take is their time",
        ),
        pytest.param(
            [(REUSE, "no_hint", OK, 1.5), ("Filter", "", OK, 2.0)],
            [(REUSE, "no_hint", OK, 0.5), ("Filter", "", OK, 0.5)],
            id="the long way begins when reuse is given up",
        ),
        pytest.param(
            [("Filter", "", OK, 1.25), (REUSE, "hint_used", OK, 1.5)],
            [("Filter", "", OK, 0.25), (REUSE, "hint_used", OK, 0.5)],
            id="reuse is the whole attempt",
        ),
    ],
)
def test_durations(marks, expected):
    assert durations_of(marks, 1.0) == expected


def test_a_cycle_is_taken_apart():
    metrics = Metrics()
    marks = [
        ("Filter", "A", OK, 1.5),
        ("Filter", "", OK, 1.5),
        (REUSE, "hint_used", OK, 2.0),
    ]
    for _ in range(400):
        metrics.cycles.cycle(("berth", marks, 0.5, 1.0, 2.0, 2.25))
    point = {"extension_point": "Filter", "profile": "berth", "status": "Success"}
    plugin = {"extension_point": "Filter", "plugin": "A"}
    durations = "scheduler_framework_extension_point_duration_seconds_count"
    assert value(metrics, durations, **point) == 400
    evaluations = "scheduler_plugin_evaluation_total"
    assert value(metrics, evaluations, profile="berth", **plugin) == 400
    sampled = value(
        metrics, "scheduler_plugin_execution_duration_seconds_count", status="Success", **plugin
    )
    assert 0 < sampled < 200
    reuse = {"profile": "berth", "result": "hint_used"}
    assert value(metrics, "scheduler_batch_attempts_total", **reuse) == 400
    hint = {"hinted": "hint", "profile": "berth"}
    assert value(metrics, "scheduler_get_node_hint_duration_seconds_sum", **hint) == 400.0
    stage = "berth_cycle_stage_duration_seconds_sum"
    assert value(metrics, stage, stage="snapshot") == 200.0
    assert value(metrics, stage, stage="decide") == 400.0
    assert value(metrics, stage, stage="commit") == 100.0


def test_an_extender_is_no_extension_point():
    metrics = Metrics()
    marks = [("Filter", "", OK, 1.5), (EXTENDER_FILTER, "", OK, 5.0), ("PreScore", "", OK, 5.25)]
    metrics.cycles.cycle(("berth", marks, 0.5, 1.0, 5.25, 5.25))
    durations = "scheduler_framework_extension_point_duration_seconds"
    labels = {"profile": "berth", "status": "Success"}
    assert value(metrics, f"{durations}_sum", extension_point="PreScore", **labels) == 0.25
    assert value(metrics, f"{durations}_count", extension_point=EXTENDER_FILTER, **labels) is None


def test_who_has_nothing_to_do_is_not_counted():
    metrics = Metrics()
    marks = [("PreFilter", "A", Code.SKIP, 1.5), ("PreFilter", "B", OK, 1.5)]
    metrics.cycles.cycle(("berth", marks, 0.5, 1.0, 2.0, 2.25))
    name, labels = "scheduler_plugin_evaluation_total", {"extension_point": "PreFilter"}
    assert value(metrics, name, plugin="A", profile="berth", **labels) is None
    assert value(metrics, name, plugin="B", profile="berth", **labels) == 1


@pytest.mark.parametrize(
    ("status", "title"),
    [
        pytest.param(SUCCESS, "Success", id="yes"),
        pytest.param(unschedulable("no"), "Unschedulable"),
    ],
)
def test_gates_have_their_time_counted(status, title):
    metrics = Metrics()
    timed = metrics.cycles.timed(lambda _: status)
    assert timed(pod("a").scheduler("berth").build()) is status
    labels = {"extension_point": "PreEnqueue", "profile": "berth", "status": title}
    assert (
        value(metrics, "scheduler_framework_extension_point_duration_seconds_count", **labels) == 1
    )


def series(metrics: Metrics) -> int:
    return metrics.render()[0].count(b"\n")


def used(metrics: Metrics, profile: str) -> None:
    """Let everything happen once that is counted by profile."""
    marks = [("Filter", "A", OK, 1.5), ("Filter", "", OK, 1.5), (REUSE, "hint_used", OK, 2.0)]
    metrics.cycles.cycle((profile, marks, 0.5, 1.0, 2.0, 2.25))
    metrics.attempt(profile, "scheduled", 0.001)
    metrics.fold()


def test_profiles_with_fresh_names_leave_no_more_than_the_last_few_series(monkeypatch):
    # The series of a plugin begins with the first cycle that is sampled, which may be any.
    monkeypatch.setattr(cycle_metrics, "SAMPLED", 1.0)
    metrics = Metrics()
    in_force = {"berth"}
    metrics.watch_profiles(lambda: frozenset(in_force))
    used(metrics, "berth")
    sizes = []
    for number in range(4 * GONE_KEPT):
        in_force.add(f"p{number}")
        used(metrics, f"p{number}")
        in_force.remove(f"p{number}")
        metrics.fold()
        sizes.append(series(metrics))
    assert len(set(sizes[2 * GONE_KEPT :])) == 1
    attempts = "scheduler_schedule_attempts_total"
    at_last = {"profile": f"p{4 * GONE_KEPT - 1}", "result": "scheduled"}
    assert value(metrics, attempts, **at_last) == 1
    assert value(metrics, attempts, profile="p0", result="scheduled") is None
    assert value(metrics, attempts, profile="berth", result="scheduled") == 1


def test_a_profile_that_comes_again_after_its_series_were_dropped_is_counted():
    metrics = Metrics()
    in_force = {"berth", "back"}
    metrics.watch_profiles(lambda: frozenset(in_force))
    used(metrics, "back")
    for number in range(2 * GONE_KEPT):
        in_force = {"berth", f"p{number}"}
        used(metrics, f"p{number}")
    in_force = {"berth", "back"}
    used(metrics, "back")
    labels = {"extension_point": "Filter", "profile": "back", "status": "Success"}
    durations = "scheduler_framework_extension_point_duration_seconds_count"
    assert value(metrics, durations, **labels) == 1
    assert value(metrics, "scheduler_schedule_attempts_total", profile="back", result="scheduled")


def test_what_nobody_counts_is_bounded():
    samples = Registry().histogram("h", "text", [1.0]).of()
    for _ in range(MAX_WAITING + 10):
        samples.observe(0.5)
    samples.fold()
    assert samples.counts == [MAX_WAITING, 0]


@pytest.mark.parametrize("number", [1, 63, 64, 1_000], ids=str)
def test_many_observations_are_counted_as_few_are(number):
    samples = Registry().histogram("h", "text", [0.0, 1.0, 2.0]).of()
    for value in range(number):
        samples.observe(float(value % 4))
    samples.fold()
    assert samples.counts == [(number + 3 - bucket) // 4 for bucket in range(4)]
    assert samples.total == sum(value % 4 for value in range(number))


def test_labels_are_escaped():
    metrics = Metrics()
    metrics.incoming('a"b', "c\\d\ne")
    assert value(metrics, "scheduler_queue_incoming_pods_total", queue='a"b', event="c\\d\ne") == 1


def test_the_wrong_number_of_labels_is_a_mistake():
    with pytest.raises(ValueError, match="has the labels"):
        Registry().counter("c_total", "text", "a").of("1", "2")
