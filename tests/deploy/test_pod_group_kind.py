"""The kind PodGroup of the chart accepts and refuses what that of scheduler-plugins 0.34.7 does.

The verdicts are those of an API server with the original definition, which is asked again: the Go
module that holds it is downloaded unless it is in the module cache.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from scheduler.kinds import X_POD_GROUPS
from tests.deploy.chart import (
    CHART,
    NAMESPACE,
    RELEASE,
    helm,
    manifests_in,
    of_kind,
    only,
    rendered,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.control_plane import ControlPlane

KINDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KIND: Final = "podgroups.scheduling.x-k8s.io"
GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
ORIGINAL_MODULE: Final = "sigs.k8s.io/scheduler-plugins@v0.34.7"
ORIGINAL_FILE: Final = "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml"
_DEADLINE_S: Final = 30.0

Row = tuple[str, dict[str, Any], str]


def quantity(name: str, value: Any, field: str = "") -> Row:
    return name, {"spec": {"minResources": {"cpu": value}}}, field


CPU: Final = "spec.minResources.cpu"
WHOLE: Final = "<nil>"
"""The API server's word for the object as a whole."""
ROWS: Final[list[Row]] = [
    ("nothing", {}, ""),
    ("empty-spec", {"spec": {}}, ""),
    ("spec-null", {"spec": None}, ""),
    ("all-fields", {"spec": {"minMember": 3, "scheduleTimeoutSeconds": 10}}, ""),
    ("min-member-1", {"spec": {"minMember": 1}}, ""),
    ("min-member-0", {"spec": {"minMember": 0}}, "spec.minMember"),
    ("min-member-negative", {"spec": {"minMember": -1}}, "spec.minMember"),
    ("min-member-text", {"spec": {"minMember": "3"}}, "spec.minMember"),
    ("min-member-half", {"spec": {"minMember": 1.5}}, f"spec.minMember {WHOLE}"),
    ("min-member-null", {"spec": {"minMember": None}}, ""),
    ("min-member-largest", {"spec": {"minMember": 2**31 - 1}}, ""),
    ("min-member-too-large", {"spec": {"minMember": 2**31}}, WHOLE),
    ("timeout-0", {"spec": {"scheduleTimeoutSeconds": 0}}, ""),
    ("timeout-negative", {"spec": {"scheduleTimeoutSeconds": -1}}, ""),
    ("timeout-text", {"spec": {"scheduleTimeoutSeconds": "10s"}}, "spec.scheduleTimeoutSeconds"),
    ("timeout-long", {"spec": {"scheduleTimeoutSeconds": 2**31}}, WHOLE),
    ("resources-list", {"spec": {"minResources": []}}, "spec.minResources"),
    ("resources-empty", {"spec": {"minResources": {}}}, ""),
    quantity("number", 4),
    quantity("negative-number", -4),
    quantity("float", 1.5, f"{CPU} {WHOLE}"),
    quantity("milli", "1500m"),
    quantity("binary", "1.5Gi"),
    quantity("decimal", ".5G"),
    quantity("trailing-point", "5."),
    quantity("signed", "+4"),
    quantity("negative", "-4"),
    quantity("exponent", "12e6"),
    quantity("signed-exponent", "1E-3"),
    quantity("exponent-with-point", "1e1.5"),
    quantity("nano", "1n"),
    quantity("exa", "1Ei"),
    quantity("empty", "", CPU),
    quantity("word", "much", CPU),
    quantity("space", " 1", CPU),
    quantity("two-signs", "--1", CPU),
    quantity("point-alone", ".", CPU),
    quantity("milli-binary", "1mi", CPU),
    quantity("capital-kilo", "1K", CPU),
    quantity("small-kilo-binary", "1ki", CPU),
    quantity("exponent-without-number", "1e", CPU),
    quantity("suffix-after-exponent", "1e3Ki", CPU),
    quantity("line-break", "1\n", CPU),
    quantity("other-digits", "\u0661", CPU),
    quantity("true", True, f"{CPU} {WHOLE}"),
    quantity("object", {}, f"{CPU} {WHOLE}"),
    quantity("null", None),
    ("unknown-field", {"spec": {"minMembers": 3}}, ""),
    ("unknown-top-level-field", {"later": 1}, ""),
    ("status-phase", {"status": {"phase": "Whatever"}}, ""),
    ("status-phase-number", {"status": {"phase": 1}}, "status.phase"),
    ("status-running-negative", {"status": {"running": -1}}, ""),
    ("status-running-text", {"status": {"running": "1"}}, "status.running"),
    ("status-time", {"status": {"scheduleStartTime": "2026-01-01T00:00:00Z"}}, ""),
    (
        "status-time-date",
        {"status": {"scheduleStartTime": "2026-01-01"}},
        "status.scheduleStartTime",
    ),
    ("status-time-null", {"status": {"scheduleStartTime": None}}, ""),
]
"""Id, the object's fields, and those that are refused; empty where the object is accepted."""


