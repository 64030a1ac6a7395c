"""Declare the names, help texts, labels and buckets of metrics: first counters, then gauges.

*Source*: pkg/scheduler/metrics/metrics.go (1.36) for all that begin with ``scheduler_``.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from scheduler.metrics.instruments import Kind, exponential

State: TypeAlias = tuple[Kind, str, str, tuple[str, ...]]
"""Of a metric that is asked for at each scrape: kind, name, help text and labels."""

# --- what happens: name, help text, a histogram's bounds, labels ------------------------------

ATTEMPTS_TOTAL: Final = (
    "scheduler_schedule_attempts_total",
    "Attempts to schedule pods, by result: scheduled, unschedulable (no node would do) or "
    "error (a failure of the scheduler's own).",
    "profile",
    "result",
)
ATTEMPT_DURATION: Final = (
    "scheduler_scheduling_attempt_duration_seconds",
    "Duration of an attempt to schedule a pod: the decision and the binding.",
    exponential(0.001, 2, 15),
    "profile",
    "result",
)
ALGORITHM_DURATION: Final = (
    "scheduler_scheduling_algorithm_duration_seconds",
    "Duration of the decision alone.",
    exponential(0.001, 2, 15),
)
POD_ATTEMPTS: Final = (
    "scheduler_pod_scheduling_attempts",
    "Attempts that it took to schedule a pod.",
    exponential(1, 2, 5),
)
SLI_DURATION: Final = (
    "scheduler_pod_scheduling_sli_duration_seconds",
    "Time from a pod's first attempt to its binding, over all its attempts.",
    exponential(0.01, 2, 20),
    "attempts",
)
AFTER_FLUSH: Final = (
    "scheduler_pod_scheduled_after_flush_total",
    "Pods scheduled after a flush of the unschedulable ones: no event had woken them.",
)
INCOMING: Final = (
    "scheduler_queue_incoming_pods_total",
    "Pods put into a queue, by the queue and the event that brought them there.",
    "queue",
    "event",
)
PERMIT_WAIT: Final = (
    "scheduler_permit_wait_duration_seconds",
    "Duration of waiting on permit, by result.",
    exponential(0.001, 2, 15),
    "result",
)
BIND_CONFLICTS: Final = (
    "berth_bind_conflicts_total",
    "Pods that another scheduler bound before us.",
)
ABANDONED: Final = (
    "berth_bindings_abandoned_total",
    "Bindings abandoned although their pod is still there and has no node, by reason; the "
    "pod is tried again after its backoff.",
    "reason",
)
WITHHELD: Final = (
    "berth_bindings_withheld_total",
    "Bindings that were not sent because others had taken the node since the decision, by the "
    "plugin that refused it, or NodeDeleted.",
    "cause",
)
COLLISIONS: Final = (
    "berth_collisions_total",
    "Pods that others placed on a node within 5 s after a binding of ours to it, and that "
    "overcommit it, by resource: the kubelet rejects one of the two.",
    "resource",
)
KUBELET_REJECTIONS: Final = (
    "berth_kubelet_rejections_total",
    "Pods that were bound and then rejected by the kubelet of their node, by reason.",
    "reason",
)
EXPIRED: Final = (
    "berth_assumed_pods_expired_total",
    "Assumed pods whose binding was not confirmed in time, by result.",
    "outcome",
)
MALFORMED: Final = (
    "berth_malformed_objects_total",
    "Versions of objects of the API that could not be decoded.",
    "resource",
)
LOST_EVENTS: Final = (
    "berth_lost_events_repaired_total",
    "Changes that a watch did not report, found with a list and applied.",
    "resource",
    "kind",
)
CONFIG_RELOADS: Final = (
    "berth_config_reloads_total",
    "Times that the configuration was read again: applied, unchanged or refused.",
    "result",
)
CHANGED_NODES: Final = (
    "berth_snapshot_changed_nodes",
    "Nodes that had changed since the scheduling cycle before.",
    [0, *exponential(1, 4, 8)],
)
OVER_BUDGET: Final = (
    "berth_attempts_over_budget_total",
    "Attempts that were stopped because the pod needed more CPU time than its budget, "
    'by namespace: the first 50, then "other".',
    "namespace",
)
PREEMPTION_ATTEMPTS: Final = (
    "scheduler_preemption_attempts_total",
    "Attempts to preempt, with or without success.",
)
PREEMPTION_VICTIMS: Final = (
    "scheduler_preemption_victims",
    "Victims chosen for one preemption.",
    exponential(1, 2, 7),
)
PREEMPTION_DURATION: Final = (
    "scheduler_preemption_goroutines_duration_seconds",
    "Time that it took to evict the victims of one preemption.",
    exponential(0.01, 2, 20),
    "result",
)
PREEMPTIONS: Final = (
    "scheduler_preemption_goroutines_execution_total",
    "Preemptions carried out, by result: success or error.",
    "result",
)
EVENT_HANDLING: Final = (
    "scheduler_event_handling_duration_seconds",
    "Duration of handling a change that a watch reports, by event.",
    exponential(0.0001, 2, 12),
    "event",
)
LOOP_LAG: Final = (
    "berth_loop_lag_seconds",
    "Delay of a 0.1 s timer of the event loop in seconds.",
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
)

# --- what is -----------------------------------------------------------------------------------

PENDING_PODS: Final[State] = (
    "gauge",
    "scheduler_pending_pods",
    "Pods that wait, by queue.",
    ("queue",),
)
CACHE_SIZE: Final[State] = (
    "gauge",
    "scheduler_cache_size",
    "Nodes, pods and assumed pods in the cache.",
    ("type",),
)
WATCH_STALENESS: Final[State] = (
    "gauge",
    "berth_watch_staleness_seconds",
    "Time since the last event of a watch, bookmarks included.",
    ("resource",),
)
WATCH_RELISTS: Final[State] = (
    "counter",
    "berth_watch_relists_total",
    "Lists that were needed because a watch could not be resumed.",
    ("resource",),
)
UNREADABLE: Final[State] = (
    "gauge",
    "berth_unreadable_objects",
    "Objects of the API whose current version cannot be decoded.",
    ("resource",),
)
TRACE_SPANS: Final[State] = (
    "counter",
    "berth_trace_spans_total",
    "Spans of traces that were exported or that failed to be, and records that were dropped "
    "because too many were waiting.",
    ("result",),
)
UNREADABLE_APIS: Final[State] = (
    "gauge",
    "berth_unreadable_apis",
    "Whether the cluster serves a resource only in versions that cannot be read: 0 or 1.",
    ("resource",),
)
RESTORES: Final[State] = (
    "counter",
    "berth_restores_total",
    "Lists that were older than what was known and were adopted: etcd was restored.",
    ("resource",),
)
INFLIGHT_EVENTS: Final[State] = (
    "gauge",
    "scheduler_inflight_events",
    "Events that are kept for pods in flight, and these pods.",
    ("event",),
)
TASKS: Final[State] = (
    "gauge",
    "scheduler_goroutines",
    "Running tasks, by kind of work.",
    ("operation",),
)
MISMATCHES: Final[State] = (
    "gauge",
    "berth_cache_mismatches",
    "Differences that the last comparison of the cache with the watches found.",
    (),
)
COMPARISONS: Final[State] = (
    "counter",
    "berth_cache_comparisons_total",
    "Comparisons of the cache with the watches.",
    (),
)
CYCLE_UNDER_WAY: Final[State] = (
    "gauge",
    "berth_cycle_under_way_seconds",
    "Duration so far of the current scheduling cycle; 0 without one.",
    (),
)
WAKE_UP_BACKLOG: Final[State] = (
    "gauge",
    "berth_wake_up_backlog",
    "Events not checked against all queued pods yet.",
    (),
)
OLDEST_ACTIVE_POD: Final[State] = (
    "gauge",
    "berth_oldest_active_pod_seconds",
    "Time since the pod that waits longest in the active queue entered it; 0 for no pod.",
    (),
)
MASTER_STATUS: Final[State] = (
    "gauge",
    "leader_election_master_status",
    "Whether this process holds the lease (1) or not (0), by the lease's name.",
    ("name",),
)
LEADER: Final[State] = (
    "gauge",
    "berth_leader",
    "Whether this process schedules (1) or stands by (0).",
    (),
)
POOL_INFO: Final[State] = (
    "gauge",
    "berth_pool_info",
    "The pool of nodes of this process, as labels; the value is always 1.",
    ("node_pool", "node_selector"),
)
POOL_HOPS: Final = (
    "berth_pool_handovers_total",
    "Pods that went from one pool to another, by the names of both and the reason: full, or "
    "no_leader for those that were taken from a pool without a leader.",
    "origin",
    "target",
    "reason",
)
POD_OF_POOLS: Final[State] = (
    "gauge",
    "berth_pool_pods",
    "Pods of several pools that this process remembers: refused here, given away and not shown by "
    "the watch yet, and pending ones of others.",
    ("state",),
)
PODS_ELSEWHERE: Final[State] = (
    "gauge",
    "berth_pods_elsewhere",
    "Pods on nodes that are not of this process's pool; they are not in the cache.",
    (),
)
EVENTS_SENT: Final[State] = (
    "counter",
    "berth_events_sent_total",
    "Events written, counts of series included.",
    (),
)
EVENTS_DROPPED: Final[State] = (
    "counter",
    "berth_events_dropped_total",
    "Events dropped: too many waited.",
    (),
)
EVENTS_FAILED: Final[State] = (
    "counter",
    "berth_events_failed_total",
    "Events that could not be written.",
    (),
)
STATUSES_SENT: Final[State] = (
    "counter",
    "berth_status_patches_sent_total",
    "Statuses written into pods.",
    (),
)
STATUSES_DROPPED: Final[State] = (
    "counter",
    "berth_status_patches_dropped_total",
    "Statuses of pods dropped: too many waited.",
    (),
)
STATUSES_FAILED: Final[State] = (
    "counter",
    "berth_status_patches_failed_total",
    "Statuses of pods that could not be written.",
    (),
)
DEVICES: Final[State] = (
    "gauge",
    "berth_devices",
    "Devices of resource pools, by state: free, tainted, or allocated to a claim. The pools of "
    "single nodes are added up, with an empty pool label.",
    ("driver", "pool", "state"),
)
UNSCHEDULABLE_PODS: Final[State] = (
    "gauge",
    "scheduler_unschedulable_pods",
    "Pods that were refused, by plugin: a pod counts for each that refused it.",
    ("plugin", "profile"),
)
POD_GROUPS_WAITING: Final[State] = (
    "gauge",
    "berth_podgroups_waiting",
    "Groups of pods of which no member has a node yet, by what they wait for.",
    ("cause",),
)
POD_GROUPS_PARTIAL: Final[State] = (
    "gauge",
    "berth_podgroups_partial",
    "Gangs of which some members have a node, fewer than the minimum, and none has succeeded.",
    (),
)
POD_GROUP_STATUSES_SENT: Final[State] = (
    "counter",
    "berth_podgroup_status_patches_sent_total",
    "Statuses written into PodGroups.",
    (),
)
POD_GROUP_STATUSES_DROPPED: Final[State] = (
    "counter",
    "berth_podgroup_status_patches_dropped_total",
    "Statuses of PodGroups dropped: too many waited.",
    (),
)
POD_GROUP_STATUSES_FAILED: Final[State] = (
    "counter",
    "berth_podgroup_status_patches_failed_total",
    "Statuses of PodGroups that could not be written.",
    (),
)
