"""Collect what is traced, and export it in batches on a thread of its own."""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.metrics.declarations import TRACE_SPANS
from scheduler.metrics.instruments import Pulled
from scheduler.tracing.spans import Attempt, BindingRecord, CycleRecord, Decided, WriteRecord
from scheduler.tracing.trace_ids import Sampler, pod_span_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from plugins.framework.cycle_state import Mark
    from plugins.framework.status import Status
    from scheduler.decision.decision import Decision
    from scheduler.metrics import Metrics
    from scheduler.process.ports import Executor
    from scheduler.queueing import QueuedPod
    from scheduler.tracing.spans import Record, Span

    Export: TypeAlias = Callable[[Sequence[Span]], bool]

MAX_WAITING: Final = 2_048
"""Records that wait to be exported; beyond it the newest are dropped and counted. Each has some 60
marks at most, so that all take less than 20 MB."""

BATCH: Final = 512
"""Spans of one request: the default of OpenTelemetry's batch span processor."""

PERIOD_S: Final = 1.0

_UNDER_WAY: ContextVar[Attempt | None] = ContextVar("attempt", default=None)
"""The attempt for which the current task of the loop binds."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TracedBinding:
    """A binding under way whose pod is traced."""

    attempt: Attempt
    decided: Decided
    first_seen: float


class Traces:
    """Collect what is traced, and export it.

    Parameters
    ----------
    ratio
        The share of pods that are traced.
    export
        Sends spans and returns whether they were accepted; called on the thread of traces only,
        may wait and raise.

    Notes
    -----
    *Concurrency*: :meth:`cycle` on the scheduling thread, :meth:`binding` and :meth:`bound` on
    the loop, :meth:`wrote`, :meth:`sampled` and :meth:`counts` on any thread.

    *Cost* for a pod that is not traced: 0.4 us in a cycle and as much in its binding.
    """

    def __init__(self, ratio: float, export: Export, executor: Executor) -> None:
        self.sampled: Final = Sampler(ratio).sampled
        self._export = export
        self._records: deque[Record] = deque()
        self._exported = self._failed = self._dropped = 0
        self._stopped = executor.event()
        self._thread = executor.thread(self._run, "traces")

    # --- what is traced -----------------------------------------------------------------------

    def cycle(
        self,
        queued: QueuedPod,
        decision: Decision,
        marks: Sequence[Mark],
        times: tuple[float, float, float],
        *,
        is_last: bool,
    ) -> None:
        """Take in a scheduling cycle.

        Parameters
        ----------
        marks
            What ended when; not changed any more.
        times
            When the cycle began, when it began to decide, and when it ended.
        is_last
            Whether the attempt is over: no binding follows.
        """
        attempt = self._attempt(queued, decision, times[0])
        if attempt is None:
            return
        record = CycleRecord(
            attempt,
            marks,
            times[1],
            times[2],
            decision.status.code,
            is_last,
            _decided(decision),
            decision.diagnosis.plugins_with() if is_last else frozenset(),
        )
        self._put(record)

    def binding(self, queued: QueuedPod, decision: Decision) -> TracedBinding | None:
        """Begin a binding: writes of the current task belong to its attempt from here on.

        Returns
        -------
        None if the pod is not traced.
        """
        attempt = self._attempt(queued, decision, perf_counter())
        if attempt is None:
            return None
        _UNDER_WAY.set(attempt)
        return TracedBinding(attempt, _decided(decision), queued.first_seen_s)

    def bound(
        self, binding: TracedBinding, marks: Sequence[Mark], began: float, status: Status
    ) -> None:
        """End a binding; its marks are not changed any more."""
        error = "" if status.is_success else status.message or status.code.title
        ended = perf_counter()
        self._put(
            BindingRecord(
                binding.attempt, marks, began, ended, error, binding.decided, binding.first_seen
            )
        )

    def wrote(self, trace_id: int, name: str, began: float, error: str) -> None:
        """Take in a write about a traced pod, which has just ended."""
        attempt = _UNDER_WAY.get()
        if attempt is not None and attempt.trace_id == trace_id:
            parent_id = attempt.span_id
        else:
            parent_id = pod_span_id(trace_id)
        self._put(WriteRecord(trace_id, parent_id, name, began, perf_counter(), error))

    def under_way(self) -> int:
        """Return the trace id of the pod for which the current task binds; 0 if there is none."""
        attempt = _UNDER_WAY.get()
        return 0 if attempt is None else attempt.trace_id

    def _attempt(self, queued: QueuedPod, decision: Decision, now: float) -> Attempt | None:
        trace_id = self.sampled(decision.info.uid)
        if not trace_id:
            return None
        began = now if queued.popped_s is None else queued.popped_s
        return Attempt(trace_id, decision.info.key, queued.attempts, began, decision.profile)

    def _put(self, record: Record) -> None:
        if len(self._records) < MAX_WAITING:
            self._records.append(record)
        else:
            self._dropped += 1

    # --- what becomes of it -------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Export what is left, and end the thread. Blocks, on no thread that anyone waits for."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def counts(self) -> dict[str, float]:
        """Return how many spans were exported and failed, and how many records were dropped."""
        return {"exported": self._exported, "failed": self._failed, "dropped": self._dropped}

    def add_metrics(self, metrics: Metrics) -> None:
        """Add the metrics of traces."""
        metrics.pull(Pulled(*TRACE_SPANS, self._ask))

    def _ask(self) -> dict[tuple[str, ...], float]:
        return {(result,): count for result, count in self.counts().items()}

    def _run(self) -> None:
        while not self._stopped.wait(PERIOD_S):
            self.flush()
        self.flush()

    def flush(self) -> None:
        """Export what has been taken in so far. Never raises."""
        spans: list[Span] = []
        for _ in range(len(self._records)):
            spans += self._records.popleft().spans()
            if len(spans) >= BATCH:
                self._send(spans)
                spans = []
        if spans:
            self._send(spans)

    def _send(self, spans: Sequence[Span]) -> None:
        try:
            is_accepted = self._export(spans)
        except Exception as error:  # noqa: BLE001 - whatever the exporter raises, pods are scheduled
            is_accepted = False
            log.warning("traces cannot be exported", error=str(error) or repr(error))
        if is_accepted:
            self._exported += len(spans)
        else:
            self._failed += len(spans)


def _decided(decision: Decision) -> Decided:
    evaluated, feasible = decision.evaluated_nodes, decision.feasible_nodes
    return Decided(decision.cycle, decision.node_name, evaluated, feasible)
