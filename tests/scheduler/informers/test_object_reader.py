"""What stands for an object that cannot be decoded, where something does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cache.pod_group_objects import UnreadablePodGroup, UnreadableXPodGroup, XPodGroup
from scheduler.informers.object_reader import ObjectReader, UnreadableObjectError
from scheduler.informers.watch_events import EventType, ObjectEvent
from scheduler.informers.watch_stream import WatchDecoder
from scheduler.kinds import POD_GROUPS, PODS, X_POD_GROUPS

METADATA = {"name": "ring", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
BAD = {"metadata": METADATA, "spec": {"minMember": "abc"}}
WHY = "spec.minMember: Expected `int | null`, got `str`"


def read(kind: Any, obj: Any) -> Any:
    return ObjectReader(kind).read(msgspec.json.encode(obj))


def test_a_group_that_cannot_be_decoded_is_there_with_what_is_wrong() -> None:
    made = read(X_POD_GROUPS, BAD)
    assert isinstance(made, UnreadableXPodGroup)
    assert made.problem == WHY
    assert (made.metadata.uid, made.metadata.resource_version) == ("u", "7")


def test_so_is_one_of_the_other_api() -> None:
    made = read(POD_GROUPS, {"metadata": METADATA, "spec": {"priority": "high"}})
    assert isinstance(made, UnreadablePodGroup)
    assert made.problem.startswith("spec.priority: ")


def test_a_watch_brings_it_too() -> None:
    line = msgspec.json.encode({"type": "MODIFIED", "object": BAD}) + b"\n"
    (event,) = WatchDecoder(ObjectReader(X_POD_GROUPS)).feed(line)
    stand_in = UnreadableXPodGroup(read(X_POD_GROUPS, BAD).metadata, problem=WHY)
    assert event == ObjectEvent(EventType.MODIFIED, stand_in)


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        pytest.param(X_POD_GROUPS, {"metadata": []}, id="metadata that is none"),
        pytest.param(X_POD_GROUPS, {"metadata": {"name": "a"}, "spec": 1}, id="no uid"),
        pytest.param(X_POD_GROUPS, [], id="no object"),
        pytest.param(PODS, {"metadata": METADATA, "spec": {"containers": 1}}, id="another kind"),
    ],
)
def test_nothing_stands_for_what_has_no_name_or_a_last_good_version(kind: Any, obj: Any) -> None:
    with pytest.raises(UnreadableObjectError):
        read(kind, obj)


def test_what_is_wrong_is_a_line_however_long_the_value() -> None:
    spec = {"minResources": {"x" * 200_000: []}}
    assert len(read(X_POD_GROUPS, {"metadata": METADATA, "spec": spec}).problem) < 400


def test_a_field_of_the_object_is_no_problem_of_ours() -> None:
    made = read(X_POD_GROUPS, {"metadata": METADATA, "problem": "by a user"})
    assert type(made) is XPodGroup
