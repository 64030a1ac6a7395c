"""The kind SchedulingProfile: what berth reads is what its schema has; rules hold at the door."""

from __future__ import annotations

import json
import urllib.error
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import inspect

from scheduler.profiles.operator.scheduling_profile import (
    GROUP,
    KIND,
    PATH,
    PLURAL,
    VERSION,
    SchedulingProfileSpec,
)
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.scheduling_profiles import SchedulingProfiles
from tests.deploy.chart import only, rendered

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_HONOURED = {"placementGenerate", "placementScore", "podGroupPostFilter", "placementFeasible"}
"""Points of later versions: a file may have them, this kind has no need to."""


@pytest.fixture(scope="module")
def kind() -> dict[str, Any]:
    manifests = rendered({"schedulingProfiles": {"enabled": True}})
    return only(manifests, "CustomResourceDefinition")["spec"]


def schema_of(kind: dict[str, Any]) -> dict[str, Any]:
    (version,) = kind["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


def read(info: inspect.Type, path: str = "") -> Iterator[str]:
    """Yield the path of each field that berth reads."""
    if isinstance(info, inspect.UnionType):
        (info,) = (each for each in info.types if not isinstance(each, inspect.NoneType))
    if isinstance(info, inspect.VarTupleType):
        info = info.item_type
    if isinstance(info, inspect.StructType):
        for field in info.fields:
            if field.encode_name not in NOT_HONOURED:
                yield f"{path}.{field.encode_name}"
                yield from read(field.type, f"{path}.{field.encode_name}")


def declared(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of each field of a schema."""
    schema = schema.get("items", schema)
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from declared(field, f"{path}.{name}")


def test_the_schema_has_the_fields_that_are_read_and_no_others(kind: dict[str, Any]) -> None:
    assert set(declared(schema_of(kind))) == set(read(inspect.type_info(SchedulingProfileSpec)))


def test_the_kind_is_where_berth_looks_for_it(kind: dict[str, Any]) -> None:
    (version,) = kind["versions"]
    assert (kind["group"], kind["names"]["plural"], kind["names"]["kind"], version["name"]) == (
        GROUP,
        PLURAL,
        KIND,
        VERSION,
    )
    assert kind["scope"] == "Cluster"
    assert version["subresources"] == {"status": {}}


# --- on a real API server ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        plane.berth_kubeconfig()
        SchedulingProfiles(plane).install()
        yield plane


def refusal(plane: ControlPlane, method: str, path: str, body: Any, **options: Any) -> str:
    """Return why the API server does not take something; empty if it would."""
    try:
        plane.call(method, f"{path}?dryRun=All&fieldValidation=Strict", body, **options)
    except urllib.error.HTTPError as error:
        with error:
            return str(json.load(error)["message"])
    return ""


def manifest(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": spec,
    }


EXTENDER = {"urlPrefix": "http://extender"}


@pytest.mark.controlplane
@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({}, "spec.schedulerName: Required", id="no-name"),
        pytest.param(
            {"schedulerName": "default-scheduler"},
            "is that of the cluster's own scheduler",
            id="somebody-elses-name",
        ),
        pytest.param(
            {"schedulerName": "a", "pluginz": {}}, 'unknown field "spec.pluginz"', id="unknown"
        ),
        pytest.param(
            {"schedulerName": "a", "mode": "Dry"}, 'Unsupported value: "Dry"', id="no-mode"
        ),
        pytest.param(
            {"schedulerName": "a", "shadow": {"budget": 0}}, "spec.shadow.budget", id="no-budget"
        ),
        pytest.param(
            {"schedulerName": "a", "percentageOfNodesToScore": 101},
            "spec.percentageOfNodesToScore",
            id="more-than-all-nodes",
        ),
        pytest.param(
            {"schedulerName": "a", "plugins": {"score": {"enabled": [{"name": "A"}] * 2}}},
            "Duplicate value",
            id="a-plugin-twice",
        ),
        pytest.param(
            {"schedulerName": "a", "pluginConfig": [{"name": "A"}] * 2},
            "Duplicate value",
            id="arguments-twice",
        ),
        pytest.param(
            {"schedulerName": "a", "python": [{}]},
            "needs exactly one of configMap and entryPoint",
            id="python-from-nowhere",
        ),
        pytest.param(
            {
                "schedulerName": "a",
                "python": [{"entryPoint": "x", "configMap": {"name": "a", "key": "b"}}],
            },
            "needs exactly one of configMap and entryPoint",
            id="python-from-two-places",
        ),
        pytest.param(
            {"schedulerName": "a", "extenders": [{"urlPrefix": "extender:80"}]},
            "spec.extenders[0].urlPrefix",
            id="no-url",
        ),
        pytest.param(
            {"schedulerName": "a", "extenders": [{**EXTENDER, "prioritizeVerb": "score"}]},
            "weight must be more than 0",
            id="scores-without-weight",
        ),
        pytest.param(
            {"schedulerName": "a", "extenders": [{**EXTENDER, "bindVerb": "bind"}] * 2},
            "only one extender can bind",
            id="two-binders",
        ),
        pytest.param(
            {
                "schedulerName": "a",
                "extenders": [{**EXTENDER, "tlsConfig": {"insecure": True, "caData": "YQ=="}}],
            },
            "insecure must not be set together with a CA",
            id="insecure-with-a-ca",
        ),
        pytest.param(
            {"schedulerName": "a", "extenders": [{**EXTENDER, "httpTimeout": "5"}]},
            "spec.extenders[0].httpTimeout",
            id="no-unit",
        ),
        pytest.param(
            {"schedulerName": "a", "extenders": [{**EXTENDER, "httpTimeout": "1m"}]},
            "httpTimeout must be at most 10s",
            id="thinks-for-a-minute",
        ),
        pytest.param(
            {
                "schedulerName": "a",
                "extenders": [{**EXTENDER, "tlsConfig": {"caFile": "/etc/passwd"}}],
            },
            "a SchedulingProfile names no files",
            id="names-a-file",
        ),
    ],
)
def test_what_no_berth_could_use_is_refused_at_the_door(
    plane: ControlPlane, spec: dict[str, Any], why: str
) -> None:
    assert why in refusal(plane, "POST", PATH, manifest("a", spec))


@pytest.mark.controlplane
def test_a_spec_with_everything_is_taken(plane: ControlPlane) -> None:
    sets = {"enabled": [{"name": "A", "weight": 2}], "disabled": [{"name": "*"}]}
    points = schema_of_points(plane)
    spec = {
        "schedulerName": "a",
        "mode": "Shadow",
        "shadow": {"decisions": 10, "budget": 0.5},
        "percentageOfNodesToScore": 50,
        "plugins": dict.fromkeys(points, sets),
        "pluginConfig": [{"name": "A", "args": {"any": [{"thing": 1}]}}],
        "python": [{"configMap": {"name": "a", "key": "b"}, "args": {"any": 1}}],
        "extenders": [{**EXTENDER, "filterVerb": "filter", "httpTimeout": "1s500ms", "weight": 1}],
    }
    assert refusal(plane, "POST", PATH, manifest("everything", spec)) == ""


def schema_of_points(plane: ControlPlane) -> list[str]:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{GROUP}"
    return list(schema_of(plane.call("GET", path)["spec"])["properties"]["plugins"]["properties"])


@pytest.mark.controlplane
def test_the_name_that_pods_ask_for_never_changes(plane: ControlPlane) -> None:
    profiles = SchedulingProfiles(plane)
    profiles.create("named", {"schedulerName": "first"})
    merge = {"content_type": "application/merge-patch+json"}
    patch = {"spec": {"schedulerName": "second"}}
    assert "never changes" in refusal(plane, "PATCH", f"{PATH}/named", patch, **merge)
    assert refusal(plane, "PATCH", f"{PATH}/named", {"spec": {"mode": "Shadow"}}, **merge) == ""
