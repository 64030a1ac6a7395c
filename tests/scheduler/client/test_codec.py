from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.objects import Namespace, Node, Pod
from cache.resources import MalformedObjectError
from scheduler.client.codec import Decoder, ObjectIdentity, UndecodableObjectError, identity_of
from scheduler.kinds import NAMESPACES, NODES, PODS, ResourceKind

PODS_DECODER = Decoder(Pod)
NODES_DECODER = Decoder(Node)

POD: dict[str, Any] = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "u-1",
        "resourceVersion": "42",
        "labels": {"app": "web"},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {}}}],
    },
    "spec": {
        "schedulerName": "berth",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": 5}}}],
        "somethingNew": {"deep": [1, 2, {"x": None}]},
    },
    "status": {"phase": "Pending"},
}
IDENTITY = ObjectIdentity("shop", "web-0", "u-1", "42")


def pod_bytes(*path: str | int, value: Any) -> bytes:
    """Return POD with the value at `path` replaced."""
    pod = msgspec.json.decode(msgspec.json.encode(POD))
    place = pod
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return msgspec.json.encode(pod)


def refused(raw: bytes) -> UndecodableObjectError:
    with pytest.raises(UndecodableObjectError) as caught:
        PODS_DECODER.decode(raw)
    return caught.value


@pytest.mark.parametrize("kind", [bytes, memoryview, msgspec.Raw])
def test_an_object_is_decoded_from_any_kind_of_bytes(kind: Any) -> None:
    pod = PODS_DECODER.decode(kind(msgspec.json.encode(POD)))
    assert (pod.metadata.name, pod.spec.containers[0].name) == ("web-0", "c")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(("metadata", "labels"), id="map"),
        pytest.param(("spec", "containers"), id="list"),
        pytest.param(("spec", "tolerations"), id="list-with-default"),
        pytest.param(("spec", "schedulerName"), id="string"),
        pytest.param(("spec", "hostNetwork"), id="bool"),
        pytest.param(("spec",), id="struct"),
        pytest.param(("metadata", "labels", "app"), id="value-of-a-map"),
        pytest.param(("spec", "containers", 0), id="element-of-a-list"),
        pytest.param(("spec", "containers", 0, "resources", "requests", "cpu"), id="quantity"),
    ],
)
def test_null_is_read_as_absent(path: tuple[str | int, ...]) -> None:
    pod = PODS_DECODER.decode(pod_bytes(*path, value=None))
    assert pod.metadata.uid == "u-1"


def test_what_is_beside_a_null_is_kept() -> None:
    pod = PODS_DECODER.decode(pod_bytes("spec", "tolerations", value=None))
    assert pod.metadata.labels == {"app": "web"}
    assert pod.spec.containers[0].resources.requests == {"cpu": "1", "memory": 5}


@pytest.mark.parametrize(
    ("steps", "value", "path"),
    [
        pytest.param(("metadata", "labels"), [], "metadata.labels", id="list-for-map"),
        pytest.param(("metadata", "labels", "app"), 5, "metadata.labels[app]", id="in-a-map"),
        pytest.param(("spec", "containers"), {}, "spec.containers", id="map-for-list"),
        pytest.param(
            ("spec", "containers", 0, "name"), 5, "spec.containers[0].name", id="in-a-list"
        ),
        pytest.param(
            ("spec", "containers", 0, "resources", "requests", "cpu"),
            ["1"],
            "spec.containers[0].resources.requests[cpu]",
            id="quantity",
        ),
        pytest.param(("spec", "priority"), "high", "spec.priority", id="string-for-number"),
        pytest.param(("spec", "hostNetwork"), "yes", "spec.hostNetwork", id="string-for-bool"),
        pytest.param(
            ("spec", "topologySpreadConstraints"),
            [{"maxSkew": True}],
            "spec.topologySpreadConstraints[0].maxSkew",
            id="bool-for-number",
        ),
        pytest.param(("spec",), "x", "spec", id="string-for-struct"),
        pytest.param(("metadata", "labels", "app"), {"a": 1}, "metadata.labels[app]", id="nested"),
    ],
)
def test_a_bad_value_is_named_by_its_path(
    steps: tuple[str | int, ...], value: Any, path: str
) -> None:
    error = refused(pod_bytes(*steps, value=value))
    assert error.path == path
    assert str(error).startswith(f"shop/web-0: {path}: Expected")


