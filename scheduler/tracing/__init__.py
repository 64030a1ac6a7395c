"""Traces: a span for each pod from first seen to bound, with its attempts and writes as children.

    scheduling thread: Traces.cycle
    I/O loop:          Traces.binding, Traces.bound   -> records -> thread "traces" -> spans
                       TracedApi, for writes                                      -> OtlpExporter

Nothing here measures extension points: cycles collect marks for the metrics in any case, and spans
are derived from them later, on a thread of their own. Only ``otlp_exporter`` imports OpenTelemetry,
on that thread; with sampling off nothing of this package runs.

This file imports nothing, for the flags are read before anything is traced.
"""
