"""The invariants I1 to I17 of docs/architecture.md."""

from __future__ import annotations

from typing import Final

from tests.faults.rows import row, scenario

_BINDER: Final = "tests/scheduler/api_writes/test_binder.py::"

INVARIANTS: Final = (
    row(
        "I1",
        "At most one successful bind for each pod UID",
        "",
        (
            f"{_BINDER}test_an_unclear_binding_is_never_given_up_before_it_is_settled",
            "no-answer-means-unbound",
        ),
        (
            "tests/scheduler/client/test_api.py::test_a_bind_carries_the_pods_uid_and_the_node",
            "bindings-without-uid",
        ),
    ),
    row(
        "I2",
        "Berth's bindings never overcommit a node, given what it knew and assumed",
        "",
        (
            "tests/plugins/node_resources_fit/test_filter.py::"
            "test_a_node_that_passes_is_never_overcommitted",
            "pods-want-nothing",
        ),
        (
            "tests/cache/test_scheduler_cache.py::TestAssumedPods::"
            "test_an_assumed_pod_takes_room_at_once",
            "nothing-is-assumed",
        ),
    ),
    row(
        "I3",
        "A pod that fits is bound after faults have stopped",
        "",
        (
            "tests/scheduler/event_handlers/test_pods_and_nodes.py::"
            "TestWakeUps::test_a_new_node_wakes_it",
            "events-wake-nobody",
        ),
    ),
    row(
        "I4",
        "The cache that follows changes equals one that is built anew",
        "",
        (
            "tests/faults/test_in_simulation.py::test_f12_a_node_goes_while_a_pod_is_bound_to_it",
            "pods-that-left-stay",
        ),
        (scenario("93938-node-recreated"), "pods-are-forgotten-with-their-node"),
    ),
    row(
        "I5",
        "At rest nothing is assumed, in flight, waiting or being preempted",
        "",
        (scenario("126962-skipped-pod"), "skipped-pod-stays-in-flight"),
        (scenario("50106-hand-over-breaks-down"), "broken-cycles-leave-their-pods-assumed"),
    ),
    row(
        "I6",
        "No write starts whose timeout could end after the lease",
        "",
        (
            "tests/scheduler/leader_election/test_tenure.py::"
            "test_no_write_that_is_granted_can_end_after_the_lease",
            "nothing-is-fenced",
        ),
    ),
    row(
        "I7",
        "Each popped pod ends in exactly one of bound, queued, deleted",
        "",
        (
            "tests/scheduler/queueing/test_queue_threads.py::"
            "test_each_of_many_pods_ends_exactly_once",
            "failed-pods-are-put-nowhere",
        ),
        (
            scenario("118226-update-while-binding"),
            "update-of-a-pod-in-flight-is-an-addition",
        ),
    ),
    row(
        "I8",
        "No victim is deleted twice, or for a preemptor that no longer exists",
        "",
        (
            "tests/scheduler/api_writes/test_eviction.py::"
            "test_a_victim_that_the_watch_still_shows_is_not_deleted_again",
            "victims-are-deleted-again",
        ),
        (
            scenario("102339-victims-of-a-deleted-preemptor"),
            "victims-go-whatever-becomes-of-the-preemptor",
        ),
    ),
    row(
        "I9",
        "Memory and queues are bounded",
        "",
        (
            "tests/scheduler/api_writes/test_background_writer.py::"
            "test_beyond_the_capacity_the_newest_are_dropped_and_counted",
            "queues-of-writes-have-no-limit",
        ),
        (
            "tests/scheduler/queueing/test_in_flight.py::"
            "test_an_attempt_that_lasts_keeps_a_bounded_number_of_events_and_knows_it",
            "attempts-keep-all-events",
        ),
    ),
    row(
        "I10",
        "The known state never goes back in time, except when etcd is restored: then all of it",
        "",
        (
            "tests/scheduler/informers/test_store.py::test_a_list_never_goes_back_for_an_object",
            "older-versions-count",
        ),
        (scenario("own-etcd-is-restored"), "stores-never-go-back"),
    ),
    row(
        "I11",
        "The event loop is never blocked for longer than its budget",
        "",
        (
            "tests/scheduler/queueing/test_requeue_scan.py::"
            "test_an_event_costs_a_bounded_number_of_questions_and_the_rest_follows",
            "events-are-judged-in-one-go",
        ),
    ),
    row(
        "I12",
        "Same seed, same order of events: same decisions",
        "",
        (
            "tests/scheduler/cycle/test_scheduling_cycle.py::"
            "TestSearch::test_ties_are_broken_by_the_seed",
            "ties-are-broken-by-chance",
        ),
    ),
    row(
        "I13",
        "No object costs the scheduling thread more than its attempt budget, or memory that is "
        "never released",
        "",
        (
            "tests/scheduler/cycle/test_attempts_over_budget.py::"
            "test_an_attempt_that_exceeds_its_budget_has_no_verdict",
            "budgets-are-not-looked-at",
        ),
        (
            "tests/cache/test_term_index.py::"
            "test_values_of_pods_that_are_gone_are_forgotten_though_nobody_asks",
            "B9",
        ),
    ),
    row(
        "I14",
        "Attempts over budget take at most a tenth of the thread, and every pod is decided",
        "",
        (
            "tests/scheduler/queueing/test_budget_accounts.py::"
            "test_all_that_is_over_budget_takes_its_share_and_namespaces_take_the_same",
            "events-shorten-the-pause-of-expensive-pods",
        ),
    ),
    row(
        "I15",
        "What is deleted from the API leaves the cache, by UID, readable or not",
        "",
        (scenario("own-unreadable-pod-leaves"), "what-leaves-has-to-be-readable"),
        (
            scenario("own-confirmed-without-the-watch"),
            "only-what-is-assumed-is-given-back",
        ),
    ),
    row(
        "I16",
        "No answered request is sent again without end",
        "",
        (scenario("96579-bind-fails-for-ever"), "bindings-are-sent-for-ever"),
    ),
    row(
        "I17",
        "A thread that dies ends the process",
        "",
        (
            "tests/scheduler/process/test_vital.py::test_a_thread_that_dies_says_so",
            "threads-die-in-silence",
        ),
    ),
)
