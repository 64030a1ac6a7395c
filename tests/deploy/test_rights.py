"""The rights are as few as can be: what is granted is used, and what is taken away is missed."""

from __future__ import annotations

import contextlib
import copy
import re
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import pytest
from structlog.testing import capture_logs

from scheduler.app import StartError
from scheduler.config import parse_config
from scheduler.permissions import OPTIONAL_PERMISSIONS, required_permissions
from scheduler.serving.options import ServingOptions
from scheduler.serving.pages import pages
from tests.controlplane.access import NAMESPACE, SERVICE_ACCOUNT, USER
from tests.controlplane.control_plane import ControlPlane, free_ports
from tests.controlplane.pod_groups import install_x_pod_groups
from tests.deploy.chart import ROOT, manifests_in, of_kind, only, rendered
from tests.deploy.eventful_life import electing_config
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scheduler.config import SchedulerConfig
    from scheduler.debug.cache_debugger import CacheDebugger
    from tests.deploy.eventful_life import Life

Access = tuple[str, str, str]
"""Verb, group and resource, as the audit log has them."""

RBAC: Final = manifests_in((ROOT / "deploy" / "rbac.yaml").read_text(encoding="utf-8"))
REVIEWS: Final = {
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
}
WHEN_THINGS_GO_WRONG: Final = {
    ("get", "", "pods"): "scheduler/api_writes/binder.py: a binding whose answer was lost",
    (
        "get",
        "",
        "persistentvolumes",
    ): "scheduler/api_writes/volume_writer.py: a volume's write was refused",
    (
        "get",
        "",
        "persistentvolumeclaims",
    ): "scheduler/api_writes/volume_writer.py: likewise a claim's",
    (
        "get",
        "resource.k8s.io",
        "resourceclaims",
    ): "scheduler/api_writes/claim_patcher.py: a claim's write was refused",
    (
        "delete",
        "resource.k8s.io",
        "resourceclaims",
    ): "scheduler/api_writes/claim_writer.py: a pod with a claim for extended resources failed",
}
NOT_AUDITED: Final = {(verb, "coordination.k8s.io", "leases") for verb in ("get", "update")}
"""The tests' audit policy leaves out the renewals of leases."""

NO_RESOURCES: Final = {("patch", "resource.k8s.io", "resourceclaims/binding")}
"""What the API server asks for when another resource is written."""


@dataclass(frozen=True)
class Rule:
    """One rule of a role that berth has."""

    role: dict[str, Any]
    index: int

    @property
    def accesses(self) -> set[Access]:
        rule = self.role["rules"][self.index]
        return {
            (verb, group, resource)
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }

    @property
    def path(self) -> str:
        api = "/apis/rbac.authorization.k8s.io/v1"
        name = self.role["metadata"]["name"]
        if self.role["kind"] == "ClusterRole":
            return f"{api}/clusterroles/{name}"
        return f"{api}/namespaces/{NAMESPACE}/roles/{name}"

    def __str__(self) -> str:
        rule = self.role["rules"][self.index]
        return f"{','.join(rule['verbs'])} {','.join(rule['resources'])}"


def _bound() -> Iterator[dict[str, Any]]:
    """Yield the roles that are bound to berth."""
    for binding in of_kind(RBAC, "ClusterRoleBinding") + of_kind(RBAC, "RoleBinding"):
        (subject,) = binding["subjects"]
        assert (subject["namespace"], subject["name"]) == (NAMESPACE, SERVICE_ACCOUNT)
        for role in of_kind(RBAC, binding["roleRef"]["kind"]):
            if role["metadata"]["name"] == binding["roleRef"]["name"]:
                yield role


RULES: Final = [Rule(role, index) for role in _bound() for index in range(len(role["rules"]))]
GRANTED: Final = {access for rule in RULES for access in rule.accesses}
REQUIRED: Final = {
    (each.verb, each.group, each.resource) for each in required_permissions(electing_config())
}
OPTIONAL: Final = {(each.verb, each.group, each.resource) for each in OPTIONAL_PERMISSIONS}


def test_what_is_granted_is_what_is_asked_for_at_the_start_and_the_reviews() -> None:
    assert GRANTED == REQUIRED | OPTIONAL | REVIEWS


def test_nothing_is_granted_twice() -> None:
    assert sum(len(rule.accesses) for rule in RULES) == len(GRANTED)


def test_the_other_roles_are_for_those_who_read_its_pages() -> None:
    of_berth = list(_bound())
    others = [role for role in of_kind(RBAC, "ClusterRole") if role not in of_berth]
    granted = {
        (verb.upper(), path)
        for role in others
        for rule in role["rules"]
        for verb in rule["verbs"]
        for path in rule["nonResourceURLs"]
    }
    # No page is asked for here: nobody has to be there to answer.
    served = pages(lambda: "", cast("CacheDebugger", None), tuple, dict)
    assert granted == {("GET", "/metrics"), *((page.method, page.path) for page in served)}
    assert len(others) == 2


def test_all_of_it_is_used_in_an_eventful_life(life: Life) -> None:
    assert GRANTED - life.used - REVIEWS - NOT_AUDITED - NO_RESOURCES == set(WHEN_THINGS_GO_WRONG)


def test_nothing_was_refused(life: Life) -> None:
    assert life.refused == ()


