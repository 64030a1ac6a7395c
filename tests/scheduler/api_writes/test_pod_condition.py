from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.objects import Pod, PodCondition, PodMeta, PodStatus
from scheduler.api_writes.pod_condition import (
    MESSAGE_LIMIT,
    TRUST_S,
    ShownStatus,
    WantedStatus,
    WrittenStatuses,
    cut_message,
    status_patch,
)

NOW_S = 1_767_225_600.9
NOW = "2026-01-01T00:00:00Z"
BEFORE = "2025-12-31T12:00:00Z"


def a_pod(
    *conditions: PodCondition, nominated: str = "", generation: int = 3, uid: str = "u"
) -> Pod:
    return Pod(
        metadata=PodMeta(name="a", namespace="default", uid=uid, generation=generation),
        status=PodStatus(nominated_node_name=nominated, conditions=conditions),
    )


def condition(status="False", reason="Unschedulable", message="no room", type_="PodScheduled"):
    return PodCondition(type_, status, reason, message, 1, BEFORE)


def patch(pod: Pod, reason="Unschedulable", message="no room", nominated=None):
    wanted = WantedStatus(pod, reason, message, nominated)
    return status_patch(wanted, ShownStatus.of(pod), NOW_S)[0]


def test_the_whole_condition():
    assert patch(a_pod()) == {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "no room",
                "observedGeneration": 3,
                "lastProbeTime": None,
                "lastTransitionTime": NOW,
            }
        ]
    }


@pytest.mark.parametrize(
    ("shown", "since"),
    [
        pytest.param((), NOW, id="there was none"),
        pytest.param((condition("True"),), NOW, id="it was true"),
        pytest.param((condition("Unknown"),), NOW, id="it was unknown"),
        pytest.param((condition(reason="SchedulerError"),), BEFORE, id="another reason"),
        pytest.param((condition(message="no ports"),), BEFORE, id="another message"),
        pytest.param((condition(type_="Ready"),), NOW, id="another condition"),
    ],
)
def test_the_transition_is_when_the_status_changed(shown, since):
    assert patch(a_pod(*shown))["conditions"][0]["lastTransitionTime"] == since


def test_what_the_pod_says_already_is_not_written():
    assert patch(a_pod(condition())) == {}


def test_the_generation_alone_is_no_reason_to_write():
    assert patch(a_pod(condition(), generation=9)) == {}


def test_a_pod_without_generations_gets_none():
    assert "observedGeneration" not in patch(a_pod(generation=0))["conditions"][0]


@pytest.mark.parametrize(
    ("shown", "wanted", "expected"),
    [
        pytest.param("", None, {}, id="none, left"),
        pytest.param("n1", None, {}, id="one, left"),
        pytest.param("", "n1", {"nominatedNodeName": "n1"}, id="set"),
        pytest.param("n1", "n1", {}, id="set already"),
        pytest.param("n1", "n2", {"nominatedNodeName": "n2"}, id="moved"),
        pytest.param("n1", "", {"nominatedNodeName": None}, id="cleared"),
        pytest.param("", "", {}, id="cleared already"),
    ],
)
def test_the_nomination(shown, wanted, expected):
    assert patch(a_pod(condition(), nominated=shown), nominated=wanted) == expected


TEXTS = st.sampled_from(["", "no room", "no ports"])


def shown_at(moments):
    """Return a strategy for what the API server shows; not st.builds, which reads annotations."""
    fields = st.tuples(st.booleans(), TEXTS, TEXTS, moments, TEXTS)
    return fields.map(lambda each: ShownStatus(*each))


def wanted_statuses():
    """Return a strategy for what shall be shown."""
    fields = st.tuples(TEXTS, TEXTS, st.none() | TEXTS)
    return fields.map(lambda each: WantedStatus(a_pod(), *each))


@given(shown_at(st.sampled_from([None, BEFORE])), wanted_statuses())
def test_once_written_there_is_nothing_more_to_write(shown, wanted):
    _, will_show = status_patch(wanted, shown, NOW_S)
    assert status_patch(wanted, will_show, NOW_S + 60) == ({}, will_show)


@given(shown_at(st.just(BEFORE)), wanted_statuses())
def test_what_will_be_shown_is_what_the_patch_makes_of_it(shown, wanted):
    """Strategic merge: the condition is replaced by type, a null removes a field."""
    change, will_show = status_patch(wanted, shown, NOW_S)
    merged = {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False" if shown.is_false else "True",
                "reason": shown.reason,
                "message": shown.message,
                "lastTransitionTime": shown.since,
            }
        ],
        "nominatedNodeName": shown.nominated_node_name,
    } | {name: value or "" for name, value in change.items()}
    status = msgspec.convert(merged, PodStatus)
    assert ShownStatus.of(Pod(status=status)) == will_show


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        pytest.param(MESSAGE_LIMIT, "x" * MESSAGE_LIMIT, id="as long as may be"),
        pytest.param(MESSAGE_LIMIT + 1, "x" * (MESSAGE_LIMIT - 4) + " ...", id="too long"),
    ],
)
def test_a_message_has_a_limit(length, expected):
    assert cut_message("x" * length) == expected


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        pytest.param("n1", None, "n1", id="left open: as the older one"),
        pytest.param("n1", "n2", "n2", id="the newer one's own"),
        pytest.param("n1", "", "", id="cleared by the newer one"),
        pytest.param(None, None, None, id="left open by both"),
    ],
)
def test_the_nomination_of_a_status_that_was_never_written(older, newer, expected):
    first = WantedStatus(a_pod(), "Unschedulable", "old", older)
    second = WantedStatus(a_pod(), "Unschedulable", "new", newer)
    merged = second.after(first)
    assert (merged.message, merged.nominated_node_name) == ("new", expected)


WRITTEN = ShownStatus(True, "Unschedulable", "written", NOW)


@pytest.mark.parametrize(
    ("ago_s", "expected"),
    [
        pytest.param(TRUST_S, WRITTEN, id="the watch may be late"),
        pytest.param(TRUST_S + 1, ShownStatus(), id="the watch has had its time"),
    ],
)
def test_what_was_written_lately_counts_for_more_than_the_pod(ago_s, expected):
    written = WrittenStatuses(10)
    written.remember("u", WRITTEN, 100.0)
    assert written.shown_by(a_pod(), 100.0 + ago_s) == expected


def test_a_forgotten_pod_is_believed():
    written = WrittenStatuses(10)
    written.remember("u", WRITTEN, 100.0)
    written.forget("u")
    assert written.shown_by(a_pod(), 100.0) == ShownStatus()


def test_what_nobody_would_trust_is_not_kept():
    written = WrittenStatuses(10)
    for number in range(5):
        written.remember(f"u{number}", WRITTEN, 100.0)
    written.remember("u", WRITTEN, 101.0 + TRUST_S)
    assert len(written) == 1


def test_no_more_is_kept_than_the_capacity():
    written = WrittenStatuses(3)
    for number in range(5):
        written.remember(f"u{number}", WRITTEN, 100.0)
    asked = [a_pod(uid=f"u{number}") for number in range(5)]
    shown = [written.shown_by(each, 100.0) for each in asked]
    assert shown == [ShownStatus(), ShownStatus(), WRITTEN, WRITTEN, WRITTEN]
