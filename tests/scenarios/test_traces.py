"""The trace of a pod that a real API server holds: its attempts, its writes, its Events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scheduler.tracing.options import TracingOptions
from scheduler.tracing.traced_api import TRACE_ANNOTATION
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.fakes.otlp_receiver import OtlpReceiver, ReceivedSpan
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.fixture
def api(fresh_control_plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(fresh_control_plane.admin_kubeconfig) as api:
        yield api


def tree(spans: Sequence[ReceivedSpan], parent_id: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the spans as lines: start within the trace, duration, name and attributes."""
    (whole,) = (span for span in spans if not span.parent_id)
    children = (span for span in spans if span.parent_id == parent_id)
    for span in sorted(children, key=lambda each: each.began_ns):
        at, lasted = (
            (ns / 1e6) for ns in (span.began_ns - whole.began_ns, span.ended_ns - span.began_ns)
        )
        shown = " ".join(f"{key}={value}" for key, value in span.attributes.items() if depth < 2)
        yield f"{at:9.1f} ms {lasted:9.1f} ms  {'  ' * depth}{span.name:<20} {shown}".rstrip()
        yield from tree(spans, span.span_id, depth + 1)


def test_a_pod_that_waits_for_a_node_is_one_trace(
    fresh_control_plane: ControlPlane, api: BlockingApi
) -> None:
    api.post("/api/v1/nodes", make_node("small", cpu="1"))
    with OtlpReceiver() as receiver:
        tracing = TracingOptions(1.0, f"{receiver.url}/v1/traces")
        kubeconfig = fresh_control_plane.berth_kubeconfig()
        with RunningBerth(kubeconfig, tracing=tracing) as berth:
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            made = api.post("/api/v1/namespaces/default/pods", make_pod("web", cpu="2"))
            api.wait_until(lambda: bool(receiver.named("attempt")), "an attempt is exported")
            api.post("/api/v1/nodes", make_node("large", cpu="4"))
            api.wait_until(lambda: bool(receiver.named("pod")), "the pod is exported")
            api.wait_until(lambda: len(receiver.named("POST events")) == 2, "so are its Events")
        spans = receiver.spans
    print("\n".join(tree(spans)))
    uid = made["metadata"]["uid"]
    (whole,) = (span for span in spans if span.name == "pod")
    assert {span.trace_id for span in spans} == {uid.replace("-", "")}
    assert whole.attributes["k8s.node.name"] == "large"
    attempts = [span for span in spans if span.name == "attempt"]
    results = [span.attributes["berth.result"] for span in attempts]
    assert results == ["unschedulable", "scheduled"]
    (bind,) = (span for span in spans if span.name == "POST pods/binding")
    assert bind.parent_id == attempts[1].span_id
    assert {span.name for span in spans if span.parent_id == whole.span_id} >= {
        "attempt",
        "PATCH pods/status",
        "POST events",
    }
    # The API server's controllers write Events into this namespace too.
    events = [event for event in api.list_all(EVENTS) if event["regarding"].get("uid") == uid]
    noted = [event["metadata"]["annotations"][TRACE_ANNOTATION] for event in events]
    assert noted == [whole.trace_id] * 2
