"""PodGroups of both APIs, in all shapes that they have had, as the rules of one group."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from cache.objects import Pod
from cache.pod_group_objects import (
    DEFAULT_SCHEDULE_TIMEOUT_S,
    GROUP_LABEL,
    PARTIAL_GANG_GRACE,
    PREFERRED_TOPOLOGY_KEY,
    TOPOLOGY_KEY,
    GroupKey,
    GroupRules,
    GroupSource,
    PodGroup,
    UnreadablePodGroup,
    UnreadableXPodGroup,
    XPodGroup,
    group_key,
    rules_of_pod_group,
    rules_of_x_pod_group,
)
from scheduler.client.codec import Decoder, UndecodableObjectError

RECORDED = Path(__file__).parent / "recorded"
MAX_NAME = "n" * 253

# --- which group a pod names --------------------------------------------------------------------


def named(label: str | None = None, field: str | None = None) -> GroupKey | None:
    """Return the group of a pod with this label and this field."""
    metadata: dict[str, Any] = {"namespace": "ns", "name": "p"}
    if label is not None:
        metadata["labels"] = {GROUP_LABEL: label}
    spec = {} if field is None else {"schedulingGroup": {"podGroupName": field}}
    return group_key(msgspec.convert({"metadata": metadata, "spec": spec}, Pod))


@pytest.mark.parametrize(
    ("label", "field", "expected"),
    [
        pytest.param(None, None, None, id="none"),
        pytest.param("ring", None, GroupKey("ns", "ring", GroupSource.LABEL), id="label"),
        pytest.param(None, "ring", GroupKey("ns", "ring", GroupSource.FIELD), id="field"),
        pytest.param("a", "b", GroupKey("ns", "b", GroupSource.FIELD), id="both: the field"),
        pytest.param("", None, None, id="empty label"),
        pytest.param("a", "", GroupKey("ns", "a", GroupSource.LABEL), id="empty field"),
        pytest.param(
            None, MAX_NAME, GroupKey("ns", MAX_NAME, GroupSource.FIELD), id="name at the limit"
        ),
    ],
)
def test_a_pod_names_one_group(label: str | None, field: str | None, expected: GroupKey) -> None:
    assert named(label, field) == expected


# --- scheduling.x-k8s.io ------------------------------------------------------------------------


def x_rules(annotations: dict[str, str] | None = None, **spec: Any) -> GroupRules:
    """Return the rules of a PodGroup as the API server sends it."""
    metadata = {"name": "ring", "namespace": "ns", "uid": "u", "annotations": annotations or {}}
    text = json.dumps({"metadata": metadata, "spec": spec}).encode()
    return rules_of_x_pod_group(Decoder(XPodGroup).decode(text))


X_DEFAULTS = GroupRules(GroupKey("ns", "ring", GroupSource.LABEL), "u")


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"minMember": 0}, {}, id="minMember 0"),
        pytest.param({"minMember": None}, {}, id="minMember null"),
        pytest.param({"minMember": 1}, {}, id="minMember 1"),
        pytest.param({"minMember": 4}, {"minimum": 4}, id="minMember 4"),
        pytest.param({"minMember": 2**31 - 1}, {"minimum": 2**31 - 1}, id="largest minMember"),
        pytest.param(
            {"minMember": -1}, {"problem": "spec.minMember: -1 is negative"}, id="minMember -1"
        ),
        pytest.param(
            {"minMember": 2**31},
            {"minimum": 2**31, "problem": "spec.minMember: 2147483648 is more than 2147483647"},
            id="a minMember that no int32 holds",
        ),
        pytest.param({"scheduleTimeoutSeconds": 10}, {"timeout_s": 10.0}, id="timeout"),
        pytest.param({"scheduleTimeoutSeconds": 0}, {}, id="timeout 0"),
        pytest.param({"scheduleTimeoutSeconds": -5}, {}, id="negative timeout"),
        pytest.param({"scheduleTimeoutSeconds": None}, {}, id="timeout null"),
        pytest.param({"minResources": None}, {}, id="minResources null"),
        pytest.param(
            {"minResources": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": 4}},
            {"min_resources": {"cpu": 1500, "memory": 2**30, "example.com/gpu": 4}},
            id="minResources",
        ),
        pytest.param(
            {"minResources": {"cpu": "much"}},
            {
                "problem": "spec.minResources[cpu]: 'much' is not a quantity such as '500m', "
                "'1.5Gi' or '12e6'"
            },
            id="a quantity that cannot be read",
        ),
        pytest.param({"later": {"field": 1}}, {}, id="a field of a later version"),
    ],
)
def test_the_rules_of_an_x_pod_group(spec: dict[str, Any], changes: dict[str, Any]) -> None:
    assert x_rules(**spec) == msgspec.structs.replace(X_DEFAULTS, **changes)


@pytest.mark.parametrize(
    ("annotations", "changes"),
    [
        pytest.param({TOPOLOGY_KEY: "example.com/rack"}, {"topology_key": "example.com/rack"}),
        pytest.param({PREFERRED_TOPOLOGY_KEY: "zone"}, {"preferred_topology_key": "zone"}),
        pytest.param({PARTIAL_GANG_GRACE: "5m"}, {"partial_grace": "5m"}),
        pytest.param({TOPOLOGY_KEY: "", PREFERRED_TOPOLOGY_KEY: ""}, {}, id="empty"),
        pytest.param({"example.com/other": "x"}, {}, id="of others"),
    ],
)
def test_annotations_say_what_the_object_has_no_field_for(
    annotations: dict[str, str], changes: dict[str, Any]
) -> None:
    assert x_rules(annotations) == msgspec.structs.replace(X_DEFAULTS, **changes)


@pytest.mark.parametrize("name", [TOPOLOGY_KEY, PREFERRED_TOPOLOGY_KEY])
@pytest.mark.parametrize("key", ["a b", "-", "x" * 64, "a/b/c", "Upper.Case/x", "/x", "é"])
def test_a_key_that_no_label_can_have_is_a_reason(name: str, key: str) -> None:
    assert (
        x_rules({name: key}).problem
        == f"metadata.annotations[{name}]: {key!r} is no key of a label"
    )


def test_a_reason_repeats_no_more_than_a_line_of_a_value() -> None:
    assert len(x_rules({TOPOLOGY_KEY: "x" * 200_000}).problem) < 500
    assert len(x_rules(minResources={"r" * 200_000: "much"}).problem) < 500


def test_the_default_timeout_is_that_of_coscheduling() -> None:
    assert X_DEFAULTS.timeout_s == DEFAULT_SCHEDULE_TIMEOUT_S == 60.0


# --- scheduling.k8s.io --------------------------------------------------------------------------


def rules(annotations: dict[str, str] | None = None, **spec: Any) -> GroupRules:
    """Return the rules of a PodGroup as the API server sends it."""
    metadata = {"name": "ring", "namespace": "ns", "uid": "u", "annotations": annotations or {}}
    text = json.dumps({"metadata": metadata, "spec": spec}).encode()
    return rules_of_pod_group(Decoder(PodGroup).decode(text))


def gang(minimum: int) -> dict[str, Any]:
    return {"schedulingPolicy": {"gang": {"minCount": minimum}}}


DEFAULTS = GroupRules(GroupKey("ns", "ring", GroupSource.FIELD), "u")


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        pytest.param({"schedulingPolicy": {"basic": {}}}, {}, id="basic"),
        pytest.param({}, {}, id="nothing"),
        pytest.param(gang(4), {"minimum": 4}, id="gang"),
        pytest.param(
            gang(0),
            {"problem": "spec.schedulingPolicy.gang.minCount: 0 is less than 1"},
            id="minCount 0",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}},
            {"problem": "spec.schedulingPolicy.gang.minCount: 0 is less than 1"},
            id="no minCount",
        ),
        pytest.param(
            gang(-3),
            {"problem": "spec.schedulingPolicy.gang.minCount: -3 is less than 1"},
            id="negative minCount",
        ),
        pytest.param({"priority": 7}, {"priority": 7}, id="priority"),
        pytest.param({"priority": 0}, {"priority": 0}, id="priority 0 is one"),
        pytest.param({"disruptionMode": "Pod"}, {}, id="1.36: each pod"),
        pytest.param({"disruptionMode": "PodGroup"}, {"is_evicted_whole": True}, id="1.36: whole"),
        pytest.param({"disruptionMode": {"single": {}}}, {}, id="1.37: each pod"),
        pytest.param({"disruptionMode": {"all": {}}}, {"is_evicted_whole": True}, id="1.37: whole"),
        pytest.param({"disruptionMode": {"later": {}}}, {}, id="a mode that nobody knows"),
        pytest.param(
            {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
            {"topology_key": "rack"},
            id="topology",
        ),
        pytest.param({"schedulingConstraints": {"topology": []}}, {}, id="no topology"),
        pytest.param({"schedulingConstraints": {"topology": None}}, {}, id="topology null"),
        pytest.param(
            {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]},
            {"problem": "spec.resourceClaims: devices that a group shares are not supported"},
            id="devices of the group",
        ),
    ],
)
def test_the_rules_of_a_pod_group(spec: dict[str, Any], changes: dict[str, Any]) -> None:
    assert rules(**spec) == msgspec.structs.replace(DEFAULTS, **changes)


@pytest.mark.parametrize(
    ("annotations", "changes"),
    [
        pytest.param({PREFERRED_TOPOLOGY_KEY: "zone"}, {"preferred_topology_key": "zone"}),
        pytest.param({PARTIAL_GANG_GRACE: "5m"}, {"partial_grace": "5m"}),
        pytest.param({TOPOLOGY_KEY: "rack"}, {}, id="the field says it"),
    ],
)
def test_what_the_field_has_no_word_for_is_an_annotation(
    annotations: dict[str, str], changes: dict[str, Any]
) -> None:
    assert rules(annotations) == msgspec.structs.replace(DEFAULTS, **changes)


# --- objects that cannot be decoded -------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"minMember": "abc"}, id="text for a number"),
        pytest.param({"minMember": 1.5}, id="half a member"),
        pytest.param({"minMember": 3.0}, id="a number with a point"),
        pytest.param({"minResources": []}, id="list for a map"),
        pytest.param({"minResources": {"cpu": {}}}, id="object for a quantity"),
        pytest.param([], id="list for an object"),
    ],
)
def test_what_another_crd_may_let_pass_does_not_decode(spec: Any) -> None:
    with pytest.raises(UndecodableObjectError):
        Decoder(XPodGroup).decode(json.dumps({"spec": spec}).encode())


def test_a_group_that_cannot_be_read_is_refused_with_the_reason() -> None:
    x = rules_of_x_pod_group(UnreadableXPodGroup(problem="spec.minMember: Expected `int`"))
    other = rules_of_pod_group(UnreadablePodGroup(problem="spec: Expected `object`"))
    assert x.problem == "the PodGroup cannot be read: spec.minMember: Expected `int`"
    assert other.problem == "the PodGroup cannot be read: spec: Expected `object`"
    assert (x.key.source, other.key.source) == (GroupSource.LABEL, GroupSource.FIELD)


# --- objects of all versions --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "v1alpha2.json",
            {
                "minimum": 3,
                "topology_key": "topology.kubernetes.io/zone",
                "is_evicted_whole": True,
                "priority": 1000,
            },
            id="v1alpha2 of 1.36.3",
        ),
        pytest.param(
            "v1alpha3.json",
            {
                "minimum": 3,
                "topology_key": "topology.kubernetes.io/zone",
                "is_evicted_whole": True,
                "priority": 1000,
            },
            id="v1alpha3 of 1.37",
        ),
        pytest.param(
            "v1alpha3-single.json",
            {"minimum": 5, "priority": 0, "never_preempts": True},
            id="v1alpha3, each pod alone",
        ),
        pytest.param(
            "v1alpha3-composite.json",
            {
                "minimum": 2,
                "priority": 0,
                "problem": "spec.parentCompositePodGroupName: groups of groups are not supported",
            },
            id="v1alpha3, a group of a group",
        ),
        pytest.param("v1beta1-basic.json", {"priority": 0}, id="v1beta1, basic"),
    ],
)
def test_recorded_objects_are_read(name: str, expected: dict[str, Any]) -> None:
    made = Decoder(PodGroup).decode((RECORDED / name).read_bytes())
    bare = GroupRules(GroupKey("default", made.metadata.name, GroupSource.FIELD), made.metadata.uid)
    assert rules_of_pod_group(made) == msgspec.structs.replace(bare, **expected)


def test_a_minimum_that_is_changed_in_place_counts() -> None:
    """As 1.37 allows it."""
    text = (RECORDED / "v1alpha3.json").read_text()
    less = text.replace('"minCount": 3', '"minCount": 2')
    assert rules_of_pod_group(Decoder(PodGroup).decode(less.encode())).minimum == 2


def test_amounts_cannot_be_changed_by_accident() -> None:
    assert isinstance(x_rules(minResources={"cpu": 1}).min_resources, MappingProxyType)
