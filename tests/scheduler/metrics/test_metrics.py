from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse

from cache.scheduler_cache import SnapshotUpdate
from plugins.framework.status import Code, Status
from scheduler.decision.decision import Decision
from scheduler.metrics import Metrics, declarations, process
from scheduler.metrics.exposition import go_number
from scheduler.metrics.instruments import Pulled
from scheduler.queueing.queued_pod import QueuedPod
from tests.builders import pod
from tests.scheduler.metrics import kube_scheduler_metrics

INFO = pod("a").info()
PLACED = Decision(cycle=1, profile="berth", info=INFO, node_name="n1", duration_s=0.003)
REFUSED = replace(PLACED, status=Status(Code.UNSCHEDULABLE, ("no",), "Fit"), node_name="")
UPDATE = SnapshotUpdate(changed=2, removed=0)


def queued(**facts) -> QueuedPod:
    times = {"popped_s": 99.0, "initial_attempt_s": 90.0, "attempts": 1}
    return QueuedPod(INFO, 90.0, 1, (0.0,), **(times | facts))


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = metrics.render()[0].decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get((name, tuple(sorted(labels.items()))))


STATES = [
    (declarations.PENDING_PODS, {"active": 3, "backoff": 1, "unschedulable": 0, "gated": 2}),
    (declarations.CACHE_SIZE, {"nodes": 5, "pods": 7, "assumed_pods": 1}),
    (declarations.WATCH_STALENESS, {"pods": 1.5}),
    (declarations.WATCH_RELISTS, {"pods": 4}),
    (declarations.UNREADABLE, {"pods": 1}),
    (declarations.RESTORES, {"pods": 1}),
    (declarations.INFLIGHT_EVENTS, {"PodPopped": 1}),
    (declarations.TASKS, {"binding": 4}),
    (declarations.POD_GROUPS_WAITING, {"members": 2, "refused": 1}),
]
NUMBERS = [
    (declarations.MISMATCHES, 0.0),
    (declarations.CYCLE_UNDER_WAY, 0.25),
    (declarations.EVENTS_SENT, 10),
    (declarations.EVENTS_DROPPED, 3),
    (declarations.EVENTS_FAILED, 4),
    (declarations.STATUSES_SENT, 5),
    (declarations.STATUSES_DROPPED, 8),
    (declarations.STATUSES_FAILED, 9),
    (declarations.POD_GROUPS_PARTIAL, 1),
    (declarations.POD_GROUP_STATUSES_SENT, 5),
    (declarations.POD_GROUP_STATUSES_DROPPED, 6),
    (declarations.POD_GROUP_STATUSES_FAILED, 7),
]


def fed() -> Metrics:
    """Return metrics in which everything has happened once."""
    metrics = Metrics()
    metrics.decided(PLACED, UPDATE)
    metrics.bound(queued(flushed=True), PLACED, 100.0)
    metrics.attempt("berth", "unschedulable", 0.002)
    metrics.incoming("active", "PodAdd")
    metrics.bind_conflict()
    metrics.device_bindings.collision("d")
    metrics.device_bindings.claim_created("success")
    metrics.device_bindings.allocation("default", "d", "success")
    metrics.device_bindings.waited("default", "d", "success", 0.2)
    metrics.pod_groups.attempt("berth", "unschedulable", 0.02)
    metrics.pod_groups.decided(0.01)
    metrics.pod_groups.placed(3, 2)
    metrics.pod_groups.victims(4)
    metrics.pod_groups.out_of_time()
    metrics.malformed("pods")
    metrics.lost_event_repaired("pods", "add")
    metrics.expired("requeued")
    metrics.binding_abandoned("retries")
    metrics.kubelet_rejected("OutOfcpu")
    metrics.binding_withheld("NodePorts")
    metrics.collision("cpu")
    metrics.preemption(3)
    metrics.preempted("success", 0.02)
    for state, numbers in STATES:
        metrics.watch_each(state, lambda numbers=numbers: numbers)
    metrics.pull(Pulled(*declarations.UNSCHEDULABLE_PODS, lambda: {("Fit", "berth"): 2}))
    metrics.pull(Pulled(*declarations.DEVICES, lambda: {("gpu.example.com", "", "free"): 8}))
    for state, number in NUMBERS:
        metrics.watch(state, lambda number=number: number)
    return metrics


