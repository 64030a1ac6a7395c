"""A berth that schedules, scraped over HTTPS with tokens that a real API server knows."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from scheduler.app import App, StartError
from scheduler.serving import late_server
from scheduler.serving.listener import Listener, ServerError
from scheduler.serving.options import ServingOptions
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.replicas import wait_until
from tests.scenarios.running_berth import RunningBerth
from tests.scheduler.metrics import kube_scheduler_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.serving.server import Server

pytestmark = pytest.mark.controlplane

SERVING = ServingOptions(bind_address="127.0.0.1", secure_port=0)
READS = ["/metrics", "/metrics/resources", "/configz", "/debug/cache"]

ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app": "alone"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}

NOT_YET_SEEN = {
    # One is made when something happens that does not happen here.
    "scheduler_unschedulable_pods",
}


class Scraper:
    """Asks a berth for its pages, as somebody."""

    def __init__(self, berth: RunningBerth, tokens: dict[str, str]) -> None:
        self._berth = berth
        self._tokens = tokens

    def __call__(self, path: str, who: str | None = None, *, method: str = "GET", body: str = ""):
        server = self._berth.app.server
        assert server is not None
        host, _, port = server.address.rpartition(":")
        connection = http.client.HTTPSConnection(
            host, int(port), timeout=30, context=ssl._create_unverified_context()
        )
        try:
            headers = {} if who is None else {"Authorization": f"Bearer {self._tokens[who]}"}
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def account(plane: ControlPlane, name: str, rules: list[dict[str, Any]]) -> str:
    """Make a service account with rights of its own; return a token of it."""
    of_rbac = "rbac.authorization.k8s.io"
    metadata = {"name": name}
    plane.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": metadata})
    roles = f"/apis/{of_rbac}/v1"
    plane.call("POST", f"{roles}/clusterroles", {"metadata": metadata, "rules": rules})
    plane.call(
        "POST",
        f"{roles}/clusterrolebindings",
        {
            "metadata": metadata,
            "roleRef": {"apiGroup": of_rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        },
    )
    made = plane.call(
        "POST",
        f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    return str(made["status"]["token"])


@pytest.fixture(scope="module")
def scrape(controlplane_binaries: None) -> Iterator[Scraper]:
    with ControlPlane() as plane:
        yield from scheduled(plane)


def scheduled(plane: ControlPlane) -> Iterator[Scraper]:
    """Let a berth bind pods; yield what asks it."""
    rules = [
        {"nonResourceURLs": READS, "verbs": ["get"]},
        {"nonResourceURLs": ["/debug/flags/v"], "verbs": ["put"]},
    ]
    tokens = {
        "scraper": account(plane, "scraper", rules),
        "stranger": account(plane, "stranger", []),
        "forger": "eyJhbGciOiJub25lIn0.e30.",
    }
    berth = RunningBerth(plane.berth_kubeconfig(), serving=SERVING)
    with BlockingApi(plane.admin_kubeconfig) as api, berth:
        api.create_many([make_node(f"n{i}", cpu="64") for i in range(3)])
        # Of a tenth of the cycles the plugins' durations are counted: enough of them for one.
        pods = [make_pod(f"p{i}", cpu="10m") for i in range(200)]
        for pod in pods[:3]:
            pod["metadata"]["labels"] = {"app": "alone"}
            pod["spec"]["affinity"] = ALONE
        api.create_many(pods)
        api.run(api.client.wait_bound(200))
        scraper = Scraper(berth, tokens)
        api.wait_until(
            lambda: scraper("/metrics", "scraper")[0] == 200, "the scraper's rights are in force"
        )
        yield scraper


@pytest.mark.parametrize(
    ("path", "who", "status"),
    [
        *(pytest.param(path, None, 401, id=f"{path} without a token") for path in READS),
        *(pytest.param(path, "stranger", 403, id=f"{path} without a right") for path in READS),
        *(pytest.param(path, "scraper", 200, id=f"{path} with both") for path in READS),
        pytest.param("/metrics", "forger", 401, id="a token of nobody's"),
        pytest.param("/debug/flags/v", "scraper", 403, id="a right to write is none to read"),
        pytest.param("/livez", None, 200, id="alive"),
        pytest.param("/readyz", None, 200, id="ready"),
        pytest.param("/healthz", None, 200, id="healthy"),
    ],
)
def test_who_may_read(scrape, path, who, status):
    assert scrape(path, who)[0] == status


def test_a_refusal_names_the_account(scrape):
    message = json.loads(scrape("/metrics", "stranger")[1])["message"]
    assert message == (
        'forbidden: User "system:serviceaccount:default:stranger" cannot get path "/metrics"'
    )


def test_writing_needs_the_right_to_write(scrape):
    assert scrape("/debug/flags/v", "stranger", method="PUT", body="info")[0] == 403
    assert scrape("/debug/flags/v", "scraper", method="PUT", body="loud")[0] == 400


def test_a_berth_that_has_scheduled_exposes_what_a_kube_scheduler_does(scrape):
    found = {
        (family.name + ("_total" if family.type == "counter" else ""), family.type)
        for family in parse(scrape("/metrics", "scraper")[1])
        if family.samples
    }
    expected = {
        (name, kind)
        for name, kind, _, _ in kube_scheduler_metrics.METRICS
        if name not in kube_scheduler_metrics.WITHOUT_A_MEANING and name not in NOT_YET_SEEN
    }
    assert expected - found == set()


def test_the_cache_is_right(scrape):
    report = json.loads(scrape("/debug/cache", "scraper")[1])
    assert report["comparison"] == {"count": 0, "mismatches": []}
    assert len(report["cache"]["nodes"]) == 3


def test_the_configuration_can_be_read_back(scrape):
    assert "schedulerName: berth" in scrape("/configz", "scraper")[1]


def test_berth_says_why_it_ends_when_it_cannot_serve(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_server(self: App, listeners: object) -> Server:
        raise ServerError("no entropy")

    async def at_once(self: Listener) -> None:
        pass

    # So that it fails while the first lists are on their way.
    monkeypatch.setattr(Listener, "knocked", at_once)
    monkeypatch.setattr(late_server, "PATIENCE_S", 0.0)
    monkeypatch.setattr(App, "_make_server", no_server)
    berth = RunningBerth(control_plane.berth_kubeconfig())
    with pytest.raises(StartError, match="no entropy"), berth:
        wait_until(lambda: not berth.is_alive, "it has ended")
