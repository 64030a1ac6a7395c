from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from cache.pod_info import PodInfo
from scheduler.client.errors import ApiError
from scheduler.decision.decision import Decision
from scheduler.kinds import WATCHED
from scheduler.queueing import QueuedPod
from scheduler.tracing.trace_ids import pod_span_id, trace_id_of, trace_id_text
from scheduler.tracing.traced_api import TRACE_ANNOTATION, TracedApi
from scheduler.tracing.traces import Traces
from tests.builders import pod
from tests.fakes.ports import FakeExecutor
from tests.scheduler.client.loopback import Loopback, json_answer, status_answer, transport_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web

    from scheduler.tracing.spans import Span

UID = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
TRACE_ID = trace_id_of(UID)
EVENT: dict[str, Any] = {"metadata": {"name": "e"}, "regarding": {"uid": UID}}
CLAIMS = next(kind for kind in WATCHED if kind.resource == "persistentvolumeclaims")


def write(
    use: Callable[[TracedApi, Traces], Awaitable[Any]], ratio: float = 1.0, status: int = 200
) -> tuple[list[Span], list[Any]]:
    """Let something be written; return the spans, and the bodies that the server was sent."""
    spans: list[Span] = []

    async def answer(request: web.Request) -> web.Response:
        if status == 200:
            return json_answer({"metadata": {"name": "e", "uid": "1"}})
        return status_answer(status, "Forbidden", "the webhook says no")

    async def main() -> list[Any]:
        traces = Traces(ratio, lambda found: bool(spans.extend(found)) or True, FakeExecutor())
        async with Loopback(answer) as server, transport_to(server.url) as transport:
            try:
                await use(TracedApi(transport, traces), traces)
            finally:
                traces.flush()
            return [json.loads(request.body) for request in server.received]

    try:
        return spans, asyncio.run(main())
    except ApiError:
        return spans, []


@pytest.mark.parametrize(
    ("name", "use"),
    [
        pytest.param(
            "POST pods/binding", lambda api, _: api.bind_pod("ns", "a", UID, "n1"), id="bind"
        ),
        pytest.param(
            "PATCH pods/status", lambda api, _: api.patch_pod_status("ns", "a", UID, {}), id="patch"
        ),
        pytest.param("DELETE pods", lambda api, _: api.delete_pod("ns", "a", UID), id="evict"),
        pytest.param("POST events", lambda api, _: api.create_event("ns", EVENT), id="event"),
    ],
)
def test_a_write_about_a_pod_is_a_child_of_the_pods_span(name: str, use) -> None:
    (span,), _ = write(use)
    assert (span.name, span.trace_id, span.parent_id) == (name, TRACE_ID, pod_span_id(TRACE_ID))
    assert span.error == ""
    assert span.began < span.ended


def test_a_write_that_fails_says_why() -> None:
    (span,), _ = write(lambda api, _: api.bind_pod("ns", "a", UID, "n1"), status=403)
    assert "the webhook says no" in span.error


def test_an_event_names_the_trace() -> None:
    body = {**EVENT, "metadata": {"name": "e", "annotations": {"other": "stays"}}}
    _, (sent,) = write(lambda api, _: api.create_event("ns", body))
    expected = {"other": "stays", TRACE_ANNOTATION: trace_id_text(TRACE_ID)}
    assert sent["metadata"]["annotations"] == expected


def test_the_event_of_a_pod_that_is_not_traced_is_as_it_was() -> None:
    spans, (sent,) = write(lambda api, _: api.create_event("ns", EVENT), ratio=1e-9)
    assert (spans, sent) == ([], EVENT)


def test_a_write_of_a_binding_belongs_to_its_attempt() -> None:
    info = PodInfo(pod("a").uid(UID).build())
    decision = Decision(1, "berth", info, node_name="n1")

    async def bind(api: TracedApi, traces: Traces) -> None:
        binding = traces.binding(QueuedPod(info, 0.0, 1, (), attempts=2), decision)
        assert binding is not None
        ids.append(binding.attempt.span_id)
        await api.bind_pod("default", "a", UID, "n1")
        await api.patch_object(CLAIMS, "default", "claim", {})

    ids: list[int] = []
    spans, _ = write(bind)
    assert [span.name for span in spans] == [
        "POST pods/binding",
        "PATCH persistentvolumeclaims",
    ]
    assert [span.parent_id for span in spans] == ids * 2


def test_a_write_outside_of_a_binding_belongs_to_nobody() -> None:
    spans, _ = write(lambda api, _: api.patch_object(CLAIMS, "default", "claim", {}))
    assert spans == []