def test_everything_that_kube_scheduler_exposes_is_here_and_looks_the_same():
    described = {
        name: (kind, " ".join(sorted(labels)), " ".join(map(go_number, bounds)))
        for name, kind, labels, bounds in fed().described()
    }
    expected = {
        name: (kind, labels, buckets)
        for name, kind, labels, buckets in kube_scheduler_metrics.METRICS
        if name not in kube_scheduler_metrics.WITHOUT_A_MEANING
    }
    assert {name: described.get(name) for name in expected} == expected


@pytest.mark.parametrize("name", kube_scheduler_metrics.WITHOUT_A_MEANING)
def test_what_has_no_meaning_here_is_not_exposed(name):
    assert name not in {each[0] for each in fed().described()}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (0.001, "0.001"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (100_000.0, "100000"),
        (1_048_576.0, "1.048576e+06"),
        (2.25e-05, "2.25e-05"),
        (1e21, "1e+21"),
        (-2.5, "-2.5"),
        (0.0, "0"),
        (float("inf"), "+Inf"),
    ],
)
def test_numbers_are_spelled_as_go_does(number, text):
    assert go_number(number) == text


# --- the contract with dashboards -------------------------------------------------------------

FAST = "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384"
CONDITIONS = "0.1 0.2 0.4 0.8 1.6 3.2 6.4 12.8 25.6 51.2 102.4 204.8 409.6 819.2"
SLOW = (
    "0.01 0.02 0.04 0.08 0.16 0.32 0.64 1.28 2.56 5.12 10.24 20.48 40.96 81.92 163.84 327.68 "
    "655.36 1310.72 2621.44 5242.88"
)


@pytest.mark.parametrize(
    ("name", "kind", "labels", "buckets"),
    [
        ("scheduler_schedule_attempts_total", "counter", "profile result", ""),
        ("scheduler_scheduling_attempt_duration_seconds", "histogram", "profile result", FAST),
        ("scheduler_scheduling_algorithm_duration_seconds", "histogram", "", FAST),
        ("scheduler_pod_scheduling_attempts", "histogram", "", "1 2 4 8 16"),
        ("scheduler_pod_scheduling_sli_duration_seconds", "histogram", "attempts", SLOW),
        ("scheduler_pod_scheduled_after_flush_total", "counter", "", ""),
        ("scheduler_queue_incoming_pods_total", "counter", "event queue", ""),
        ("scheduler_preemption_attempts_total", "counter", "", ""),
        ("scheduler_preemption_victims", "histogram", "", "1 2 4 8 16 32 64"),
        ("scheduler_preemption_goroutines_duration_seconds", "histogram", "result", SLOW),
        ("scheduler_preemption_goroutines_execution_total", "counter", "result", ""),
        ("scheduler_pending_pods", "gauge", "queue", ""),
        ("scheduler_cache_size", "gauge", "type", ""),
        ("berth_bind_conflicts_total", "counter", "", ""),
        ("berth_device_collisions_total", "counter", "driver", ""),
        ("scheduler_resourceclaim_creates_total", "counter", "status", ""),
        (
            "scheduler_dra_bindingconditions_allocations_total",
            "counter",
            "driver profile status",
            "",
        ),
        (
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "histogram",
            "driver profile status",
            CONDITIONS,
        ),
        ("berth_assumed_pods_expired_total", "counter", "outcome", ""),
        ("berth_bindings_abandoned_total", "counter", "reason", ""),
        ("berth_bindings_withheld_total", "counter", "cause", ""),
        ("berth_collisions_total", "counter", "resource", ""),
        ("berth_kubelet_rejections_total", "counter", "reason", ""),
        ("berth_cycle_under_way_seconds", "gauge", "", ""),
        ("berth_malformed_objects_total", "counter", "resource", ""),
        ("berth_snapshot_changed_nodes", "histogram", "", "0 1 4 16 64 256 1024 4096 16384"),
        ("berth_watch_staleness_seconds", "gauge", "resource", ""),
        ("berth_lost_events_repaired_total", "counter", "kind resource", ""),
        ("berth_watch_relists_total", "counter", "resource", ""),
        ("berth_unreadable_objects", "gauge", "resource", ""),
        ("berth_restores_total", "counter", "resource", ""),
        ("berth_events_sent_total", "counter", "", ""),
        ("berth_events_dropped_total", "counter", "", ""),
        ("berth_events_failed_total", "counter", "", ""),
        ("berth_status_patches_sent_total", "counter", "", ""),
        ("berth_status_patches_dropped_total", "counter", "", ""),
        ("berth_status_patches_failed_total", "counter", "", ""),
        ("berth_devices", "gauge", "driver pool state", ""),
        ("scheduler_podgroup_schedule_attempts_total", "counter", "profile result", ""),
        (
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "histogram",
            "profile result",
            FAST,
        ),
        ("scheduler_podgroup_scheduling_algorithm_duration_seconds", "histogram", "", FAST),
        ("berth_podgroup_victims_total", "counter", "", ""),
        ("berth_podgroup_members_placed_total", "counter", "way", ""),
        ("berth_podgroup_searches_out_of_time_total", "counter", "", ""),
        ("berth_podgroups_waiting", "gauge", "cause", ""),
        ("berth_podgroups_partial", "gauge", "", ""),
        ("berth_podgroup_status_patches_sent_total", "counter", "", ""),
        ("berth_podgroup_status_patches_dropped_total", "counter", "", ""),
        ("berth_podgroup_status_patches_failed_total", "counter", "", ""),
    ],
    ids=lambda value: value if str(value).startswith(("scheduler_", "berth_")) else "",
)
def test_each_metric_has_its_name_type_labels_and_buckets(name, kind, labels, buckets):
    text = fed().render()[0].decode()
    assert f"# TYPE {name} {kind}\n" in text
    own = [
        sample
        for family in parse(text)
        for sample in family.samples
        if sample.name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") == name
    ]
    assert {label for sample in own for label in sample.labels} - {"le"} == set(labels.split())
    bounds = dict.fromkeys(sample.labels["le"] for sample in own if "le" in sample.labels)
    assert list(bounds) == ([*buckets.split(), "+Inf"] if buckets else [])


