"""The chart and the plain manifests on a real API server."""

from __future__ import annotations

import json
import re
import time
import urllib.error
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_pod
from tests.deploy.chart import CHART, NAMESPACE, RELEASE, helm, rendered_text
from tests.deploy.kubectl import STUBS, kubectl
from tests.deploy.manifests import DEPLOY

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

VALUE_FILES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
NOT_RESTRICTED = {"host-network"}


@pytest.fixture(scope="module")
def admin(controlplane_binaries: None) -> Iterator[Path]:
    """The kubeconfig of a cluster that knows the kinds of the Prometheus operator."""
    with ControlPlane() as control_plane:
        kubeconfig = control_plane.admin_kubeconfig
        stubs = yaml.safe_dump_all(STUBS)
        kubectl("apply", "-f", "-", kubeconfig=kubeconfig, given=stubs)
        kubectl("wait", "--for=condition=Established", "crd", "--all", kubeconfig=kubeconfig)
        kubectl("create", "namespace", NAMESPACE, kubeconfig=kubeconfig)
        level = "pod-security.kubernetes.io/warn=restricted"
        kubectl("label", "namespace", NAMESPACE, level, kubeconfig=kubeconfig)
        yield kubeconfig


def dry_run(admin: Path, text: str) -> str:
    """Let the API server say what it would do; its warnings."""
    arguments = ("apply", "--server-side", "--dry-run=server", "-f", "-")
    return kubectl(*arguments, kubeconfig=admin, given=text)[1]


def everything(admin: Path) -> set[str]:
    """Return the names of all that a chart could have made."""
    kinds = (
        "all,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,"
        "poddisruptionbudgets,networkpolicies,flowschemas,prioritylevelconfigurations,"
        "servicemonitors,podmonitors,prometheusrules"
    )
    out, _ = kubectl("get", kinds, "-n", NAMESPACE, "-o", "name", kubeconfig=admin)
    return {line for line in out.splitlines() if RELEASE in line}


@pytest.mark.parametrize("file", VALUE_FILES, ids=lambda path: path.stem)
def test_the_api_server_takes_it_without_a_warning(admin: Path, file: Path) -> None:
    warnings = dry_run(admin, rendered_text(files=[file], tests=True))
    if file.stem in NOT_RESTRICTED:
        assert re.findall(r"would violate PodSecurity .*: (.*)", warnings)
    else:
        assert warnings == ""


@pytest.mark.parametrize("folder", [DEPLOY, DEPLOY / "monitoring"], ids=lambda path: path.name)
def test_the_api_server_takes_the_plain_manifests(admin: Path, folder: Path) -> None:
    arguments = ("apply", "--server-side", "--dry-run=server", "-k", folder)
    assert kubectl(*arguments, kubeconfig=admin)[1] == ""


def test_the_sample_pod_of_the_notes_is_one(admin: Path) -> None:
    notes = helm(
        "install",
        "noted",
        CHART,
        f"--namespace={NAMESPACE}",
        f"--kubeconfig={admin}",
        "--dry-run=server",
        "--set=schedulerName=mine",
    )
    sample = re.search(r"\n\n((?:  .*\n)+)", notes[notes.index("NOTES:") :])
    assert sample is not None
    assert yaml.safe_load(sample[1])["spec"]["schedulerName"] == "mine"
    dry_run(admin, sample[1])


