"""What a pod goes through arrives as one trace at a receiver of OTLP over HTTP."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from scheduler.client.errors import ApiError
from scheduler.metrics import Metrics
from scheduler.tracing.otlp_exporter import OtlpExporter
from scheduler.tracing.trace_ids import trace_id_of, trace_id_text
from scheduler.tracing.traces import MAX_WAITING, Traces
from tests.builders import pod
from tests.fakes.otlp_receiver import OtlpReceiver
from tests.fakes.ports import FakeExecutor
from tests.scheduler.cycle.test_one_pod import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cache.objects import Pod
    from scheduler.tracing.spans import Span

UID = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
TRACE = trace_id_text(trace_id_of(UID))
FITS = pod("a").uid(UID).scheduler("berth").request(cpu="1")
TOO_LARGE = pod("a").uid(UID).scheduler("berth").request(cpu="64")
REFUSED = ApiError(403, "Forbidden", "the webhook says no")


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as serving:
        yield serving


def trace(
    made: Pod, receiver: OtlpReceiver, binds: list[ApiError | None], ratio: float = 1.0
) -> Stage:
    """Let a pod be scheduled, and export what was traced."""
    exporter = OtlpExporter(f"{receiver.url}/v1/traces", "replica-1")

    async def scene() -> Stage:
        stage = Stage(made, binds)
        # The queue's clock is that of the cycles in a running scheduler.
        stage.parts.clock.now_s = time.perf_counter()
        stage.traces = Traces(ratio, exporter.export, FakeExecutor())
        await stage.play()
        stage.traces.flush()
        return stage

    return asyncio.run(scene())


def test_the_span_of_a_bound_pod_contains_its_attempt_and_its_extension_points(
    receiver: OtlpReceiver,
) -> None:
    trace(FITS.build(), receiver, [None])
    (whole,), (attempt,) = receiver.named("pod"), receiver.named("attempt")
    points = [span for span in receiver.spans if span not in (whole, attempt)]
    assert {span.trace_id for span in receiver.spans} == {TRACE}
    assert (whole.parent_id, attempt.parent_id) == ("", whole.span_id)
    assert {span.parent_id for span in points} == {attempt.span_id}
    assert {"Filter", "Reserve", "Bind"} <= {span.name for span in points}


def test_a_span_lies_within_its_parent(receiver: OtlpReceiver) -> None:
    trace(FITS.build(), receiver, [None])
    by_id = {span.span_id: span for span in receiver.spans}
    for span in receiver.spans:
        parent = by_id.get(span.parent_id, span)
        # Each batch of spans reads the wall clock anew: that is exact to some microseconds.
        assert parent.began_ns - 10**6 <= span.began_ns <= span.ended_ns
        assert span.ended_ns <= parent.ended_ns + 10**6


def test_spans_have_the_time_of_the_wall_clock(receiver: OtlpReceiver) -> None:
    before = time.time_ns()
    trace(FITS.build(), receiver, [None])
    (whole,) = receiver.named("pod")
    assert before - 10**6 <= whole.began_ns < whole.ended_ns <= time.time_ns() + 10**6


def test_an_extension_point_says_how_long_each_plugin_took(receiver: OtlpReceiver) -> None:
    trace(FITS.build(), receiver, [None])
    (found,) = receiver.named("Bind")
    assert found.attributes["berth.plugin.DefaultBinder_ms"] >= 0
    assert found.attributes["berth.plugin.DefaultBinder_ms"] * 1e6 <= found.ended_ns


def test_the_span_of_a_pod_says_where_it_went(receiver: OtlpReceiver) -> None:
    trace(FITS.build(), receiver, [None])
    (whole,) = receiver.named("pod")
    assert whole.attributes == {
        "k8s.pod": "default/a",
        "k8s.node.name": "n1",
        "berth.profile": "berth",
        "berth.attempts": 1,
    }


def test_an_attempt_that_is_refused_says_by_whom(receiver: OtlpReceiver) -> None:
    trace(TOO_LARGE.build(), receiver, [])
    (attempt,) = receiver.named("attempt")
    assert attempt.attributes["berth.result"] == "unschedulable"
    assert attempt.attributes["berth.rejected_by"] == ["NodeResourcesFit"]
    assert attempt.error is None
    assert receiver.named("pod") == []


def test_an_attempt_whose_binding_fails_is_an_error_and_the_pod_goes_on(
    receiver: OtlpReceiver,
) -> None:
    trace(FITS.build(), receiver, [REFUSED])
    (attempt,) = receiver.named("attempt")
    assert attempt.attributes["berth.result"] == "error"
    assert "the webhook says no" in str(attempt.error)
    assert receiver.named("pod") == []


def test_nothing_is_sent_of_a_pod_that_is_not_sampled(receiver: OtlpReceiver) -> None:
    trace(FITS.build(), receiver, [None], ratio=1e-9)
    assert receiver.paths == []


def test_the_resource_says_which_replica_it_was(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=here")
    trace(FITS.build(), receiver, [None])
    (resource,) = receiver.resources
    assert resource["service.instance.id"] == "replica-1"
    assert resource["k8s.cluster.name"] == "here"


def test_the_service_is_berth_unless_the_environment_names_it(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace(FITS.build(), receiver, [None])
    monkeypatch.setenv("OTEL_SERVICE_NAME", "berth-gpu")
    trace(FITS.build(), receiver, [None])
    assert [each["service.name"] for each in receiver.resources] == ["berth", "berth-gpu"]


def test_the_receiver_may_be_named_by_the_environment(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    span = a_span()
    assert OtlpExporter("", "replica-1").export([span])
    assert receiver.paths == ["/v1/traces"]


# --- what happens when it cannot be exported ------------------------------------------------------


def a_span() -> Span:
    from scheduler.tracing.spans import Span

    return Span(1, 2, 0, "pod", 1.0, 2.0, {})


def traces_to(export) -> Traces:
    return Traces(1.0, export, FakeExecutor())


def raising(spans: Sequence[Span]) -> bool:
    raise OSError("no route")


@pytest.mark.parametrize(
    ("export", "counted"),
    [
        pytest.param(lambda spans: True, "exported", id="accepted"),
        pytest.param(lambda spans: False, "failed", id="refused"),
        pytest.param(raising, "failed", id="raises"),
    ],
)
def test_spans_are_counted_by_what_became_of_them(export, counted: str) -> None:
    traces = traces_to(export)
    traces.wrote(1, "POST events", 0.0, "")
    traces.flush()
    assert {name for name, count in traces.counts().items() if count} == {counted}


def test_a_receiver_that_refuses_is_noticed(receiver: OtlpReceiver) -> None:
    receiver.status = 400
    assert not OtlpExporter(f"{receiver.url}/v1/traces", "replica-1").export([a_span()])


def test_beyond_the_capacity_the_newest_are_dropped_and_counted() -> None:
    exported: list[Span] = []
    traces = traces_to(lambda spans: exported.extend(spans) or True)
    for n in range(MAX_WAITING + 3):
        traces.wrote(n + 1, "POST events", 0.0, "")
    traces.flush()
    assert traces.counts() == {"exported": MAX_WAITING, "failed": 0, "dropped": 3}
    assert max(span.trace_id for span in exported) == MAX_WAITING


def test_what_is_left_is_exported_at_the_end() -> None:
    exported: list[Span] = []
    traces = traces_to(lambda spans: exported.extend(spans) or True)
    traces.start()
    traces.wrote(1, "POST events", 0.0, "")
    traces.stop(60)
    assert len(exported) == 1


def test_the_counts_are_metrics() -> None:
    metrics = Metrics()
    traces = traces_to(lambda spans: True)
    traces.add_metrics(metrics)
    traces.wrote(1, "POST events", 0.0, "")
    traces.flush()
    assert b'berth_trace_spans_total{result="exported"} 1' in metrics.render()[0]
