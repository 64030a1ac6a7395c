from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.objects import PodMeta
from scheduler.api_writes.event_body import (
    NAME_LIMIT,
    NOTE_LIMIT_BYTES,
    cut_note,
    event_body,
    event_name,
    valid_instance,
)
from scheduler.api_writes.event_series import ObjectType, Occurrence
from scheduler.decision.profile_origin import PolicyOrigin

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
POD_NAMES = st.from_regex(SUBDOMAIN, fullmatch=True).filter(lambda name: len(name) <= NAME_LIMIT)
STAMPS = st.integers(min_value=0, max_value=2**63 - 1)

META = PodMeta(name="web-0", namespace="shop", uid="u-1", resource_version="42")


def body(meta: PodMeta = META, count=1, last_s=1_767_225_600.5, **more):
    happened = ("Warning", "FailedScheduling", "Scheduling", "no room", 1_767_225_600.5)
    first = Occurrence(meta, *happened, **more)
    return event_body(first, "web-0.1", count, last_s, "berth", "berth-host")


def test_the_whole_event():
    assert body() == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-0.1", "namespace": "shop"},
        "eventTime": "2026-01-01T00:00:00.500000Z",
        "reportingController": "berth",
        "reportingInstance": "berth-host",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "web-0",
            "uid": "u-1",
            "resourceVersion": "42",
        },
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "no room",
    }


def test_an_event_about_another_object_names_its_type():
    made = body(type=ObjectType("scheduling.x-k8s.io/v1alpha1", "PodGroup"), related=META)
    assert made["regarding"] | {"kind": "PodGroup"} == made["regarding"]
    assert made["regarding"]["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert made["related"]["kind"] == "Pod"


def test_what_happened_more_than_once_is_a_series():
    assert body(count=3, last_s=1_767_225_601)["series"] == {
        "count": 3,
        "lastObservedTime": "2026-01-01T00:00:01.000000Z",
    }


def test_a_pod_without_a_namespace_has_its_events_in_default():
    made = body(PodMeta(name="a"))
    assert made["metadata"]["namespace"] == made["regarding"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("x" * 1024, "x" * 1024, id="as long as may be"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="a byte too long"),
        pytest.param("ä" * 512, "ä" * 512, id="bytes and not characters, just fits"),
        pytest.param("ä" * 513, "ä" * 510 + " ...", id="bytes and not characters, too long"),
        pytest.param("xx" + "\U0001f6a2" * 256, "xx" + "\U0001f6a2" * 254 + " ...", id="ships"),
        pytest.param("a\ud800b", "a?b", id="half a character"),
    ],
)
def test_a_note_is_cut_at_its_bytes(note, expected):
    assert cut_note(note) == expected


@given(st.text(alphabet=st.characters(codec=None), max_size=1500))
def test_every_note_can_be_sent(note):
    assert len(cut_note(note).encode()) <= NOTE_LIMIT_BYTES


@given(POD_NAMES, STAMPS)
def test_every_event_name_is_valid(pod_name, stamp):
    name = event_name(pod_name, stamp)
    assert len(name) <= NAME_LIMIT
    assert SUBDOMAIN.fullmatch(name)


@pytest.mark.parametrize(
    "pod_name",
    [
        pytest.param("a" * 253, id="the longest"),
        pytest.param("a" * 240 + "." * 1 + "b" * 12, id="a dot where it is cut"),
        pytest.param("a" * 238 + "-" * 10 + "b" * 5, id="dashes where it is cut"),
    ],
)
def test_a_long_pod_name_leaves_room_for_the_stamp(pod_name):
    name = event_name(pod_name, 0x18_0000_0000_0000)
    assert SUBDOMAIN.fullmatch(name)
    assert name.endswith(".18000000000000")


@given(POD_NAMES, STAMPS, STAMPS)
def test_different_stamps_give_different_names(pod_name, one, other):
    assert (event_name(pod_name, one) == event_name(pod_name, other)) == (one == other)


def test_an_instance_has_a_limit():
    assert len(valid_instance("h" * 500)) == 128


def test_an_instance_is_never_empty():
    assert valid_instance("")


def test_a_policy_of_the_file_is_told_in_an_annotation():
    made = body(policy=PolicyOrigin("file", 3))
    assert made["metadata"]["annotations"] == {"scheduling.berth.dev/policy": "file@3"}
    assert "related" not in made


def test_a_scheduling_profile_is_what_the_event_is_related_to():
    made = body(policy=PolicyOrigin.of_resource("gpu", 7, "u-7"))
    told = made["metadata"]["annotations"]["scheduling.berth.dev/policy"]
    assert told == "schedulingprofile/gpu@7"
    assert made["related"] == {
        "apiVersion": "scheduling.berth.dev/v1alpha1",
        "kind": "SchedulingProfile",
        "name": "gpu",
        "uid": "u-7",
    }


def test_a_pod_that_is_related_goes_before_the_policy():
    made = body(policy=PolicyOrigin.of_resource("gpu", 7, "u-7"), related=PodMeta(name="other"))
    assert made["related"]["kind"] == "Pod"