def chart_definition() -> dict[str, Any]:
    return only(rendered({"podGroups": {"crd": True}}), "CustomResourceDefinition")


def original_definition() -> dict[str, Any]:
    found = subprocess.run(
        ["go", "mod", "download", "-json", ORIGINAL_MODULE], capture_output=True, check=False
    )
    assert found.returncode == 0, found.stderr + found.stdout
    file = Path(json.loads(found.stdout)["Dir"]) / ORIGINAL_FILE
    made = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert isinstance(made, dict)
    return made


@pytest.fixture(
    scope="module", params=[chart_definition, original_definition], ids=["chart", "original"]
)
def plane(request: pytest.FixtureRequest, control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with one of the two definitions, and one group."""
    control_plane.call("POST", KINDS, request.param())
    wait_until(control_plane, GROUPS, 200)
    control_plane.call("POST", GROUPS, manifest("stored"))
    yield control_plane
    control_plane.call("DELETE", f"{KINDS}/{KIND}")
    wait_until(control_plane, f"{KINDS}/{KIND}", 404)


def wait_until(plane: ControlPlane, path: str, status: int) -> None:
    """Wait until a request is answered so."""
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            plane.call("GET", path)
            answered = 200
        except urllib.error.HTTPError as error:
            with error:
                answered = error.code
        if answered == status:
            return
        assert time.monotonic() < deadline, answered
        time.sleep(0.02)


def manifest(name: str, **fields: Any) -> dict[str, Any]:
    version = X_POD_GROUPS.group_version
    return {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": name}, **fields}


def refused_fields(plane: ControlPlane, changes: dict[str, Any]) -> set[str]:
    """Return the fields that the API server refuses."""
    try:
        if "status" in changes:
            path, merge = f"{GROUPS}/stored/status?dryRun=All", "application/merge-patch+json"
            plane.call("PATCH", path, changes, content_type=merge)
        else:
            plane.call("POST", f"{GROUPS}?dryRun=All", manifest("ring", **changes))
    except urllib.error.HTTPError as error:
        with error:
            status = json.load(error)
        assert status["code"] == 422, status["message"]
        return {cause["field"] for cause in status["details"]["causes"]}
    return set()


@pytest.mark.controlplane
@pytest.mark.parametrize(
    ("changes", "fields"),
    [pytest.param(*row, id=name) for name, *row in ROWS],
)
def test_the_verdict_is_that_of_the_original(
    plane: ControlPlane, changes: dict[str, Any], fields: str
) -> None:
    assert refused_fields(plane, changes) == set(fields.split())


# --- the definition itself --------------------------------------------------------------------


def test_it_is_where_berth_looks_for_it() -> None:
    definition = chart_definition()
    spec = definition["spec"]
    (version,) = spec["versions"]
    path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
    assert (path, spec["names"]["kind"]) == (X_POD_GROUPS.path, X_POD_GROUPS.kind)
    assert definition["metadata"]["name"] == KIND == X_POD_GROUPS.name


def without_texts(value: Any) -> Any:
    """Return a definition without what people read, and patterns."""
    if isinstance(value, dict):
        left_out = ("description", "pattern")
        return {
            key: without_texts(each)
            for key, each in value.items()
            if key not in left_out or not isinstance(each, str)
        }
    return [without_texts(each) for each in value] if isinstance(value, list) else value


def test_it_has_the_fields_columns_and_names_of_the_original() -> None:
    ours, original = chart_definition()["spec"], original_definition()["spec"]
    assert without_texts(ours) == without_texts(original)


def test_it_is_made_only_where_it_is_wanted() -> None:
    assert of_kind(rendered(), "CustomResourceDefinition") == []


def test_it_outlives_the_release() -> None:
    assert chart_definition()["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.controlplane
@pytest.mark.parametrize("plane", [chart_definition], indirect=True, ids=["chart"])
@pytest.mark.parametrize(
    ("owner", "is_rendered"),
    [
        pytest.param(None, False, id="of-nobody"),
        pytest.param(("scheduler-plugins", "default"), False, id="of-another-release"),
        pytest.param((RELEASE, "default"), False, id="of-a-namesake"),
        pytest.param((RELEASE, NAMESPACE), True, id="of-this-release"),
    ],
)
def test_one_that_is_there_is_left_alone(
    plane: ControlPlane, owner: tuple[str, str] | None, is_rendered: bool
) -> None:
    """Rendered, helm would upgrade it, or refuse to install the chart."""
    keys = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
    annotations = dict(zip(keys, owner or (None, None), strict=True))
    patch = {"metadata": {"annotations": annotations}}
    merge = "application/merge-patch+json"
    plane.call("PATCH", f"{KINDS}/{KIND}", patch, content_type=merge)
    text = helm(
        "template",
        RELEASE,
        CHART,
        f"--namespace={NAMESPACE}",
        f"--kubeconfig={plane.admin_kubeconfig}",
        "--dry-run=server",
        "--set=podGroups.crd=true",
    )
    assert bool(of_kind(manifests_in(text), "CustomResourceDefinition")) == is_rendered