def test_there_are_no_created_series():
    assert "_created" not in fed().render()[0].decode()


def test_openmetrics_is_given_to_who_asks_for_it():
    body, content_type = fed().render("application/openmetrics-text;version=1.0.0,*/*;q=0.1")
    assert content_type.startswith("application/openmetrics-text")
    assert "scheduler_schedule_attempts" in {f.name for f in parse_openmetrics(body.decode())}


def test_plain_text_is_given_to_all_others():
    assert fed().render("text/html")[1] == "text/plain; version=0.0.4; charset=utf-8"


def test_two_schedulers_share_nothing():
    fed()
    assert value(Metrics(), "berth_bind_conflicts_total") == 0


# --- what is counted --------------------------------------------------------------------------


def test_members_count_by_the_way_in_which_they_were_placed():
    metrics = Metrics()
    metrics.pod_groups.placed(5, 0)
    metrics.pod_groups.placed(1, 2)
    name = "berth_podgroup_members_placed_total"
    assert (value(metrics, name, way="counted"), value(metrics, name, way="searched")) == (6, 2)


def test_a_bound_pod_is_a_scheduled_attempt():
    metrics = Metrics()
    metrics.bound(queued(), PLACED, 100.0)
    labels = {"profile": "berth", "result": "scheduled"}
    assert value(metrics, "scheduler_schedule_attempts_total", **labels) == 1
    name = "scheduler_scheduling_attempt_duration_seconds_sum"
    assert value(metrics, name, **labels) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("attempts", "label"),
    [
        pytest.param(1, "1", id="the first"),
        pytest.param(14, "14", id="the last with its own number"),
        pytest.param(15, "15+", id="many"),
        pytest.param(99, "15+", id="very many"),
    ],
)
def test_the_time_to_bind_is_told_by_attempts(attempts, label):
    metrics = Metrics()
    metrics.bound(queued(attempts=attempts), PLACED, 100.0)
    name = "scheduler_pod_scheduling_sli_duration_seconds_sum"
    assert value(metrics, name, attempts=label) == pytest.approx(10.0)
    assert value(metrics, "scheduler_pod_scheduling_attempts_sum") == attempts


