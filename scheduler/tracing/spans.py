"""Derive spans from what cycles, bindings and writes measured; no OpenTelemetry is needed.

    pod                     first seen .. bound
      attempt               popped .. refused or bound
        PreFilter, ...      an extension point; its plugins' times are attributes
        POST pods/binding   a write during the attempt
      POST events           a write about the pod at another time

All times are as ``time.perf_counter`` or ``time.monotonic`` tell them, which is the same clock on
Linux; only the exporter knows the wall clock.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from plugins.framework.status import REJECTIONS, Code
from scheduler.metrics.cycle_metrics import REUSE
from scheduler.tracing.trace_ids import attempt_span_id, pod_span_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plugins.framework.cycle_state import Mark

Value: TypeAlias = "str | int | float | bool | tuple[str, ...]"

SHORTEST_WAIT_S: Final = 0.001
"""Less is no wait, but the way from one extension point to the next."""

_random_id = random.Random().getrandbits


class Span(NamedTuple):
    """A finished span."""

    trace_id: int
    span_id: int
    parent_id: int
    """0 for the span of the pod."""
    name: str
    began: float
    ended: float
    attributes: dict[str, Value]
    error: str = ""
    """Why it failed; empty if it did not."""


class Attempt(NamedTuple):
    """An attempt to place a traced pod."""

    trace_id: int
    pod: str
    """As namespace/name."""
    number: int
    began: float
    profile: str

    @property
    def span_id(self) -> int:
        """The id of its span."""
        return attempt_span_id(self.trace_id, self.number, self.began)

    def span(self, ended: float, result: str, attributes: dict[str, Value], error: str) -> Span:
        """Return the span of the attempt, once it has ended."""
        return Span(
            self.trace_id,
            self.span_id,
            pod_span_id(self.trace_id),
            "attempt",
            self.began,
            ended,
            {
                "k8s.pod": self.pod,
                "berth.profile": self.profile,
                "berth.attempt": self.number,
                "berth.result": result,
                **attributes,
            },
            error,
        )


class Decided(NamedTuple):
    """What a scheduling cycle decided; a Decision would keep the names of all rejected nodes."""

    cycle: int
    node: str
    """Empty if there was none."""
    evaluated: int
    feasible: int

    def attributes(self) -> dict[str, Value]:
        """Return the attributes of the attempt."""
        node: dict[str, Value] = {"k8s.node.name": self.node} if self.node else {}
        return {
            **node,
            "berth.cycle": self.cycle,
            "berth.nodes_evaluated": self.evaluated,
            "berth.nodes_feasible": self.feasible,
        }


class CycleRecord(NamedTuple):
    """What a scheduling cycle hands over."""

    attempt: Attempt
    marks: Sequence[Mark]
    deciding: float
    ended: float
    code: Code
    is_last: bool
    """Whether the attempt is over: there is no binding."""
    decided: Decided
    rejected_by: frozenset[str]

    def spans(self) -> Iterator[Span]:
        """Yield the spans of the cycle."""
        yield from point_spans(self.attempt, self.marks, self.deciding)
        if not self.is_last:
            return
        result = "unschedulable" if self.code in REJECTIONS else "error"
        rejected_by = tuple(sorted(self.rejected_by))
        attributes = {**self.decided.attributes(), "berth.rejected_by": rejected_by}
        yield self.attempt.span(
            self.ended, result, attributes, "" if result == "unschedulable" else self.code.title
        )


class BindingRecord(NamedTuple):
    """What a binding cycle hands over."""

    attempt: Attempt
    marks: Sequence[Mark]
    began: float
    ended: float
    error: str
    """Why the pod was not bound; empty if it was."""
    decided: Decided
    first_seen: float

    def spans(self) -> Iterator[Span]:
        """Yield the spans of the binding, of its attempt and, if the pod is bound, of the pod."""
        attempt = self.attempt
        yield from point_spans(attempt, self.marks, self.began)
        result = "error" if self.error else "scheduled"
        yield attempt.span(self.ended, result, self.decided.attributes(), self.error)
        if not self.error:
            yield Span(
                attempt.trace_id,
                pod_span_id(attempt.trace_id),
                0,
                "pod",
                self.first_seen,
                self.ended,
                {
                    "k8s.pod": attempt.pod,
                    "k8s.node.name": self.decided.node,
                    "berth.profile": attempt.profile,
                    "berth.attempts": attempt.number,
                },
            )


class WriteRecord(NamedTuple):
    """A write to the API server about a traced pod."""

    trace_id: int
    parent_id: int
    name: str
    began: float
    ended: float
    error: str

    def spans(self) -> Iterator[Span]:
        """Yield the span of the write."""
        yield Span(self.trace_id, new_id(), *self[1:5], {}, self.error)


Record: TypeAlias = "CycleRecord | BindingRecord | WriteRecord"


def new_id() -> int:
    """Return an id for a span that nothing refers to."""
    return _random_id(64) or 1


def point_spans(attempt: Attempt, marks: Sequence[Mark], began: float) -> Iterator[Span]:
    """Yield a span for each extension point, and for what was waited for before it.

    See :func:`~scheduler.metrics.cycle_metrics.durations_of` for the meaning of marks.
    """
    parent_id, point_began, last = attempt.span_id, began, began
    plugins: dict[str, Value] = {}

    def span(name: str, start: float, ended: float, error: str = "") -> Span:
        ids = (attempt.trace_id, new_id(), parent_id)
        return Span(*ids, name, start, ended, dict(plugins), error)

    for point, plugin, code, ended in marks:
        if point == REUSE:
            plugins["berth.result"] = plugin
            yield span(REUSE, began, ended)
        elif plugin:
            plugins[f"berth.plugin.{plugin}_ms"] = round((ended - last) * 1000, 3)
            if code not in (Code.SUCCESS, Code.SKIP):
                plugins[f"berth.plugin.{plugin}"] = code.title
        elif point:
            yield span(point, point_began, ended, code.title if code is Code.ERROR else "")
        elif ended - point_began >= SHORTEST_WAIT_S:
            yield span("wait", point_began, ended)
        if not plugin or point == REUSE:
            point_began = ended
            plugins.clear()
        last = ended
