from __future__ import annotations

import pytest

from scheduler.queueing.backoff_pods import BackoffPods
from scheduler.queueing.queued_pod import QueuedPod
from tests.builders import pod


def failed(
    name: str = "p", *, at_s: float = 100.0, refusals: int = 0, errors: int = 0, priority: int = 0
) -> QueuedPod:
    queued = QueuedPod(pod(name).info(), at_s, 1, (-priority, at_s))
    queued.unschedulable_count = refusals
    queued.consecutive_errors = errors
    if refusals and not errors:
        queued.unschedulable_plugins = {"Fit"}
    return queued


@pytest.mark.parametrize(
    ("failures", "pause_s"),
    [
        pytest.param(0, 0.0, id="never failed"),
        pytest.param(1, 1.0, id="first"),
        pytest.param(2, 2.0, id="second"),
        pytest.param(3, 4.0, id="third"),
        pytest.param(4, 8.0, id="fourth"),
        pytest.param(5, 10.0, id="the longest"),
        pytest.param(6, 10.0, id="stays the longest"),
        pytest.param(100_000, 10.0, id="no overflow"),
    ],
)
def test_the_pause_doubles_with_each_failure_up_to_the_longest(failures, pause_s):
    assert BackoffPods(1.0, 10.0).duration_s(failures) == pause_s


@pytest.mark.parametrize(
    ("queued", "end_s"),
    [
        pytest.param(failed(refusals=1), 102.0, id="one second, to the end of its window"),
        pytest.param(failed(at_s=100.7, refusals=1), 102.0, id="the window it falls into"),
        pytest.param(failed(at_s=100.7, refusals=2), 103.0, id="two seconds"),
        pytest.param(failed(refusals=9), 111.0, id="the longest"),
        pytest.param(failed(refusals=4, errors=1), 102.0, id="errors count for themselves"),
        pytest.param(failed(errors=2), 103.0, id="errors in a row"),
        pytest.param(failed(), 0.0, id="never failed"),
    ],
)
def test_a_pause_ends_with_its_window(queued, end_s):
    assert BackoffPods(1.0, 10.0).end_s(queued) == end_s


def test_a_maximum_of_zero_switches_pauses_off():
    assert BackoffPods(1.0, 0.0).end_s(failed(refusals=3)) == 0.0


def test_in_one_window_the_order_is_that_of_active_pods():
    pods = BackoffPods(1.0, 10.0)
    for name, priority, at_s in [("low", 0, 100.1), ("high", 9, 100.9), ("earlier", 0, 99.5)]:
        queued = failed(name, at_s=at_s, refusals=1, priority=priority)
        queued.backoff_until_s = pods.end_s(queued)
        pods.add(queued)
    assert [pods.pop_early().info.name for _ in range(3)] == ["earlier", "high", "low"]


def test_a_pod_that_failed_by_our_own_error_never_goes_early():
    pods = BackoffPods(1.0, 10.0)
    queued = failed(errors=1)
    queued.backoff_until_s = pods.end_s(queued)
    pods.add(queued)
    assert pods.pop_early() is None
    assert pods.next_end_s() == 102.0
    assert pods.pop_over(101.999) is None
    assert pods.pop_over(102.0) is queued
    assert pods.next_end_s() is None