@pytest.mark.parametrize(
    ("fact", "name"),
    [
        pytest.param("popped_s", "scheduler_scheduling_attempt_duration_seconds_count", id="pop"),
        pytest.param(
            "initial_attempt_s", "scheduler_pod_scheduling_sli_duration_seconds_count", id="start"
        ),
    ],
)
def test_a_duration_that_is_not_known_is_not_counted(fact, name):
    metrics = Metrics()
    metrics.bound(queued(**{fact: None}), PLACED, 100.0)
    assert not sum(count for (found, _), count in samples(metrics).items() if found == name)


@pytest.mark.parametrize(("flushed", "expected"), [(True, 1), (False, 0)], ids=["yes", "no"])
def test_a_pod_that_no_event_woke_is_counted(flushed, expected):
    metrics = Metrics()
    metrics.bound(queued(flushed=flushed), PLACED, 100.0)
    assert value(metrics, "scheduler_pod_scheduled_after_flush_total") == expected


@pytest.mark.parametrize("decision", [PLACED, REFUSED], ids=["placed", "refused"])
def test_every_decision_has_its_duration_counted(decision):
    metrics = Metrics()
    metrics.decided(decision, UPDATE)
    name = "scheduler_scheduling_algorithm_duration_seconds_sum"
    assert value(metrics, name) == pytest.approx(0.003)
    assert value(metrics, "berth_snapshot_changed_nodes_sum") == 2


def test_an_attempt_without_a_duration_is_counted():
    metrics = Metrics()
    metrics.attempt("berth", "error")
    labels = {"profile": "berth", "result": "error"}
    assert value(metrics, "scheduler_schedule_attempts_total", **labels) == 1


def test_counting_from_several_threads_loses_nothing():
    metrics = Metrics()

    def count() -> None:
        for _ in range(2_000):
            metrics.bound(queued(), PLACED, 100.0)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    labels = {"profile": "berth", "result": "scheduled"}
    assert value(metrics, "scheduler_schedule_attempts_total", **labels) == 8_000
    assert value(metrics, "scheduler_pod_scheduling_attempts_count") == 8_000


# --- what is asked for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("scheduler_pending_pods", {"queue": "gated"}, 2),
        ("scheduler_cache_size", {"type": "assumed_pods"}, 1),
        ("berth_watch_staleness_seconds", {"resource": "pods"}, 1.5),
        ("berth_watch_relists_total", {"resource": "pods"}, 4),
        ("berth_events_sent_total", {}, 10),
        ("berth_events_dropped_total", {}, 3),
        ("berth_events_failed_total", {}, 4),
        ("berth_status_patches_sent_total", {}, 5),
        ("berth_status_patches_dropped_total", {}, 8),
        ("berth_status_patches_failed_total", {}, 9),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_states_are_asked_for_at_each_scrape(name, labels, expected):
    assert value(fed(), name, **labels) == expected


def test_who_cannot_be_asked_costs_one_metric():
    def broken() -> dict[str, float]:
        raise RuntimeError("no queue")

    metrics = fed()
    metrics.watch_each(declarations.PENDING_PODS, broken)
    found = {name for name, _ in samples(metrics)}
    assert "scheduler_pending_pods" not in found
    assert "scheduler_cache_size" in found


# --- the container's limit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "limits"),
    [
        pytest.param(["536870912\n"], [536870912.0], id="a-limit"),
        pytest.param(["max\n"], [], id="none"),
        pytest.param([None, "1048576\n"], [1048576.0], id="cgroups-of-version-1"),
        pytest.param([None, "9223372036854771712\n"], [], id="none-by-version-1"),
        pytest.param([None, None], [], id="no-cgroups"),
    ],
)
def test_the_memory_limit_of_the_container(texts, limits, tmp_path, monkeypatch):
    files = []
    for number, text in enumerate(texts):
        files.append(tmp_path / str(number))
        if text is not None:
            files[-1].write_text(text)
    monkeypatch.setattr(process, "_MEMORY_LIMITS", tuple(files))
    found = samples(Metrics())
    assert [found[key] for key in found if key[0] == "berth_memory_limit_bytes"] == limits
