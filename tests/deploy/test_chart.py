"""The chart: what it takes, what it makes of it, and what a real API server says to that."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from scheduler.cli import parser
from scheduler.config import load_config, running_profiles
from scheduler.config.ignored_fields import ignored_fields
from scheduler.journal.flags import journal_options
from scheduler.profiles.operator import operator_options
from tests.deploy.chart import CHART, KUBE_VERSION, ROOT, ChartError, helm, of_kind, only, rendered

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUE_FILES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
WITH_CONFIG = [path for path in VALUE_FILES if path.stem != "everything-exists"]
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())

each_file = pytest.mark.parametrize("file", VALUE_FILES, ids=lambda path: path.stem)


def pod_spec(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    spec = of_kind(manifests, "Deployment")[0]["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def container(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = pod_spec(manifests)["containers"]
    assert isinstance(found, dict)
    return found


def configuration(manifests: list[dict[str, Any]], folder: Path) -> Path:
    """Write the configuration that berth gets to a file."""
    path = folder / "config.yaml"
    path.write_text(of_kind(manifests, "ConfigMap")[0]["data"]["config.yaml"])
    return path


# --- values


@each_file
def test_helm_finds_no_fault(file: Path) -> None:
    helm("lint", "--strict", KUBE_VERSION, CHART, f"--values={file}")


def test_there_are_ten_files_of_values() -> None:
    assert len(VALUE_FILES) >= 10


@pytest.mark.parametrize(
    ("values", "where"),
    [
        pytest.param({"replicas": 3}, "replicas", id="unknown"),
        pytest.param({"metrics": {"serviceMonitor": {"on": True}}}, "on", id="unknown-below"),
        pytest.param({"replicaCount": "2"}, "replicaCount", id="text-for-a-number"),
        pytest.param({"replicaCount": -1}, "replicaCount", id="fewer-than-none"),
        pytest.param({"journal": {"maxSize": 1}}, "maxSize", id="no-room-for-a-journal"),
        pytest.param({"server": {"port": 65536}}, "port", id="no-port"),
        pytest.param({"image": {"digest": "sha256:1"}}, "digest", id="no-digest"),
        pytest.param({"image": {"pullPolicy": "always"}}, "pullPolicy", id="no-policy"),
        pytest.param({"logging": {"level": "trace"}}, "level", id="no-level"),
        pytest.param({"schedulerName": "default-scheduler"}, "schedulerName", id="someone-elses"),
        pytest.param(
            {"config": {"profiles": [{"schedulerName": "default-scheduler"}]}},
            "schedulerName",
            id="someone-elses-in-a-profile",
        ),
        pytest.param(
            {"config": {"profiles": [{}]}}, "schedulerName", id="a-profile-without-a-name"
        ),
        pytest.param(
            {"leaderElection": {"leaseName": "kube-scheduler"}},
            "leaseName",
            id="someone-elses-lease",
        ),
        pytest.param({"leaderElection": {"leaseDuration": 15}}, "leaseDuration", id="no-unit"),
        pytest.param(
            {"config": {"leaderElection": {"leaderElect": True}}}, "leaderElection", id="twice-told"
        ),
        pytest.param({"metrics": {"readers": [{"name": "a"}]}}, "namespace", id="half-a-reader"),
        pytest.param({"insight": {"askers": [{"name": "a"}]}}, "kind", id="half-an-asker"),
        pytest.param(
            {"insight": {"askers": [{"kind": "Role", "name": "a"}]}}, "kind", id="no-kind-of-asker"
        ),
        pytest.param(
            {"podDisruptionBudget": {"maxUnavailable": "half"}}, "maxUnavailable", id="no-share"
        ),
    ],
)
def test_the_schema_refuses_and_says_where(values: dict[str, Any], where: str) -> None:
    with pytest.raises(ChartError, match=where):
        rendered(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"serviceAccount": {"create": False}}, "serviceAccount.name", id="nobody"),
        pytest.param(
            {"metrics": {"podMonitor": {"enabled": True}}}, "tokenSecret.name", id="no-token"
        ),
        pytest.param(
            {"insight": {"askers": [{"kind": "ServiceAccount", "name": "a"}]}},
            "insight.askers: a ServiceAccount needs a namespace",
            id="an-account-of-no-namespace",
        ),
    ],
)
def test_what_is_missing_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ChartError, match=re.escape(message)):
        rendered(values)


def objects_with_a_shape(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        if isinstance(field, dict):
            yield from objects_with_a_shape(field, f"{path}.{name}")


def test_the_schema_knows_every_value_and_no_other() -> None:
    def names(values: dict[str, Any], schema: dict[str, Any], path: str) -> None:
        known = set(schema["properties"]) - ({"global"} if not path else set())
        assert set(values) <= known, path
        for name in set(values) & known:
            field = schema["properties"][name]
            if field.get("additionalProperties") is False and values[name]:
                names(values[name], field, f"{path}.{name}")
            assert field["description"].endswith("."), f"{path}.{name}"

    names(VALUES, SCHEMA, "")
    assert set(SCHEMA["properties"]) - {"global"} == set(VALUES)


def test_every_group_of_values_is_closed() -> None:
    free = {".global", ".config", ".affinity", ".podSecurityContext", ".securityContext"}
    open_groups = {
        path
        for path, schema in objects_with_a_shape(SCHEMA)
        if schema.get("type") == "object" and "additionalProperties" not in schema
    }
    assert open_groups <= free | {".resources.requests", ".resources.limits"}


def test_every_value_is_read() -> None:
    text = "\n".join(path.read_text() for path in sorted((CHART / "templates").rglob("*.*")))
    wholes = {"resources", "updateStrategy"}  # handed on as they are
    words = set(re.findall(r"\.([a-zA-Z]+)", text))

    def unread(values: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
        for name, value in values.items():
            field = schema["properties"][name]
            if name not in words:
                yield name
            elif value and field.get("additionalProperties") is False and name not in wholes:
                yield from unread(value, field)

    assert list(unread(VALUES, SCHEMA)) == []


def test_chart_and_program_are_of_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {chart["version"], chart["appVersion"]} == {project["project"]["version"]}


# --- what berth is told


@pytest.mark.parametrize("file", WITH_CONFIG, ids=lambda path: path.stem)
def test_berth_takes_all_of_its_configuration(file: Path, tmp_path: Path) -> None:
    assert ignored_fields(load_config(configuration(rendered(files=[file]), tmp_path))) == []


@each_file
def test_berth_knows_its_arguments(file: Path) -> None:
    options = parser().parse_args(container(rendered(files=[file]))["args"])
    assert options.config == "/etc/berth/config.yaml"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, (False, {}, False), id="off"),
        pytest.param({"selector": {"a": "b"}}, (False, {}, False), id="off-with-a-selector"),
        pytest.param({"enabled": True}, (True, {}, False), id="on"),
        pytest.param(
            {"enabled": True, "selector": {"example.com/b": "2", "a": ""}},
            (True, {"a": "", "example.com/b": "2"}, False),
            id="selected",
        ),
        pytest.param(
            {"enabled": True, "pythonConfigMaps": ["plugins"]}, (True, {}, True), id="with-python"
        ),
    ],
)
def test_what_berth_is_told_of_profiles(
    values: dict[str, Any], expected: tuple[bool, dict[str, str], bool]
) -> None:
    arguments = container(rendered({"schedulingProfiles": values}))["args"]
    options = operator_options(parser().parse_args(arguments))
    assert (options.enabled, options.selector, options.allow_python) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, {"emptyDir": {"sizeLimit": "1280Mi"}}, id="of-the-pod"),
        pytest.param(
            {"existingClaim": "mine"},
            {"persistentVolumeClaim": {"claimName": "mine"}},
            id="of-a-claim",
        ),
    ],
)
def test_each_replica_writes_a_journal_of_its_own(
    values: dict[str, Any], expected: dict[str, Any]
) -> None:
    manifests = rendered({"journal": {"enabled": True, **values}})
    (volume,) = (each for each in pod_spec(manifests)["volumes"] if each["name"] == "journal")
    assert volume == {"name": "journal", **expected}
    berth = container(manifests)
    (mount,) = (each for each in berth["volumeMounts"] if each["name"] == "journal")
    (variable,) = berth["env"]
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    options = journal_options(parser().parse_args(berth["args"]))
    assert options is not None
    assert str(options.directory) == f"{mount['mountPath']}/$({variable['name']})"
    assert (options.max_bytes, options.max_age_s) == (1 << 30, 86400)


def test_the_lease_is_the_one_that_there_is_a_right_to(tmp_path: Path) -> None:
    manifests = rendered(files=[Path(__file__).parent / "values" / "renamed.yaml"])
    election = load_config(configuration(manifests, tmp_path)).leader_election
    roles = of_kind(manifests, "Role")
    assert {each["metadata"]["namespace"] for each in roles} == {election.resource_namespace}
    named = [
        rule["resourceNames"]
        for role in roles
        for rule in role["rules"]
        if "get" in rule["verbs"] and "leases" in rule["resources"]
    ]
    assert named == [[election.resource_name]] * 2  # of the candidates, and of those who ask


def test_without_the_right_to_delete_pods_no_profile_preempts(tmp_path: Path) -> None:
    manifests = rendered(files=[Path(__file__).parent / "values" / "no-preemption.yaml"])
    profiles = running_profiles(load_config(configuration(manifests, tmp_path)))
    assert [each.points["postFilter"] for each in profiles] == [("DynamicResources",)] * 2


def test_a_new_configuration_rolls_the_deployment() -> None:
    before, after = (
        only(rendered(values), "Deployment")["spec"]["template"]["metadata"]["annotations"]
        for values in ({}, {"config": {"podMaxBackoffSeconds": 20}})
    )
    assert before["checksum/config"] != after["checksum/config"]


# --- what is made


@each_file
def test_every_reference_inside_leads_somewhere(file: Path) -> None:
    manifests = rendered(files=[file])
    deployments = [each["spec"] for each in of_kind(manifests, "Deployment")]
    labels = [each["template"]["metadata"]["labels"] for each in deployments]
    selectors = [
        *(each["selector"]["matchLabels"] for each in deployments),
        only(manifests, "Service")["spec"]["selector"],
        *(each["spec"]["selector"]["matchLabels"] for each in of_kind(manifests, "PodMonitor")),
        *(
            each["spec"]["selector"]["matchLabels"]
            for each in of_kind(manifests, "PodDisruptionBudget")
        ),
        *(
            each["spec"]["podSelector"]["matchLabels"]
            for each in of_kind(manifests, "NetworkPolicy")
        ),
    ]
    for selector in selectors:
        assert any(selector.items() <= each.items() for each in labels)
    for monitor in of_kind(manifests, "ServiceMonitor"):
        selected = monitor["spec"]["selector"]["matchLabels"]
        assert selected.items() <= only(manifests, "Service")["metadata"]["labels"].items()
    roles = {(each["kind"], each["metadata"]["name"]) for each in manifests}
    roles.add(("Role", "extension-apiserver-authentication-reader"))  # each cluster has it
    for binding in of_kind(manifests, "ClusterRoleBinding") + of_kind(manifests, "RoleBinding"):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles


EXTENDERS = {"extenders": [{"urlPrefix": "http://extender"}]}


@pytest.mark.parametrize(
    ("values", "directions"),
    [
        pytest.param({}, ["Ingress"], id="no-cluster-tells-the-port"),
        pytest.param({"config": EXTENDERS}, ["Ingress"], id="extenders-are-asked-too"),
        pytest.param(
            {"networkPolicy": {"enabled": True}}, ["Ingress", "Egress"], id="as-the-values-say"
        ),
    ],
)
def test_the_network_is_limited_as_far_as_peers_are_known(
    values: dict[str, Any], directions: list[str]
) -> None:
    spec = only(rendered(values), "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == directions
    assert ("egress" in spec) == ("Egress" in directions)
    assert spec["ingress"] == [{"ports": [{"port": "https", "protocol": "TCP"}]}]


def test_there_may_be_no_network_policy() -> None:
    assert of_kind(rendered({"networkPolicy": {"enabled": False}}), "NetworkPolicy") == []


def test_two_releases_do_not_meet() -> None:
    cluster_wide = [
        {
            (each["kind"], each["metadata"]["name"])
            for each in rendered(namespace=namespace)
            if "namespace" not in each["metadata"]
        }
        for namespace in ("one", "two")
    ]
    assert cluster_wide[0]
    assert not cluster_wide[0] & cluster_wide[1]


def test_berth_does_not_wait_for_itself() -> None:
    assert pod_spec(rendered())["schedulerName"] == "default-scheduler"


def test_the_pod_is_restricted() -> None:
    manifests = rendered()
    assert pod_spec(manifests)["securityContext"]["runAsNonRoot"] is True
    assert container(manifests)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_the_pod_runs_as_the_user_of_the_image() -> None:
    (user,) = re.findall(r"^USER (\d+):", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert pod_spec(rendered())["securityContext"]["runAsUser"] == int(user)


def test_a_drain_leaves_a_replica() -> None:
    manifests = rendered()
    budget = only(manifests, "PodDisruptionBudget")["spec"]["maxUnavailable"]
    assert only(manifests, "Deployment")["spec"]["replicas"] - budget >= 1


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param({}, "berth:0.1.0", id="the-charts-version"),
        pytest.param({"tag": "edge"}, "berth:edge", id="tag"),
        pytest.param(
            {"tag": "edge", "digest": f"sha256:{'0' * 64}"}, f"berth@sha256:{'0' * 64}", id="digest"
        ),
    ],
)
def test_the_image(image: dict[str, str], expected: str) -> None:
    assert container(rendered({"image": image}))["image"] == expected


def test_the_job_is_never_kube_schedulers() -> None:
    manifests = rendered(files=[Path(__file__).parent / "values" / "monitored.yaml"])
    label = only(manifests, "ServiceMonitor")["spec"]["jobLabel"]
    assert only(manifests, "Service")["metadata"]["labels"][label] == "berth"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="off"),
        pytest.param({"enabled": True, "crd": False}, id="somebody-elses"),
    ],
)
def test_the_kind_is_made_only_where_it_is_wanted(values: dict[str, Any]) -> None:
    assert of_kind(rendered({"schedulingProfiles": values}), "CustomResourceDefinition") == []


def test_the_kind_outlives_the_release() -> None:
    kind = only(rendered({"schedulingProfiles": {"enabled": True}}), "CustomResourceDefinition")
    assert kind["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


# --- rights


def test_profiles_bring_no_right_where_they_are_off() -> None:
    rules = str(of_kind(rendered(), "ClusterRole") + of_kind(rendered(), "Role"))
    assert "schedulingprofiles" not in rules


def test_the_config_maps_that_berth_may_read_are_those_that_are_named() -> None:
    names = ["plugins", "more.plugins"]
    values = {"schedulingProfiles": {"enabled": True, "pythonConfigMaps": names}}
    (role,) = (
        each
        for each in of_kind(rendered(values), "Role")
        if each["metadata"]["name"] == "berth-python-profiles"
    )
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": names, "verbs": ["get"]}
    ]


def test_nobody_may_ask_the_leader_unless_the_values_say_so() -> None:
    assert "berth-asker" not in str(of_kind(rendered(), "RoleBinding"))


def test_those_who_may_ask_the_leader_are_those_that_are_named() -> None:
    askers = [
        {"kind": "Group", "name": "developers"},
        {"kind": "ServiceAccount", "name": "dashboard", "namespace": "tools"},
    ]
    manifests = rendered({"insight": {"askers": askers}})
    (binding,) = (
        each
        for each in of_kind(manifests, "RoleBinding")
        if each["roleRef"]["name"] == "berth-asker"
    )
    assert binding["subjects"] == [
        {"kind": "Group", "name": "developers", "apiGroup": "rbac.authorization.k8s.io"},
        {"kind": "ServiceAccount", "name": "dashboard", "namespace": "tools"},
    ]


@each_file
def test_no_right_is_without_bounds(file: Path) -> None:
    manifests = rendered(files=[file], tests=True)
    rules = [
        rule
        for role in of_kind(manifests, "ClusterRole") + of_kind(manifests, "Role")
        for rule in role["rules"]
    ]
    for rule in rules:
        assert "*" not in str(rule)
        resources = rule.get("resources", [])
        assert not {"secrets", "pods/eviction", "pods/exec"} & set(resources)
        if "configmaps" in resources:
            assert (rule["verbs"], resources) == (["get"], ["configmaps"])
            assert rule["resourceNames"]
        if "nodes" in resources:
            assert set(rule["verbs"]) <= {"get", "list", "watch"}
        if "pods" in resources:
            assert not {"create", "update", "patch"} & set(rule["verbs"])