def test_a_bad_value_does_not_hide_whose_it_is() -> None:
    assert refused(pod_bytes("spec", "priority", value="high")).identity == IDENTITY


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param("name", ObjectIdentity("shop", "", "u-1", "42"), id="name"),
        pytest.param("uid", ObjectIdentity("shop", "web-0", "", "42"), id="uid"),
        pytest.param("resourceVersion", ObjectIdentity("shop", "web-0", "u-1", ""), id="version"),
    ],
)
def test_a_bad_identity_is_read_as_far_as_it_goes(field: str, expected: ObjectIdentity) -> None:
    assert refused(pod_bytes("metadata", field, value={})).identity == expected


def test_an_undecodable_object_is_a_malformed_object() -> None:
    assert isinstance(refused(b"{"), MalformedObjectError)


def test_bytes_that_are_not_utf8_are_refused_with_the_identity() -> None:
    raw = msgspec.json.encode(POD).replace(b'"berth"', b'"\xff\xfe"')
    error = refused(raw)
    assert error.why.startswith("not UTF-8")
    assert error.identity == IDENTITY


@pytest.mark.parametrize("length", range(0, len(msgspec.json.encode(POD)), 7))
def test_truncated_bytes_are_refused(length: int) -> None:
    refused(msgspec.json.encode(POD)[:length])


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"[" * 5_000_000, id="lists"),
        pytest.param(b'{"a":' * 1_000_000, id="objects"),
        pytest.param(
            b'{"spec":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", id="unknown-field"
        ),
        pytest.param(
            b'{"spec":{"containers":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", id="known-field"
        ),
    ],
)
def test_nesting_without_end_is_refused(raw: bytes) -> None:
    refused(raw)


@pytest.mark.parametrize("raw", [b"", b"null", b"5", b'"pod"', b"[]", b"{}x", b"\xef\xbb\xbf{}"])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    assert refused(raw).identity == ObjectIdentity()


@pytest.mark.parametrize("number", [b"1e400", b"9" * 10_000, b"-1e999999999"])
def test_a_number_beyond_all_bounds_is_refused_at_its_place(number: bytes) -> None:
    raw = pod_bytes("spec", "containers", 0, "resources", "requests", "cpu", value=777)
    error = refused(raw.replace(b"777", number))
    assert error.path.startswith("spec.containers[0].resources.requests")
    assert len(str(error)) < 500


def test_a_message_stays_short_whatever_the_object_holds() -> None:
    pod = {"metadata": {"name": "n" * 1_000_000, "labels": {"k" * 1_000_000: 5}}}
    assert len(str(refused(msgspec.json.encode(pod)))) < 1000


def test_one_mebibyte_of_labels_is_decoded() -> None:
    labels = {f"key-{i}": "v" * 50 for i in range(18_000)}
    assert (
        PODS_DECODER.decode(pod_bytes("metadata", "labels", value=labels)).metadata.labels == labels
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
STEPS = [
    ("metadata",),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
    ("spec",),
    ("spec", "containers"),
    ("spec", "affinity"),
    ("spec", "tolerations"),
    ("spec", "overhead"),
    ("status",),
]


@given(steps=st.sampled_from(STEPS), value=JSON)
def test_any_json_in_any_place_is_decoded_or_refused(steps: tuple[str, ...], value: Any) -> None:
    raw = pod_bytes(*steps, value=value)
    try:
        pod = PODS_DECODER.decode(raw)
    except UndecodableObjectError:
        return
    assert isinstance(pod, Pod)


@given(raw=st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(raw: bytes) -> None:
    try:
        NODES_DECODER.decode(raw)
    except UndecodableObjectError:
        return


@given(raw=st.binary(max_size=200))
def test_the_identity_of_anything_can_be_asked_for(raw: bytes) -> None:
    assert isinstance(identity_of(raw), ObjectIdentity)


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_damaged_object_is_decoded_or_refused(at: int, byte: int) -> None:
    raw = bytearray(msgspec.json.encode(POD))
    raw[at % len(raw)] = byte
    try:
        PODS_DECODER.decode(bytes(raw))
    except UndecodableObjectError:
        return


@pytest.mark.parametrize(
    ("kind", "struct", "group"),
    [
        pytest.param(PODS, Pod, "", id="pods"),
        pytest.param(NODES, Node, "", id="nodes"),
        pytest.param(NAMESPACES, Namespace, "", id="namespaces"),
        pytest.param(
            ResourceKind("csinodes", "/apis/storage.k8s.io/v1/csinodes", Node),
            Node,
            "storage.k8s.io",
            id="of-a-group",
        ),
    ],
)
def test_a_kind_knows_its_struct_and_group(
    kind: ResourceKind[Any], struct: type, group: str
) -> None:
    assert (kind.struct, kind.group) == (struct, group)