class Cluster:
    """A control plane on which a rule can be missing for a while."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.kubeconfig = plane.berth_kubeconfig()

    @contextlib.contextmanager
    def without(self, rule: Rule) -> Iterator[None]:
        lesser = copy.deepcopy(rule.role)
        del lesser["rules"][rule.index]
        self._put(rule, lesser, allowed=False)
        try:
            yield
        finally:
            self._put(rule, rule.role, allowed=True)

    def _put(self, rule: Rule, role: dict[str, Any], *, allowed: bool) -> None:
        self.plane.call("PUT", rule.path, role)
        deadline = time.monotonic() + 120
        # The authoriser follows the roles by a watch.
        while any(self._may(access, rule) != allowed for access in rule.accesses):
            assert time.monotonic() < deadline, f"{rule}: the change is not in force"
            time.sleep(0.02)

    def _may(self, access: Access, rule: Rule) -> bool:
        verb, group, resource = access
        name, _, subresource = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": name, "subresource": subresource}
        names = rule.role["rules"][rule.index].get("resourceNames", [""])
        where = {"namespace": rule.role["metadata"].get("namespace", ""), "name": names[0]}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": USER, "resourceAttributes": attributes | where},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self.plane.call("POST", path, review)["status"]["allowed"])

    def scraper_token(self) -> str:
        """Return the token of somebody who may read metrics."""
        core, rbac = "/api/v1/namespaces/default", "/apis/rbac.authorization.k8s.io/v1"
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "scraper"}}
        apply = {"content_type": "application/apply-patch+yaml"}
        where = "?fieldManager=test&force=true"
        self.plane.call("PATCH", f"{core}/serviceaccounts/scraper{where}", account, **apply)
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "scraper"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": f"{NAMESPACE}-berth-metrics-reader",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}],
        }
        self.plane.call("PATCH", f"{rbac}/clusterrolebindings/scraper{where}", binding, **apply)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = self.plane.call("POST", f"{core}/serviceaccounts/scraper/token", request)
        token = answer["status"]["token"]
        assert isinstance(token, str)
        return token


@pytest.fixture(scope="module")
def cluster(controlplane_binaries: None) -> Iterator[Cluster]:
    with ControlPlane(pod_groups=True) as plane:
        install_x_pod_groups(plane)
        yield Cluster(plane)


def start_and_stop(kubeconfig: Path, config: SchedulerConfig | None = None) -> None:
    with RunningBerth(kubeconfig, config=config or electing_config()) as berth:
        deadline = time.monotonic() + 120
        while not berth.is_ready:
            assert time.monotonic() < deadline, "berth is not ready"
            time.sleep(0.02)


@pytest.mark.controlplane
def test_with_all_rules_it_starts(cluster: Cluster) -> None:
    start_and_stop(cluster.kubeconfig)


@pytest.mark.controlplane
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.accesses <= REQUIRED], ids=str)
def test_a_start_without_a_rule_names_all_that_is_missing(cluster: Cluster, rule: Rule) -> None:
    with cluster.without(rule), pytest.raises(StartError) as failure:
        start_and_stop(cluster.kubeconfig)
    for verb, group, resource in rule.accesses:
        named = f"{resource}.{group}" if group else resource
        assert re.search(rf"\b{verb} {re.escape(named)}\b", str(failure.value))


@pytest.mark.controlplane
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.accesses <= OPTIONAL], ids=str)
def test_it_starts_without_a_right_that_it_can_do_without(cluster: Cluster, rule: Rule) -> None:
    with cluster.without(rule), capture_logs() as lines:
        start_and_stop(cluster.kubeconfig)
    warned = [each for line in lines for each in line.get("missing", "").split("; ") if each]
    lacking = [
        each
        for each in OPTIONAL_PERMISSIONS
        if (each.verb, each.group, each.resource) in rule.accesses
    ]
    assert sorted(warned) == sorted(map(str, lacking))


def test_each_rule_is_needed_or_can_be_done_without() -> None:
    assert all(rule.accesses <= OPTIONAL or not rule.accesses & OPTIONAL for rule in RULES)


@pytest.mark.controlplane
def test_the_chart_without_preemption_needs_no_right_to_delete_pods(cluster: Cluster) -> None:
    manifests = rendered({"rbac": {"preemption": False}})
    text = only(manifests, "ConfigMap")["data"]["config.yaml"]
    (rule,) = (rule for rule in RULES if ("delete", "", "pods") in rule.accesses)
    assert rule.role["metadata"]["name"] not in {each["metadata"]["name"] for each in manifests}
    with cluster.without(rule):
        start_and_stop(cluster.kubeconfig, parse_config(text, "the chart"))


def scrape(cluster: Cluster, token: str) -> int:
    """Return the status with which a fresh berth answers a scrape."""
    (port,) = free_ports(1)
    serving = ServingOptions(bind_address="127.0.0.1", secure_port=port)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # berth made the certificate itself
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    url = f"https://127.0.0.1:{port}"
    with RunningBerth(cluster.kubeconfig, serving=serving) as berth:
        deadline = time.monotonic() + 120
        while not berth.is_ready:
            assert time.monotonic() < deadline, "berth is not ready"
            time.sleep(0.02)
        request = urllib.request.Request(
            f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}
        )
        try:
            with opener.open(request, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


@pytest.mark.controlplane
def test_with_the_reviews_a_scraper_gets_metrics(cluster: Cluster) -> None:
    assert scrape(cluster, cluster.scraper_token()) == 200


@pytest.mark.controlplane
@pytest.mark.parametrize(
    ("resource", "status"),
    [
        pytest.param("tokenreviews", 401, id="nobody-is-known"),
        pytest.param("subjectaccessreviews", 500, id="no-right-is-known"),
    ],
)
def test_without_a_review_no_scraper_gets_metrics(
    cluster: Cluster, resource: str, status: int
) -> None:
    (rule,) = (
        each for each in RULES if ("create", resource) in {(a, c) for a, _, c in each.accesses}
    )
    token = cluster.scraper_token()
    with cluster.without(rule):
        assert scrape(cluster, token) == status
