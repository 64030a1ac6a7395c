from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cache.objects import Pod, PodCondition, PodStatus
from scheduler.ui.pending_pods import (
    AGE_CLASSES,
    MAX_REASON_CHARACTERS,
    MAX_REASONS,
    OTHERS,
    UNDECIDED,
    age_classes,
    by_reason,
    pending_pods,
    plugins_of,
    reason_of,
    trend,
)
from tests.builders import pod


def said(message: str, name: str = "pod") -> Pod:
    condition = PodCondition(type="PodScheduled", status="False", message=message)
    return replace(pod(name).build(), status=PodStatus(conditions=(condition,)))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param("0/9 nodes are available: 9 Insufficient cpu.", "Insufficient cpu", id="one"),
        pytest.param(
            "0/9 nodes are available: 2 Insufficient cpu, 7 node(s) had untolerated taint(s).",
            "node(s) had untolerated taint(s) · Insufficient cpu",
            id="the most frequent first",
        ),
        pytest.param(
            "0/9 nodes are available: 9 Insufficient cpu. preemption: 0/9 nodes are available: "
            "9 No preemption victims found for incoming pod.",
            "Insufficient cpu",
            id="without preemption",
        ),
        pytest.param(
            "0/9 nodes are available: 9 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/9 nodes are available: 9 Preemption is not helpful for scheduling.",
            "Insufficient cpu",
            id="without other messages of PostFilter",
        ),
        pytest.param(
            "0/9 nodes are available: 9 node(s) had untolerated taint {a: b, c}.",
            "node(s) had untolerated taint {a: b, c}",
            id="a comma in a reason",
        ),
        pytest.param(
            'running PreBind plugin "VolumeBinding": timed out',
            'running PreBind plugin "VolumeBinding": timed out',
            id="no numbers of nodes",
        ),
        pytest.param(
            "0/9 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            "pod has unbound immediate PersistentVolumeClaims",
            id="before any node",
        ),
        pytest.param("", UNDECIDED, id="nothing"),
    ],
)
def test_a_reason_is_a_message_without_numbers(message: str, reason: str) -> None:
    assert reason_of(said(message)) == reason


def test_numbers_of_nodes_do_not_divide_groups() -> None:
    pods = [
        ("a/1", said("0/9 nodes are available: 9 Insufficient cpu.")),
        ("a/2", said("0/8 nodes are available: 8 Insufficient cpu.")),
    ]
    assert [len(group.pods) for group in by_reason(pending_pods(pods), 0.0)] == [2]


def test_a_gated_pod_names_its_gates() -> None:
    assert reason_of(pod().gate("quota").build()) == "waiting for scheduling gates: quota"


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(pod().on("n1"), id="placed"),
        pytest.param(pod().phase("Failed"), id="ended"),
        pytest.param(pod().terminating(), id="being deleted"),
    ],
)
def test_a_pod_that_needs_no_node_is_not_pending(gone: object) -> None:
    assert pending_pods([("default/pod", gone.build())]) == []


def test_reasons_are_bounded_in_number_and_length() -> None:
    pods = [(f"a/{i}", said(f"{i} {'x' * 5000}")) for i in range(3 * MAX_REASONS)]
    groups = by_reason(pending_pods(pods), 0.0)
    assert len(groups) == MAX_REASONS + 1
    assert groups[0].reason == OTHERS
    assert max(len(group.reason) for group in groups) <= MAX_REASON_CHARACTERS


def test_plugins_are_named_by_their_words() -> None:
    reason = "Insufficient cpu · node(s) had untolerated taint(s)"
    assert plugins_of(reason) == ("NodeResourcesFit", "TaintToleration")


@given(st.text())
def test_no_message_is_too_odd(message: str) -> None:
    assert isinstance(reason_of(said(message)), str)


@given(st.lists(st.floats(0, 1e6)))
def test_every_age_is_in_one_class(ages: list[float]) -> None:
    counts = age_classes(ages)
    assert len(counts) == len(AGE_CLASSES)
    assert sum(counts) == len(ages)


@given(st.lists(st.floats(0, 1e6)))
def test_the_trend_of_who_still_waits_only_rises_and_ends_at_all(ages: list[float]) -> None:
    counts = trend(ages)
    assert list(counts) == sorted(counts)
    assert counts[-1] == len(ages)
