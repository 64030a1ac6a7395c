"""Mistakes that other schedulers made, each with the threads where they were reported."""

from __future__ import annotations

from typing import Final

from tests.faults.rows import row, scenario

_LISTS: Final = "tests/scheduler/informers/test_reflector_lists.py::"
_WATCHES: Final = "tests/scheduler/informers/test_reflector_watches.py::"
_STATUSES: Final = "tests/scheduler/api_writes/test_pod_status_writer.py::"

MISTAKES: Final = (
    row(
        "R1",
        "A StatefulSet's pod is recreated while the old one is assumed (kubernetes#56682)",
        "Pods are known by UID",
        (scenario("56682-recreated-while-assumed"), "cache-knows-pods-by-name"),
        (scenario("56682-recreated-unheard"), "store-knows-objects-by-name"),
    ),
    row(
        "R2",
        "A binding fails, forgetting it fails, and the pod is lost (kubernetes#49314)",
        "Each failed cycle ends in one place of the queue",
        (scenario("49314-forget-fails"), "undo-ends-where-forget-fails"),
    ),
    row(
        "R3",
        "An error path returns without requeueing the pod (kubernetes#50106)",
        "Each failed cycle ends in one place of the queue",
        (scenario("50106-error-after-assume"), "failed-reserve-returns-without-requeue"),
        (scenario("50106-assume-fails"), "failed-assume-leaves-the-attempt-open"),
    ),
    row(
        "R4",
        "A deleted preemptor keeps a phantom on its node (kubernetes#102339, #85447)",
        "A nomination ends with its UID",
        (scenario("102339-preemptor-deleted"), "nominations-outlive-their-pods"),
        (scenario("85447-preemptor-deleted-while-tried"), "nominations-outlive-their-pods"),
    ),
    row(
        "R5",
        "A nomination is not cleared when it cannot hold or its node is gone "
        "(kubernetes#106780, #85677)",
        "It ends in the API and in memory",
        (scenario("106780-nomination-that-cannot-hold"), "nominations-are-never-cleared"),
        (scenario("85677-nominated-node-is-gone"), "nominations-are-never-cleared"),
    ),
    row(
        "R6",
        "Another pod takes the room before the nomination is seen (kubernetes#72124)",
        "A nomination counts at once",
        (
            scenario("72124-nomination-not-yet-told"),
            "nominations-count-once-the-api-tells-of-them",
        ),
    ),
    row(
        "R7",
        "A victim never ends (kubernetes#95752)",
        "After a limit the preemptor tries other nodes",
        (scenario("95752-victim-never-ends"), "victims-are-waited-for-without-limit"),
    ),
    row(
        "R8",
        "The creation of a pod is never seen (kubernetes#102790, #104521)",
        "A list finds it",
        (scenario("102790-events-that-a-watch-lost"), "nobody-looks-for-lost-events"),
        (scenario("102790-pod-that-the-queue-lost"), "nobody-looks-for-lost-pods"),
    ),
    row(
        "R9",
        "The deletion of a node is never seen (kubernetes#94437, #56261)",
        "A list finds it",
        (
            "tests/faults/test_in_simulation.py::test_f10_a_lost_node_deletion_is_found",
            "nobody-looks-for-lost-events",
        ),
    ),
    row(
        "R10",
        "The deletion of a pod is lost over a restart of the API server (kubernetes#55587, #51313)",
        "The next list releases its room",
        (f"{_WATCHES}test_f8_a_lost_deletion_is_told_by_the_next_list", "lists-take-nothing-away"),
    ),
    row(
        "R11",
        "A node is recreated, and its generation equals the snapshot's (kubernetes#63262)",
        "One generation counts for all nodes, and only grows",
        (
            "tests/cache/test_scheduler_cache.py::TestSnapshots::"
            "test_a_deleted_and_an_added_node_between_two_snapshots",
            "generations-begin-anew-with-each-node",
        ),
    ),
    row(
        "R12",
        "A node is removed before its pods (kubernetes#89552, #89908, #31968, #89006, #92050)",
        "Nothing crashes; its pods count on an imagined node",
        (scenario("89908-pod-before-its-node"), "pods-of-unknown-nodes-are-passed-over"),
    ),
    row(
        "R13",
        "A node is recreated under its name, and its pods stay (kubernetes#93938, #86964)",
        "They still count",
        (scenario("93938-node-recreated"), "pods-are-forgotten-with-their-node"),
    ),
    row(
        "R14",
        "An event during an attempt is lost (kubernetes#120413)",
        "Events of the attempt count at its end",
        (scenario("120413-event-during-an-attempt"), "events-pass-pods-in-flight-by"),
    ),
    row(
        "R15",
        "An attempt never ends (kubernetes#120622, #126962, #138324, koordinator#3190)",
        "At rest nothing is in flight",
        (scenario("126962-skipped-pod"), "skipped-pod-stays-in-flight"),
        (scenario("138324-recreated-while-tried"), "failure-takes-the-uid-of-the-successor"),
        (scenario("3190-failure-of-a-deleted-pod"), "failure-of-a-deleted-pod-is-passed-over"),
    ),
    row(
        "R16",
        "A pod is in the queue and in a binding (kubernetes#118226)",
        "A UID is in one place",
        (
            scenario("118226-update-while-binding"),
            "update-of-a-pod-in-flight-is-an-addition",
        ),
    ),
    row(
        "R17",
        "A forgotten assumption wakes nobody (kubernetes#122444)",
        "Released room wakes those who wait for it",
        (scenario("122444-room-of-a-failed-binding"), "undo-wakes-nobody"),
    ),
    row(
        "R18",
        "Gated pods are not woken, or 10 000 of them slow the loop "
        "(kubernetes#125223, #139162, #124384)",
        "Events reach the gates that are registered for them, and cost nothing for others",
        (scenario("125223-gated-pod-is-woken"), "events-pass-gated-pods-by"),
        (scenario("124384-many-gated-pods"), "every-event-is-for-every-gated-pod"),
    ),
    row(
        "R19",
        "A gated pod is bound (volcano#6008)",
        "Gates are respected",
        (scenario("6008-gates-are-respected"), "gates-are-not-asked"),
    ),
    row(
        "R20",
        "A pod that is deleted while it is bound keeps its room (kubernetes#134217)",
        "It is forgotten when it is deleted",
        (
            scenario("134217-deleted-while-binding"),
            "pods-in-binding-keep-their-room-when-deleted",
        ),
    ),
    row(
        "R21",
        "A binding times out and took effect (kubernetes#96579, #38503, yunikorn-k8shim#1041)",
        "The pod is read before anything else happens, and never goes to a second node",
        (
            "tests/scheduler/api_writes/test_binder.py::test_a_binding_is_settled_as_made",
            "no-answer-means-unbound",
        ),
        (scenario("96579-bind-fails-for-ever"), "bindings-are-sent-for-ever"),
    ),
    row(
        "R22",
        "Two schedulers race for a node, and the kubelet rejects a pod "
        "(kubernetes#60469, #72043, #106884)",
        "The rejection is counted, and the node avoided for a while",
        (scenario("60469-rejected-by-its-kubelet"), "rejections-are-passed-over"),
    ),
    row(
        "R23",
        "An old leader goes on binding (kubernetes#23731, #67651, #125761, cilium#42920)",
        "No write starts that could end after the lease",
        (
            "tests/scheduler/leader_election/test_elector.py::"
            "test_two_leaders_never_write_at_one_time",
            "nothing-is-fenced",
        ),
    ),
    row(
        "R24",
        "A list from a stale API server goes back in time (kubernetes#59848, #83520)",
        "It is refused",
        (
            f"{_LISTS}test_f6_a_paged_list_from_the_past_is_refused_too",
            "old-lists-are-believed",
        ),
    ),
    row(
        "R25",
        "All watches end with 410, and all clients list at once (kubernetes#86430, #6770)",
        "Lists wait for a random time that grows",
        (
            "tests/scheduler/informers/test_backoff.py::"
            "test_two_clients_with_different_seeds_do_not_come_back_together",
            "lists-are-repeated-at-once",
        ),
    ),
    row(
        "R26",
        "'Too large resource version' for ever (kubernetes#107133, #91073)",
        "After three tries the version is given up",
        (
            "tests/scheduler/informers/test_reflector_states.py::"
            "test_a_version_that_is_never_reached_is_given_up_after_three_tries",
            "versions-that-are-never-reached-are-asked-for-again",
        ),
    ),
    row(
        "R27",
        "Caches of volumes and anti-affinity are out of step with pods "
        "(kubernetes#72013, #56236, #120512)",
        "What follows changes equals what is built anew",
        (
            "tests/cache/test_term_index.py::test_counts_follow_pods_that_come_and_go",
            "pods-of-nodes-that-change-are-counted-once",
        ),
    ),
    row(
        "R28",
        "Status conflicts fill a queue without end (volcano#3597)",
        "Only the newest status of a pod waits",
        (
            f"{_STATUSES}test_of_those_that_wait_only_the_newest_is_written",
            "only-the-oldest-status-is-written",
        ),
    ),
    row(
        "R29",
        "A binding that succeeded is reported as an exception (kubernetes-client/python#547)",
        "The status of the answer decides",
        (
            "tests/scheduler/client/test_api.py::test_a_bind_succeeds_by_its_http_status_alone",
            "answers-count-more-than-their-status",
        ),
    ),
    row(
        "R30",
        "A queue of events grows without bound (kyverno#4126)",
        "It is bounded, and what is dropped is counted",
        (
            "tests/scheduler/api_writes/test_background_writer.py::"
            "test_beyond_the_capacity_the_newest_are_dropped_and_counted",
            "queues-of-writes-have-no-limit",
        ),
    ),
)
