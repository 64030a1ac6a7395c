from __future__ import annotations

import pytest

from plugins.framework.cluster_events import (
    ALL_EVENTS,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    Hint,
    Resource,
)
from plugins.framework.cluster_events import Action as Do
from scheduler.queueing import QueueState
from scheduler.queueing.queue_states import IllegalMoveError
from tests.builders import pod
from tests.scheduler.queueing.stage import (
    FIT,
    NODE_ALLOCATABLE,
    NODE_LABEL,
    NODE_TAINT,
    START_S,
    Stage,
    version,
    wants,
)

POD = pod("p")
OTHER = pod("other")
GATED = pod("gated").gate("wait")
UNGATED = pod("gated")
AT_DOOR = pod("at-door").label("door")


@pytest.fixture
def stage() -> Stage:
    return Stage()


class TestOrder:
    def test_higher_priority_first_then_first_come(self, stage):
        stage.add(pod("a"), pod("b").priority(10), pod("c"), pod("d").priority(10))
        assert stage.pop_names() == ["b", "d", "a", "c"]

    def test_pods_of_one_instant_go_in_the_order_in_which_they_came(self, stage):
        for name in "cab":
            stage.queue.add(pod(name).info())
        assert stage.pop_names() == ["c", "a", "b"]

    def test_a_pod_that_failed_stands_behind_those_that_came_meanwhile(self, stage):
        stage.add(pod("a"), pod("b"))
        first = stage.pop()
        stage.add(pod("c"))
        stage.refuse(first, "Fit")
        stage.queue.activate([first.info.uid])
        assert stage.pop_names() == ["b", "c", "a"]

    def test_an_update_may_give_an_active_pod_another_place(self, stage):
        low, high = pod("low"), pod("high").priority(1)
        stage.add(low, high)
        stage.update(low, low.priority(2))
        assert stage.pop_names() == ["low", "high"]

    def test_an_update_that_changes_nothing_of_its_place_keeps_it(self, stage):
        stage.add(POD, OTHER)
        stage.update(POD, POD.label("app", "web"))
        assert stage.pop_names() == ["p", "other"]


