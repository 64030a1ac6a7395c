"""Every metric that a kube-scheduler 1.36.3 exposes after scheduling 200 pods.

Name, type, labels and bucket bounds, as its own ``/metrics`` tells them; Go's and the process's own
metrics are left out.
"""

from __future__ import annotations

REQUEST_SECONDS = "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60"
BODY_BYTES = "64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07"
POINT_SECONDS = (
    "0.0001 0.0002 0.0004 0.0008 0.0016 0.0032 0.0064 0.0128 0.0256 0.0512 0.1024 0.2048"
)
HINT_SECONDS = (
    "1e-05 2e-05 4e-05 8e-05 0.00016 0.00032 0.00064 0.00128 0.00256 0.00512 0.01024 0.02048"
)
PLUGIN_SECONDS = (
    "1e-05 1.5000000000000002e-05 2.2500000000000005e-05 3.375000000000001e-05 "
    "5.062500000000001e-05 7.593750000000002e-05 0.00011390625000000003 "
    "0.00017085937500000006 0.0002562890625000001 0.00038443359375000017 "
    "0.0005766503906250003 0.0008649755859375004 0.0012974633789062506 0.0019461950683593758 "
    "0.0029192926025390638 0.004378938903808595 0.006568408355712893 0.009852612533569338 "
    "0.014778918800354007 0.02216837820053101"
)
SLI_SECONDS = (
    "0.01 0.02 0.04 0.08 0.16 0.32 0.64 1.28 2.56 5.12 10.24 20.48 40.96 81.92 163.84 327.68 "
    "655.36 1310.72 2621.44 5242.88"
)
ATTEMPT_SECONDS = (
    "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384"
)

METRICS: tuple[tuple[str, str, str, str], ...] = (
    ("rest_client_rate_limiter_duration_seconds", "histogram", "host verb", REQUEST_SECONDS),
    ("rest_client_request_duration_seconds", "histogram", "host verb", REQUEST_SECONDS),
    ("rest_client_request_size_bytes", "histogram", "host verb", BODY_BYTES),
    ("rest_client_requests_total", "counter", "code host method", ""),
    ("rest_client_response_size_bytes", "histogram", "host verb", BODY_BYTES),
    ("scheduler_batch_attempts_total", "counter", "profile result", ""),
    ("scheduler_batch_cache_flushed_total", "counter", "profile reason", ""),
    ("scheduler_cache_size", "gauge", "type", ""),
    ("scheduler_event_handling_duration_seconds", "histogram", "event", POINT_SECONDS),
    (
        "scheduler_framework_extension_point_duration_seconds",
        "histogram",
        "extension_point profile status",
        POINT_SECONDS,
    ),
    ("scheduler_get_node_hint_duration_seconds", "histogram", "hinted profile", HINT_SECONDS),
    ("scheduler_goroutines", "gauge", "operation", ""),
    ("scheduler_inflight_events", "gauge", "event", ""),
    ("scheduler_pending_pods", "gauge", "queue", ""),
    ("scheduler_plugin_evaluation_total", "counter", "extension_point plugin profile", ""),
    (
        "scheduler_plugin_execution_duration_seconds",
        "histogram",
        "extension_point plugin status",
        PLUGIN_SECONDS,
    ),
    ("scheduler_pod_scheduled_after_flush_total", "counter", "", ""),
    ("scheduler_pod_scheduling_attempts", "histogram", "", "1 2 4 8 16"),
    ("scheduler_pod_scheduling_sli_duration_seconds", "histogram", "attempts", SLI_SECONDS),
    ("scheduler_preemption_attempts_total", "counter", "", ""),
    ("scheduler_preemption_victims", "histogram", "", "1 2 4 8 16 32 64"),
    ("scheduler_queue_incoming_pods_total", "counter", "event queue", ""),
    ("scheduler_schedule_attempts_total", "counter", "profile result", ""),
    ("scheduler_scheduling_algorithm_duration_seconds", "histogram", "", ATTEMPT_SECONDS),
    (
        "scheduler_scheduling_attempt_duration_seconds",
        "histogram",
        "profile result",
        ATTEMPT_SECONDS,
    ),
    ("scheduler_store_schedule_results_duration_seconds", "histogram", "profile", HINT_SECONDS),
    ("scheduler_unschedulable_pods", "gauge", "plugin profile", ""),
)

WITHOUT_A_MEANING = (
    # No client-go: its transports are not cached, its work queues are not used, and no plugin for
    # credentials rotates certificates.
    "rest_client_exec_plugin_certificate_rotation_age",
    "rest_client_exec_plugin_ttl_seconds",
    "rest_client_transport_cache_entries",
    "rest_client_transport_cert_rotation_gc_calls_total",
    "rest_client_transport_create_calls_total",
    "workqueue_adds_total",
    "workqueue_depth",
    "workqueue_longest_running_processor_seconds",
    "workqueue_queue_duration_seconds",
    "workqueue_retries_total",
    "workqueue_unfinished_work_seconds",
    "workqueue_work_duration_seconds",
    # Verdicts are kept by signature and followed row by row: nothing is stored after a cycle, and
    # nothing is thrown away as a whole.
    "scheduler_batch_cache_flushed_total",
    "scheduler_store_schedule_results_duration_seconds",
)
