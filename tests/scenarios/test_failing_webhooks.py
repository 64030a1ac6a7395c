"""One tenant's webhook on bindings fails or denies: the others go on, and nothing is for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scheduler import assembly
from scheduler.api_writes import binder
from scheduler.api_writes.binder import MAX_ANSWERED
from scheduler.client.limiter import MAX_REQUESTS_IN_FLIGHT
from tests.controlplane.api import ApiError
from tests.controlplane.audit import bind_records
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_namespace, make_node, make_pod
from tests.controlplane.webhook import CONFIGURATIONS, Webhook
from tests.scenarios.running_berth import RunningBerth, without_election

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.config import SchedulerConfig

pytestmark = pytest.mark.controlplane

TENANT, OTHERS = "tenant", "others"
SLOTS = 40


@pytest.fixture(scope="module")
def plane(controlplane_binaries) -> Iterator[ControlPlane]:
    with ControlPlane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([make_namespace(TENANT), make_namespace(OTHERS)])
        api.create_many([make_node(f"node-{i}", cpu="64", memory="256Gi") for i in range(10)])
        yield plane


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[BlockingApi]:
    """The API, without pods and webhooks after the test."""
    with BlockingApi(plane.admin_kubeconfig) as api:
        yield api
        for each in api.list_all(CONFIGURATIONS):
            api.delete(f"{CONFIGURATIONS}/{each['metadata']['name']}")
        for namespace in (TENANT, OTHERS):
            api.delete(f"/api/v1/namespaces/{namespace}/pods")


@pytest.fixture
def webhook(plane: ControlPlane) -> Iterator[Webhook]:
    with Webhook(plane.folder, TENANT) as webhook:
        yield webhook


def impatient() -> SchedulerConfig:
    """Pods that failed are tried again within two seconds."""
    return msgspec.structs.replace(without_election(), pod_max_backoff_seconds=2)


def pods(namespace: str, count: int, prefix: str) -> list[dict[str, Any]]:
    return [make_pod(f"{prefix}-{i:03}", namespace=namespace, cpu="10m") for i in range(count)]


def placed(api: BlockingApi, namespace: str) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in api.pods(namespace))


def requests(plane: ControlPlane, namespace: str, prefix: str) -> int:
    """Count the bindings of a test's pods that were sent, whatever the answer."""
    records = bind_records(plane.audit_events())
    return sum(each.namespace == namespace and each.name.startswith(prefix) for each in records)


def metric(berth: RunningBerth, line: str) -> float:
    body, _ = berth.app.metrics.render()
    found = [each for each in body.decode().splitlines() if each.startswith(f"{line} ")]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


def abandoned(berth: RunningBerth, reason: str) -> float:
    return metric(berth, f'berth_bindings_abandoned_total{{reason="{reason}"}}')


def errors(berth: RunningBerth) -> float:
    name = 'scheduler_schedule_attempts_total{profile="berth",result="error"}'
    return metric(berth, name)


def install(api: BlockingApi, webhook: Webhook, sentinel: str) -> None:
    """Install the webhook, and return once the API server asks it."""
    api.post(CONFIGURATIONS, webhook.configuration())
    api.create_many([make_pod(sentinel, namespace=TENANT, scheduler_name="nobody")])
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": sentinel},
        "target": {"kind": "Node", "name": "node-0"},
    }
    path = f"/api/v1/namespaces/{TENANT}/pods/{sentinel}/binding?dryRun=All"

    def is_refused() -> bool:
        try:
            api.post(path, binding)
        except ApiError:
            return True
        return False

    api.wait_until(is_refused, "the webhook is asked")


def remove(api: BlockingApi) -> None:
    api.delete(f"{CONFIGURATIONS}/bindings")


def denied(code: int, **details: Any) -> dict[str, Any]:
    status = {"code": code, "message": "the tenant's webhook says no"}
    return {**status, "details": details} if details else status


@pytest.mark.parametrize("kind", ["nobody-listens", "its-server-fails"])
def test_a_webhook_that_fails_stops_its_own_tenant_only(plane, api, webhook, kind, monkeypatch):
    # Few slots are held as easily as many, and it takes fewer pods to do so.
    monkeypatch.setattr(assembly, "MAX_BINDING", SLOTS)
    monkeypatch.setattr(binder, "MAX_PAUSING", SLOTS)
    count = SLOTS + 8
    webhook.http_status = 500
    if kind == "nobody-listens":
        webhook.close()
    install(api, webhook, f"first-{kind}")
    with RunningBerth(plane.berth_kubeconfig(), config=impatient()) as berth:
        # They are more than there are slots: each has had its turn and has come to nothing.
        api.create_many(pods(TENANT, count, kind))
        api.wait_until(
            lambda: abandoned(berth, "retries") + abandoned(berth, "crowded") >= count,
            "all were abandoned once",
        )
        api.create_many(pods(OTHERS, 200, kind))
        api.wait_until(lambda: placed(api, OTHERS) == 200, "the others are bound")
        assert placed(api, TENANT) == 0
        # Beyond one series for each pod there is one request for each attempt.
        sent = requests(plane, TENANT, kind)
        at_most = (MAX_ANSWERED - 1) * count + errors(berth) + berth.app.acting.bindings.in_flight
        assert 1 <= sent <= at_most
        remove(api)
        api.wait_until(lambda: placed(api, TENANT) == count, "all are bound once it is gone")
        api.wait_until(lambda: berth.is_at_rest, "berth comes to rest")
        assert not berth.mismatches(api)
        assert berth.stop() == 0


def test_a_webhook_that_denies_with_404_loses_no_pod(plane, api, webhook):
    webhook.denial = denied(404)
    install(api, webhook, "first-404")
    with RunningBerth(plane.berth_kubeconfig(), config=impatient()) as berth:
        api.create_many(pods(TENANT, 50, "not-found"))
        api.wait_until(lambda: abandoned(berth, "not_found") >= 50, "all were answered 404")
        assert placed(api, TENANT) == 0
        remove(api)
        api.wait_until(lambda: placed(api, TENANT) == 50, "all are bound once it is gone")
        assert berth.stop() == 0


def test_a_webhook_that_asks_for_a_pause_holds_its_own_tenant_only(plane, api, webhook):
    webhook.denial = denied(429, retryAfterSeconds=60)
    install(api, webhook, "first-429")
    with RunningBerth(plane.berth_kubeconfig(), config=impatient()) as berth:
        api.create_many(pods(TENANT, 150, "later"))
        api.wait_until(lambda: abandoned(berth, "throttled") >= 300, "each was tried twice")
        api.create_many(pods(OTHERS, 200, "later"))
        api.wait_until(lambda: placed(api, OTHERS) == 200, "the others are bound")
        # Whatever was under way when the first answer came; nothing since.
        assert 1 <= requests(plane, TENANT, "later") <= MAX_REQUESTS_IN_FLIGHT
        told = f"/apis/events.k8s.io/v1/namespaces/{TENANT}/events"
        api.wait_until(
            lambda: any(each["reason"] == "FailedScheduling" for each in api.list_all(told)),
            "the tenant is told why",
        )
        assert berth.stop() == 0