def test_installed_upgraded_rolled_back_and_gone(admin: Path) -> None:
    def run(*arguments: str | Path) -> str:
        return helm(*arguments, f"--namespace={NAMESPACE}", f"--kubeconfig={admin}")

    def replicas() -> Any:
        path = ("get", "deployment", RELEASE, "-n", NAMESPACE, "-o", "jsonpath={.spec.replicas}")
        return kubectl(*path, kubeconfig=admin)[0]

    # The API server's own, which a control plane without networks does not keep.
    port = {"name": "https", "port": 6443, "protocol": "TCP"}
    api_server = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [port],
    }
    kubectl("apply", "-f", "-", kubeconfig=admin, given=json.dumps(api_server))
    before = everything(admin)
    monitored = VALUE_FILES[0].with_name("monitored.yaml")
    run("install", RELEASE, CHART, f"--values={monitored}")
    installed = everything(admin)
    # Of the API server the cluster knows the port, and nothing else is asked.
    policy = ("get", "networkpolicy", RELEASE, "-n", NAMESPACE, "-o", "json")
    spec = json.loads(kubectl(*policy, kubeconfig=admin)[0])["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["egress"][0] == {"ports": [{"port": 6443, "protocol": "TCP"}]}
    run("upgrade", RELEASE, CHART, f"--values={monitored}", "--set=replicaCount=3")
    assert (replicas(), everything(admin)) == ("3", installed)
    run("rollback", RELEASE, "1")
    assert (replicas(), everything(admin)) == ("2", installed)
    run("uninstall", RELEASE)
    assert everything(admin) == before


@pytest.mark.parametrize(
    ("path", "level"),
    [
        pytest.param("/api/v1/nodes", f"{NAMESPACE}-{RELEASE}", id="its-own"),
        pytest.param(
            f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{RELEASE}",
            "leader-election",
            id="the-lease-with-those-of-controllers",
        ),
    ],
)
def test_the_level_at_which_the_api_server_serves_it(
    fresh_control_plane: ControlPlane, path: str, level: str
) -> None:
    admin = fresh_control_plane.admin_kubeconfig
    kubectl("apply", "--server-side", "-k", DEPLOY, kubeconfig=admin)
    api = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
    wanted = fresh_control_plane.call("GET", f"{api}/{level}")["metadata"]["uid"]
    token = ("create", "token", RELEASE, "-n", NAMESPACE)
    account = fresh_control_plane.kubeconfig_for(kubectl(*token, kubeconfig=admin)[0].strip(), "it")
    answered_at = ""
    deadline = time.monotonic() + 60
    # The API server takes up new levels by a watch.
    while answered_at != wanted:
        assert time.monotonic() < deadline, f"served at {answered_at}"
        said = kubectl("get", "--raw", path, "-v=8", kubeconfig=account, may_fail=True)[1]
        found = re.search(r"X-Kubernetes-Pf-Prioritylevel-Uid: ([\w-]+)", said, re.IGNORECASE)
        answered_at = found[1] if found else ""


def test_the_guard_keeps_berth_from_deleting_what_it_guards(
    fresh_control_plane: ControlPlane,
) -> None:
    admin = fresh_control_plane.admin_kubeconfig
    kubectl("create", "namespace", NAMESPACE, kubeconfig=admin)
    guarded = rendered_text({"rbac": {"guard": {"enabled": True}}})
    kubectl("apply", "--server-side", "-f", "-", kubeconfig=admin, given=guarded)
    token = kubectl("create", "token", RELEASE, "-n", NAMESPACE, kubeconfig=admin)[0].strip()
    critical = {"priorityClassName": "system-cluster-critical"}
    pods = [
        make_pod("guarded", namespace="kube-system"),
        make_pod("critical", namespace="default", **critical),
        make_pod("plain", namespace="default"),
    ]

    def refusal(pod: dict[str, Any], *, dry_run: bool) -> str:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        try:
            options = "?dryRun=All" if dry_run else ""
            fresh_control_plane.call("DELETE", path + options, token=token)
        except urllib.error.HTTPError as error:
            with error:
                return str(json.load(error)["message"])
        return ""

    for pod in pods:
        fresh_control_plane.call(
            "POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod
        )
    deadline = time.monotonic() + 60
    # The API server takes up policies by a watch.
    while not refusal(pods[0], dry_run=True):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    said = [refusal(pod, dry_run=False) for pod in pods]
    assert "may not delete pods of this namespace" in said[0]
    assert "may not delete pods of this priority" in said[1]
    assert said[2] == ""
