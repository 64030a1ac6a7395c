"""The faults: what may happen around a scheduler, and what must come of it."""

from __future__ import annotations

from typing import Final

from tests.faults.rows import row, scenario

_LISTS: Final = "tests/scheduler/informers/test_reflector_lists.py::"
_WATCHES: Final = "tests/scheduler/informers/test_reflector_watches.py::"
_UNREADABLE: Final = "tests/scheduler/informers/test_reflector_unreadable.py::"
_BINDER: Final = "tests/scheduler/api_writes/test_binder.py::"
_ELECTOR: Final = "tests/scheduler/leader_election/test_elector.py::"
_TENURE: Final = "tests/scheduler/leader_election/test_tenure.py::"
_ONE_POD: Final = "tests/scheduler/cycle/test_one_pod.py::"
_LOST: Final = "tests/scenarios/test_lost_events.py::test_lines_that_a_watch_lost_are_made_up_for"
_PLAYED: Final = "tests/faults/test_in_simulation.py::"

FAULTS: Final = (
    row(
        "F1",
        "A watch is closed cleanly, again and again",
        "It is resumed from the last version, without a list and without repeated effects",
        (
            f"{_WATCHES}test_f1_a_watch_is_resumed_from_the_last_version_seen",
            "watches-begin-with-a-list",
        ),
    ),
    row(
        "F2",
        "A connection is half open: no bytes for minutes",
        "The read timeout ends it; a pod that is not confirmed is read before its room is released",
        (
            "tests/scheduler/client/test_stream.py::test_silence_ends_a_stream",
            "silence-is-waited-out",
        ),
        (
            "tests/scheduler/cycle/test_reaper.py::test_an_overdue_pod_is_settled_by_what_the_api_says",
            "overdue-pods-are-given-up-unasked",
        ),
    ),
    row(
        "F3",
        "410 Gone, as a status and as an ERROR event",
        "A new list after a delay; its difference by UID reports deletions that were missed",
        (
            f"{_LISTS}test_f3_an_expired_version_is_listed_anew_after_a_delay",
            "expired-watches-go-on",
        ),
        (
            f"{_LISTS}test_f3_what_was_missed_before_a_compaction_is_told",
            "lists-take-nothing-away",
        ),
    ),
    row(
        "F4",
        "All watches end with 410 together, and lists are refused with 429 or 504",
        "Delays that grow, Retry-After obeyed; what is known is kept, pods are placed by it, and "
        "nobody exits",
        (f"{_LISTS}test_f4_delays_between_lists_grow", "lists-are-repeated-at-once"),
        (
            "tests/scheduler/informers/test_backoff.py::test_retry_after_is_a_lower_bound",
            "retry-after-is-not-read",
        ),
        (
            f"{_PLAYED}test_f4_pods_are_placed_while_no_list_can_be_had",
            "a-new-list-begins-with-nothing",
        ),
        (f"{_PLAYED}test_f4_lists_do_not_storm", "lists-are-repeated-at-once"),
    ),
    row(
        "F5",
        "The API server restarts and is away for 30 seconds",
        "Bindings under way are settled by a GET, the queue is kept, and watches are resumed",
        (
            f"{_WATCHES}test_f5_a_server_that_comes_back_is_resumed_without_a_list",
            "watches-begin-with-a-list",
        ),
        (f"{_BINDER}test_a_binding_is_settled_as_made", "no-answer-means-unbound"),
    ),
    row(
        "F6",
        "An API server shows an older state than was seen",
        "Its lists and events are refused",
        (
            f"{_LISTS}test_f6_a_list_from_the_past_is_refused_and_asked_for_again",
            "old-lists-are-believed",
        ),
        (f"{_LISTS}test_f6_an_event_from_the_past_is_dropped", "events-that-come-again-count"),
    ),
    row(
        "F7",
        "Events come twice",
        "They count once",
        (f"{_WATCHES}test_f7_events_that_come_twice_are_told_once", "events-that-come-again-count"),
    ),
    row(
        "F8",
        "The deletion of a pod is never reported",
        "A comparison with the API server finds it, and its room is released",
        (scenario("102790-events-that-a-watch-lost"), "nobody-looks-for-lost-events"),
        (f"{_PLAYED}test_f8_a_lost_deletion_is_found", "nobody-looks-for-lost-events"),
    ),
    row(
        "F9",
        "The creation of a pending pod is never reported",
        "A comparison with the API server finds it, and it is scheduled",
        (f"{_PLAYED}test_f9_a_lost_pod_is_found_and_placed", "nobody-looks-for-lost-events"),
        (_LOST, "nobody-looks-for-lost-events"),
    ),
    row(
        "F10",
        "The deletion of a node is never reported",
        "A comparison with the API server removes the node, and its pods are scheduled elsewhere",
        (f"{_PLAYED}test_f10_a_lost_node_deletion_is_found", "nobody-looks-for-lost-events"),
        (_LOST, "nobody-looks-for-lost-events"),
    ),
    row(
        "F11",
        "A bound pod is reported before its node",
        "It counts on a node that is only imagined, which is no candidate",
        (scenario("89908-pod-before-its-node"), "pods-of-unknown-nodes-are-passed-over"),
        (
            f"{_PLAYED}test_f11_a_node_that_is_only_imagined_gets_no_pod",
            "nodes-that-are-only-imagined-are-candidates",
        ),
    ),
    row(
        "F12",
        "A node is deleted between the assumption and the binding",
        "The binding may succeed; when the pod is collected it is forgotten, and nothing stays",
        (f"{_PLAYED}test_f12_a_node_goes_while_a_pod_is_bound_to_it", "pods-that-left-stay"),
        (f"{_PLAYED}test_f12_a_node_goes_while_a_pod_is_bound_to_it", "nodes-that-left-stay"),
    ),
    row(
        "F13",
        "A node is deleted and comes back under its name, half the size",
        "The next decision counts with the new size",
        (
            f"{_PLAYED}test_f13_a_node_that_comes_back_smaller_is_not_overcommitted",
            "nodes-that-come-back-have-their-old-size",
        ),
    ),
    row(
        "F14",
        "A pod is deleted while it is bound or held by Permit",
        "It is forgotten at once, its room wakes others, and the 404 is no error",
        (
            scenario("134217-deleted-while-binding"),
            "pods-in-binding-keep-their-room-when-deleted",
        ),
        (scenario("134217-deleted-while-held"), "pods-in-binding-keep-their-room-when-deleted"),
        (f"{_ONE_POD}test_a_pod_that_is_gone_goes_nowhere", "failures-are-all-alike"),
    ),
    row(
        "F15",
        "A pod is recreated under its name during its cycle",
        "The binding carries the UID and is refused; the new pod is scheduled by itself",
        (scenario("56682-recreated-while-assumed"), "cache-knows-pods-by-name"),
        (
            "tests/scheduler/client/test_client_on_controlplane.py::"
            "test_a_pod_of_the_same_name_is_not_bound_in_its_place",
            "bindings-without-uid",
        ),
    ),
    row(
        "F16",
        "A binding takes effect, and its answer is lost",
        "A GET confirms it; nothing is bound twice, and nothing is reported as failed",
        (f"{_BINDER}test_a_binding_is_settled_as_made", "no-answer-means-unbound"),
        (
            f"{_PLAYED}test_f16_a_binding_whose_answer_is_lost_is_sent_once",
            "no-answer-means-unbound",
        ),
    ),
    row(
        "F17",
        "Another scheduler has bound the pod: 409",
        "The attempt ends, the conflict is counted, and the room goes to others",
        (
            f"{_ONE_POD}test_a_pod_bound_by_somebody_else_is_counted_as_a_conflict",
            "failures-are-all-alike",
        ),
        (scenario("134859-bound-elsewhere"), "bound-elsewhere-is-no-news"),
    ),
    row(
        "F18",
        "The right to bind is taken away: 403",
        "The pod goes to backoff, the log says which right is missing, and others go on",
        (f"{_BINDER}test_only_a_missing_right_is_logged_as_one", "missing-rights-are-no-news"),
        (scenario("50106-error-after-assume"), "failed-pods-are-put-nowhere"),
    ),
    row(
        "F19",
        "A burst of 429 and 500 for bindings",
        "Few requests, with pauses; the assumption is kept; other namespaces lose nothing",
        (
            f"{_BINDER}test_one_namespace_that_fails_costs_another_nothing",
            "all-namespaces-fail-together",
        ),
        (scenario("96579-asked-to-wait"), "bindings-wait-with-their-room"),
    ),
    row(
        "F20",
        "One binding in a hundred takes 30 seconds",
        "The others are bound meanwhile, and the lease is renewed",
        (f"{_PLAYED}test_f20_slow_bindings_hold_up_no_others", "one-request-at-a-time"),
        (f"{_PLAYED}test_f20_the_lease_is_renewed_meanwhile", "the-lease-waits-in-line"),
    ),
    row(
        "F21",
        "A renewal of the lease is refused, or another holds it",
        "This process stops within one renewal, and writes nothing after it",
        (
            f"{_ELECTOR}test_a_lease_that_is_taken_away_is_lost_at_the_next_renewal",
            "leases-of-others-are-taken-back",
        ),
        (f"{_TENURE}test_who_may_write", "nothing-is-fenced"),
    ),
    row(
        "F22",
        "Requests about the lease hang",
        "The leadership ends at the renew deadline, by the monotonic clock",
        (
            f"{_PLAYED}test_f22_a_leader_whose_lease_requests_hang_ends_in_time",
            "leadership-never-ends-by-the-clock",
        ),
    ),
    row(
        "F23",
        "The leader stands still for 20 seconds and goes on",
        "Its first act is to look at the deadline; it writes nothing and exits",
        (
            f"{_TENURE}test_a_write_that_asks_too_late_is_how_the_loss_is_noticed",
            "nothing-is-fenced",
        ),
        (f"{_PLAYED}test_f23_a_leader_that_stood_still_writes_nothing", "nothing-is-fenced"),
    ),
    row(
        "F24",
        "The wall clock jumps by an hour",
        "Nobody loses or wins the leadership, and no backoff changes",
        (
            f"{_PLAYED}test_f24_a_wall_clock_that_jumps_changes_nothing",
            "elections-go-by-the-wall-clock",
        ),
    ),
    row(
        "F25",
        "SIGTERM under load",
        "Bindings under way are settled, the lease is given back, the exit status is 0, and a "
        "standby leads within two seconds",
        (
            f"{_PLAYED}test_f25_a_standby_leads_soon_after_a_leader_was_ended",
            "leases-are-kept-at-the-end",
        ),
        (
            f"{_ELECTOR}test_no_write_starts_once_the_lease_is_being_handed_over",
            "writes-go-on-while-the-lease-is-handed-over",
        ),
    ),
    row(
        "F26",
        "The leader is killed between a binding and the next write",
        "The next one knows all from the API server, and clears a nomination that cannot hold",
        (
            f"{_PLAYED}test_f26_the_next_leader_clears_the_nomination",
            "nominations-are-never-cleared",
        ),
        (
            f"{_PLAYED}test_f26_what_was_bound_before_a_kill_counts_after_it",
            "bound-pods-hold-nothing",
        ),
    ),
    row(
        "F27",
        "A plugin raises, or never returns",
        "The pod's Event names it, others are placed, and a plugin that fails often is skipped",
        (
            "tests/scheduler/user_plugins/containment/test_guard.py::"
            "test_after_some_failures_it_is_passed_over",
            "plugins-that-fail-are-asked-again",
        ),
    ),
    row(
        "F28",
        "A line or an object that cannot be read",
        "It costs itself: the stream goes on, the last good version stays, and what runs holds "
        "its room",
        (
            f"{_UNREADABLE}test_f28_a_garbage_line_costs_that_line",
            "lines-that-cannot-be-read-end-the-watch",
        ),
        (scenario("own-unreadable-pod-holds-room"), "what-cannot-be-read-holds-nothing"),
    ),
    row(
        "F29",
        "A SchedulingProfile is invalid, kopf dies, or the kind is deleted",
        "The last good profile stays, the status says so, and kopf is started again",
        (
            "tests/scheduler/profiles/test_known_profiles.py::"
            "test_a_broken_generation_leaves_the_last_good_one",
            "broken-policies-end-the-good-one",
        ),
        (
            "tests/scheduler/profiles/operator/test_profile_watch.py::"
            "test_a_run_ends_with_its_first_failure_and_the_next_one_lists",
            "kopf-is-started-once",
        ),
    ),
    row(
        "F30",
        "A flood of pods while Events cannot be written; a full disk; little memory",
        "Queues are bounded and drops are counted; bindings go first; afterwards all is at rest",
        (
            "tests/scheduler/api_writes/test_background_writer.py::"
            "test_beyond_the_capacity_the_newest_are_dropped_and_counted",
            "queues-of-writes-have-no-limit",
        ),
        (
            f"{_PLAYED}test_f30_a_flood_is_bound_while_no_event_can_be_written",
            "one-request-at-a-time",
        ),
        (
            "tests/scheduler/journal/test_files.py::"
            "test_a_disk_that_fails_leaves_a_gap_and_is_tried_again",
            "errors-of-the-disk-end-the-journal",
        ),
        (
            "tests/scheduler/process/test_log_setup.py::test_logging_into_nowhere_does_not_raise",
            "lines-that-cannot-be-logged-raise",
        ),
    ),
    row(
        "F31",
        "A kubelet rejects a pod (OutOfcpu)",
        "It is counted, and its successors avoid the node for a while",
        (scenario("60469-rejected-by-its-kubelet"), "rejections-are-passed-over"),
    ),
    row(
        "F32",
        "A victim with a finalizer never ends",
        "The nomination ends after a limit, and the preemptor may go elsewhere",
        (scenario("95752-victim-never-ends"), "victims-are-waited-for-without-limit"),
    ),
    row(
        "F33",
        "The token file is rotated, or empty for a moment",
        "The old token is kept, and the file is read again",
        (
            "tests/scheduler/client/test_credentials.py::"
            "test_a_token_file_that_is_unusable_for_a_moment_keeps_the_old_token",
            "a-token-that-is-gone-ends-its-use",
        ),
    ),
    row(
        "F34",
        "The certificate authority is rotated",
        "Certificates are loaded again when their files change",
        (
            "tests/scheduler/client/test_credentials.py::"
            "test_certificates_that_changed_are_loaded_again",
            "certificates-are-loaded-once",
        ),
    ),
    row(
        "F35",
        "One of two replicas is cut off from the API server",
        "If it leads it ends before its lease does, and the other one leads alone",
        (
            f"{_PLAYED}test_f35_a_leader_that_is_cut_off_ends_before_its_lease",
            "leadership-never-ends-by-the-clock",
        ),
    ),
)