class TestComingAndGoing:
    def test_a_new_pod_is_active(self, stage):
        stage.add(POD)
        assert stage.state(POD) is QueueState.ACTIVE
        assert stage.queue.counts() == (1, 0, 0, 0, 0)

    def test_a_popped_pod_is_in_flight_until_it_is_done(self, stage):
        stage.add(POD)
        queued = stage.pop()
        assert stage.state(POD) is QueueState.IN_FLIGHT
        stage.queue.done(queued.info.uid)
        assert not any(stage.queue.counts())

    def test_what_the_caller_learns_about_a_popped_pod(self, stage):
        stage.add(POD)
        queued = stage.pop()
        assert queued.attempts == 1
        assert queued.timestamp_s == queued.initial_attempt_s == START_S
        assert queued.popped_s == START_S + 1

    def test_an_empty_queue_has_nothing_to_pop(self, stage):
        assert stage.queue.pop(0) is None

    def test_an_unknown_pod_that_is_updated_is_added(self, stage):
        stage.update(POD, POD.label("app", "web"))
        assert stage.state(POD) is QueueState.ACTIVE

    def test_an_unknown_pod_told_of_twice_does_not_come_back(self, stage):
        info = version(POD, 7)
        stage.queue.update(info.pod, info)
        assert stage.state(POD) is QueueState.NOWHERE

    def test_a_pod_that_is_added_twice_is_in_the_queue_once(self, stage):
        stage.add(POD, POD)
        assert stage.pop_names() == ["p"]

    def test_the_latest_version_is_popped(self, stage):
        stage.add(POD)
        new = POD.label("app", "web").info()
        stage.queue.update(POD.build(), new)
        assert stage.pop().info is new

    def test_an_older_version_does_not_replace_a_newer_one(self, stage):
        new = version(POD, 10)
        stage.queue.add(new)
        stage.queue.update(None, version(POD, 9))
        assert stage.pop().info is new

    @pytest.mark.parametrize(
        ("bring", "state"),
        [
            pytest.param(lambda stage: stage.add(POD), QueueState.ACTIVE, id="active"),
            pytest.param(
                lambda stage: stage.fail(stage.add(POD) or stage.pop()),
                QueueState.BACKOFF,
                id="error",
            ),
            pytest.param(
                lambda stage: (stage.refused(POD, "Fit"), stage.queue.move_all(NODE_ADD, 0, 0)),
                QueueState.BACKOFF,
                id="backoff",
            ),
            pytest.param(
                lambda stage: stage.refused(POD, "Fit"),
                QueueState.UNSCHEDULABLE,
                id="unschedulable",
            ),
            pytest.param(
                lambda stage: stage.queue.add(POD.gate("g").info()), QueueState.GATED, id="gated"
            ),
        ],
    )
    def test_a_deleted_pod_is_gone_wherever_it_was(self, stage, bring, state):
        bring(stage)
        assert stage.state(POD) is state
        stage.queue.delete(POD.info().uid)
        assert not any(stage.queue.counts())
        stage.now_s += 1000
        stage.queue.flush_backoff()
        stage.queue.flush_unschedulable_leftover()
        stage.queue.move_all(ALL_EVENTS, None, None)
        assert stage.queue.pop(0) is None

    def test_a_pod_that_is_taken_out_is_gone_and_may_come_back(self, stage):
        stage.refused(POD, "Fit")
        assert stage.queue.take_out(POD.info().uid)
        assert not stage.queue.take_out(POD.info().uid)
        assert not any(stage.queue.counts())
        stage.add(POD)
        assert stage.state(POD) is QueueState.ACTIVE

    def test_a_pod_in_flight_is_not_taken_out(self, stage):
        stage.add(POD)
        popped = stage.pop()
        assert not stage.queue.take_out(popped.info.uid)
        assert stage.state(POD) is QueueState.IN_FLIGHT

    def test_after_close_nothing_is_popped(self, stage):
        stage.add(POD)
        stage.queue.close()
        assert stage.queue.pop() is None

    def test_after_close_an_attempt_may_still_end(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.close()
        stage.queue.done(queued.info.uid)
        assert not any(stage.queue.counts())


class TestFailedAttempts:
    def test_a_refused_pod_waits_for_an_event(self, stage):
        queued = stage.refused(POD, "Fit")
        assert stage.state(POD) is QueueState.UNSCHEDULABLE
        assert (queued.unschedulable_count, queued.consecutive_errors) == (1, 0)

    def test_a_pod_that_met_an_error_pauses(self, stage):
        stage.add(POD)
        queued = stage.fail(stage.pop())
        assert stage.state(POD) is QueueState.BACKOFF
        assert (queued.unschedulable_count, queued.consecutive_errors) == (0, 1)

    def test_after_an_error_nobody_goes_early(self, stage):
        stage.add(POD)
        stage.fail(stage.pop())
        assert stage.queue.pop(0) is None

    def test_errors_are_forgotten_after_a_refusal(self, stage):
        stage.add(POD)
        queued = stage.fail(stage.pop())
        stage.now_s += 100
        stage.refuse(stage.pop(), "Fit")
        assert (queued.unschedulable_count, queued.consecutive_errors) == (1, 0)

    def test_a_pause_that_is_over_ends_by_itself(self, stage):
        stage.add(POD)
        stage.fail(stage.pop())
        deadline_s = START_S + 3
        stage.now_s = deadline_s - 0.001
        assert stage.queue.pop(0) is None
        stage.now_s = deadline_s
        assert stage.pop().attempts == 2

    def test_a_timer_may_end_pauses_too(self, stage):
        stage.add(POD)
        stage.fail(stage.pop())
        stage.now_s += 2
        stage.queue.flush_backoff()
        assert stage.state(POD) is QueueState.ACTIVE

    def test_the_pause_grows_with_each_refusal(self, stage):
        stage.add(POD)
        pauses = []
        for _ in range(6):
            queued = stage.refuse(stage.pop(), "Fit")
            pauses.append(queued.backoff_until_s - stage.now_s - 1)
            stage.queue.move_all(NODE_ADD, None, None)
            assert stage.state(POD) is QueueState.BACKOFF
            stage.now_s = queued.backoff_until_s
        assert pauses == [1, 2, 4, 8, 10, 10]

    def test_a_refused_pod_goes_early_when_nobody_is_active(self, stage):
        stage.refused(POD, "Fit")
        stage.queue.move_all(NODE_ADD, None, None)
        stage.add(OTHER)
        assert stage.pop_names() == ["other", "p"]

    def test_an_attempt_ends_once(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.refuse(queued, "Fit")
        stage.queue.done(queued.info.uid)
        stage.fail(queued)
        assert stage.state(POD) is QueueState.UNSCHEDULABLE
        assert queued.consecutive_errors == 0

    def test_after_done_a_refusal_puts_the_pod_nowhere(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.done(queued.info.uid)
        stage.refuse(queued, "Fit")
        assert not any(stage.queue.counts())


class TestWaking:
    @pytest.mark.parametrize(
        ("event", "refused_by", "state"),
        [
            pytest.param(NODE_ADD, ["Fit"], QueueState.BACKOFF, id="awaited"),
            pytest.param(NODE_LABEL, ["Fit"], QueueState.UNSCHEDULABLE, id="of no use"),
            pytest.param(NODE_TAINT, ["Fit", "Taints"], QueueState.BACKOFF, id="of use to one"),
            pytest.param(ASSIGNED_POD_ADD, ["Fit"], QueueState.UNSCHEDULABLE, id="a pod comes"),
            pytest.param(ALL_EVENTS, ["Silent"], QueueState.BACKOFF, id="everything"),
        ],
    )
    def test_an_event_wakes_whom_it_may_help(self, stage, event, refused_by, state):
        stage.refused(POD, *refused_by)
        moved = stage.queue.move_all(event, None, None)
        assert stage.state(POD) is state
        assert moved == (state is not QueueState.UNSCHEDULABLE)

    @pytest.mark.parametrize(
        ("event", "state"),
        [
            pytest.param(NODE_TAINT, QueueState.BACKOFF, id="who wants new nodes hears of taints"),
            pytest.param(NODE_LABEL, QueueState.UNSCHEDULABLE, id="but not of labels"),
        ],
    )
    def test_a_new_node_may_lose_a_taint_later(self, stage, event, state):
        stage.refused(POD, "Fit")
        stage.queue.move_all(event, None, None)
        assert stage.state(POD) is state

    def test_only_those_that_the_event_can_concern_are_asked(self, stage):
        stage.refused(POD, "Fit")
        assert stage.queue.move_all(NODE_ADD, None, None, lambda one: False) == 0
        assert stage.state(POD) is QueueState.UNSCHEDULABLE

    def test_once_its_pause_is_over_a_woken_pod_is_active(self, stage):
        stage.refused(POD, "Fit")
        stage.now_s += 60
        stage.queue.move_all(NODE_ADD, None, None)
        assert stage.state(POD) is QueueState.ACTIVE

    def test_what_a_pending_plugin_waited_for_spares_the_pause(self, stage):
        stage.refused(POD, pending=("Fit",))
        stage.queue.move_all(NODE_ADD, None, None)
        assert stage.state(POD) is QueueState.ACTIVE

    def test_a_hint_decides_for_each_pod(self):
        def small(one, old, new):
            return Hint.QUEUE if one.metadata.name == new else Hint.SKIP

        stage = Stage({"P": (wants(Resource.NODE, Do.ADD, small),)})
        stage.refused(POD, "P")
        stage.refused(OTHER, "P")
        assert stage.queue.move_all(NODE_ADD, None, "other") == 1
        assert stage.state(OTHER) is QueueState.BACKOFF
        assert stage.state(POD) is QueueState.UNSCHEDULABLE

    def test_a_wildcard_event_may_name_one_pod(self, stage):
        stage.refused(POD, "Fit")
        stage.refused(OTHER, "Fit")
        assert stage.queue.move_all(FORCE_ACTIVATE, None, OTHER.build()) == 1
        assert stage.state(POD) is QueueState.UNSCHEDULABLE

    @pytest.mark.parametrize(
        ("change", "state"),
        [
            pytest.param(
                lambda pod: pod.toleration("t"), QueueState.BACKOFF, id="what was missing"
            ),
            pytest.param(
                lambda pod: pod.label("a", "b"), QueueState.UNSCHEDULABLE, id="something else"
            ),
        ],
    )
    def test_an_update_of_the_pod_itself_wakes_it_if_it_may_help(self, stage, change, state):
        stage.refused(POD, "Taints")
        stage.update(POD, change(POD))
        assert stage.state(POD) is state

    def test_an_update_of_the_status_wakes_nobody(self):
        stage = Stage({"P": (wants(Resource.WILDCARD, Do.ALL),)})
        stage.refused(POD, "P")
        stage.queue.update(POD.build(), version(POD, 2, phase="Pending", reason="Unschedulable"))
        assert stage.state(POD) is QueueState.UNSCHEDULABLE

    def test_a_hint_that_raises_wakes_the_pod_and_no_other_is_lost(self):
        def broken(one, old, new):
            raise ValueError("oh")

        stage = Stage({"P": (wants(Resource.NODE, Do.ADD, broken),)})
        stage.refused(POD, "P")
        stage.refused(OTHER, "P")
        assert stage.queue.move_all(NODE_ADD, None, None) == 2

    def test_activation_spares_the_pause(self, stage):
        stage.refused(POD, "Silent")
        stage.queue.activate([POD.info().uid, "unknown"])
        assert stage.state(POD) is QueueState.ACTIVE

    def test_activation_ends_a_pause(self, stage):
        stage.add(POD)
        stage.fail(stage.pop())
        stage.queue.activate([POD.info().uid])
        assert stage.state(POD) is QueueState.ACTIVE

    def test_nobody_waits_longer_than_the_limit_without_an_event(self, stage):
        queued = stage.refused(POD, "Silent")
        stage.now_s = queued.timestamp_s + 300
        stage.queue.flush_unschedulable_leftover()
        assert stage.state(POD) is QueueState.UNSCHEDULABLE
        stage.now_s += 0.001
        stage.queue.flush_unschedulable_leftover()
        assert stage.state(POD) is QueueState.ACTIVE
        assert queued.flushed

    def test_only_those_who_waited_too_long_are_flushed(self, stage):
        stage.refused(POD, "Silent")
        stage.now_s += 200
        stage.refused(OTHER, "Silent")
        stage.now_s += 150
        stage.queue.flush_unschedulable_leftover()
        assert stage.state(POD) is QueueState.ACTIVE
        assert stage.state(OTHER) is QueueState.UNSCHEDULABLE

    def test_the_next_failure_forgets_the_flush(self, stage):
        stage.refused(POD, "Silent")
        stage.now_s += 301
        stage.queue.flush_unschedulable_leftover()
        queued = stage.pop()
        assert queued.flushed
        stage.refuse(queued, "Silent")
        assert not queued.flushed


class TestGates:
    def test_a_gated_pod_is_never_popped(self, stage):
        stage.add(GATED)
        assert stage.state(GATED) is QueueState.GATED
        assert stage.queue.pop(0) is None

    def test_a_gated_pod_says_why(self, stage):
        stage.add(GATED)
        [told] = stage.queue.pending().gated
        assert told.gated_by == "SchedulingGates"
        assert told.gate_reasons == ("waiting for scheduling gates: [wait]",)

    def test_it_becomes_active_with_its_last_gate_gone(self, stage):
        stage.add(GATED)
        stage.update(GATED, UNGATED)
        queued = stage.pop()
        assert queued.gated_by is None
        assert queued.gate_reasons == ()

    def test_the_first_attempt_counts_from_when_the_gates_opened(self, stage):
        stage.add(GATED)
        stage.now_s += 100
        opened_s = stage.now_s
        stage.update(GATED, UNGATED)
        assert stage.pop().initial_attempt_s == opened_s

    @pytest.mark.parametrize(
        "wake",
        [
            pytest.param(lambda queue: queue.move_all(ALL_EVENTS, None, None), id="everything"),
            pytest.param(lambda queue: queue.move_all(NODE_ADD, None, None), id="node"),
            pytest.param(lambda queue: queue.activate([GATED.info().uid]), id="activation"),
            pytest.param(lambda queue: queue.flush_unschedulable_leftover(), id="time limit"),
            pytest.param(lambda queue: queue.add(GATED.info()), id="added once more"),
            pytest.param(
                lambda queue: queue.update(None, GATED.label("a", "b").info()), id="update"
            ),
        ],
    )
    def test_nothing_else_gets_it_past_its_gate(self, stage, wake):
        stage.add(GATED)
        stage.now_s += 1000
        wake(stage.queue)
        assert stage.state(GATED) is QueueState.GATED

    def test_an_event_that_the_gate_registered_asks_it_again(self, stage):
        stage.add(AT_DOOR)
        stage.door_is_shut = False
        assert stage.queue.move_all(ASSIGNED_POD_DELETE, None, None) == 0
        assert stage.state(AT_DOOR) is QueueState.GATED
        assert stage.queue.move_all(NODE_ADD, None, None) == 1
        assert stage.state(AT_DOOR) is QueueState.ACTIVE

    def test_who_refused_a_pod_wakes_it_through_its_gate(self):
        # As preemption does it: its gate never says when, it only says of what it wants to hear.
        def never(one, old, new):
            return Hint.SKIP

        stage = Stage({"Fit": FIT, "Door": (wants(Resource.POD, Do.DELETE, never),)})
        stage.door_is_shut = False
        stage.refused(AT_DOOR, "Fit")
        stage.door_is_shut = True
        stage.queue.move_all(ASSIGNED_POD_DELETE, None, None)
        assert stage.state(AT_DOOR) is QueueState.GATED
        stage.door_is_shut = False
        stage.queue.move_all(NODE_ADD, None, None)
        assert stage.state(AT_DOOR) is QueueState.GATED
        stage.queue.move_all(ASSIGNED_POD_DELETE, None, None)
        assert stage.state(AT_DOOR) is QueueState.BACKOFF

    def test_a_pod_may_come_from_one_gate_to_the_next(self, stage):
        stage.add(AT_DOOR.gate("wait"))
        stage.update(AT_DOOR.gate("wait"), AT_DOOR)
        [told] = stage.queue.pending().gated
        assert told.gated_by == "Door"
        stage.door_is_shut = False
        assert stage.queue.move_all(NODE_ADD, None, None) == 1

    def test_gates_are_asked_when_a_refused_pod_is_woken(self, stage):
        stage.door_is_shut = False
        stage.refused(AT_DOOR, "Fit")
        stage.door_is_shut = True
        assert stage.queue.move_all(NODE_ALLOCATABLE, None, None) == 0
        assert stage.state(AT_DOOR) is QueueState.GATED

    @pytest.mark.parametrize("is_told_after", [False, True])
    def test_a_pod_that_a_gate_shuts_out_leaves_the_room_that_it_counted_on(self, is_told_after):
        stage = Stage(wake_later=lambda: calls.append(1), pieces_at_once=1)
        calls: list[int] = []
        nominated = AT_DOOR.nominated("n1")
        stage.door_is_shut = False
        stage.refused(AT_DOOR if is_told_after else nominated, "Fit")
        stage.refused(OTHER, "Fit")
        stage.door_is_shut = True
        stage.queue.move_all(NODE_ADD, None, None, lambda one: "door" in one.metadata.labels)
        while stage.queue.judge_backlog(lambda: False):
            pass
        assert stage.state(AT_DOOR) is QueueState.GATED
        if is_told_after:
            assert stage.state(OTHER) is QueueState.UNSCHEDULABLE
            stage.update(AT_DOOR, nominated)
        assert stage.queue.nominator.node_of(AT_DOOR.info().uid) is None
        assert calls
        stage.queue.judge_backlog(lambda: False)
        assert stage.state(OTHER) is QueueState.BACKOFF

    def test_a_pod_that_is_gated_when_it_comes_counts_on_no_room(self, stage):
        stage.add(AT_DOOR.nominated("n1"))
        assert stage.queue.nominator.node_of(AT_DOOR.info().uid) is None

    def test_a_pod_with_scheduling_gates_keeps_the_room_that_another_program_named(self, stage):
        stage.add(GATED.nominated("n1"))
        assert stage.queue.nominator.node_of(GATED.info().uid) == "n1"

    def test_a_pod_that_paused_when_it_was_gated_still_pauses(self, stage):
        stage.door_is_shut = False
        stage.refused(AT_DOOR, "Fit")
        stage.door_is_shut = True
        stage.queue.move_all(NODE_ALLOCATABLE, None, None)
        stage.door_is_shut = False
        stage.queue.move_all(NODE_ADD, None, None)
        assert stage.state(AT_DOOR) is QueueState.BACKOFF

    def test_a_gate_that_wants_every_event_is_asked_after_the_time_limit(self):
        stage = Stage({"Door": (wants(Resource.WILDCARD, Do.ALL),)})
        stage.add(AT_DOOR)
        stage.door_is_shut = False
        stage.queue.flush_unschedulable_leftover()
        assert stage.state(AT_DOOR) is QueueState.GATED
        stage.now_s += 301
        stage.queue.flush_unschedulable_leftover()
        assert stage.state(AT_DOOR) is QueueState.ACTIVE


class TestReports:
    def test_each_way_into_a_room_is_told(self, stage):
        stage.add(POD, GATED)
        stage.refuse(stage.pop(), "Fit")
        stage.queue.move_all(NODE_ADD, None, None)
        stage.fail(stage.pop())
        stage.now_s += 60
        stage.refuse(stage.pop(), "Fit")
        stage.queue.activate([POD.info().uid])
        stage.refuse(stage.pop(), "Fit")
        stage.now_s += 301
        stage.queue.flush_unschedulable_leftover()
        stage.update(GATED, UNGATED)
        assert stage.incoming == [
            ("active", "UnschedulablePodAdd"),
            ("unschedulable", "UnschedulablePodAdd"),
            ("unschedulable", "ScheduleAttemptFailure"),
            ("backoff", "NodeAdd"),
            ("active", "PopFromBackoffQ"),
            ("backoff", "ScheduleAttemptFailure"),
            ("active", "BackoffComplete"),
            ("unschedulable", "ScheduleAttemptFailure"),
            ("active", "ForceActivate"),
            ("unschedulable", "ScheduleAttemptFailure"),
            ("active", "UnschedulableTimeout"),
            ("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
        ]

    def test_what_is_pending_stands_in_order(self, stage):
        stage.add(pod("tried"))
        stage.refuse(stage.pop(), "Fit", "Taints")
        stage.add(pod("woken"))
        stage.refuse(stage.pop(), "Silent")
        stage.add(GATED, pod("low"), pod("high").priority(9), pod("first").priority(10))
        stage.pop()
        stage.add(pod("failed").priority(10))
        stage.fail(stage.pop())
        pending = stage.queue.pending()
        assert [told.info.name for told in pending.active] == ["high", "low"]
        assert [told.info.name for told in pending.backoff] == ["failed"]
        assert [told.info.name for told in pending.unschedulable] == ["tried", "woken"]
        assert [told.info.name for told in pending.gated] == ["gated"]
        assert [told.info.name for told in pending.in_flight] == ["first"]
        assert pending.unschedulable[0].unschedulable_plugins == {"Fit", "Taints"}

    def test_a_mistake_of_the_queue_is_not_silent(self, stage):
        stage.add(POD)
        queued = stage.queue._pods.get(POD.info().uid)
        with pytest.raises(IllegalMoveError):
            stage.queue._pods.move(queued, QueueState.UNSCHEDULABLE)
        assert stage.pop_names() == ["p"]
