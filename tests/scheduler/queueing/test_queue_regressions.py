from __future__ import annotations

import pytest

from plugins.framework.cluster_events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
)
from scheduler.queueing import QueueState
from tests.builders import pod
from tests.scheduler.queueing.stage import (
    Stage,
    version,
)

POD = pod("p")
OTHER = pod("other")
GATED = pod("gated").gate("wait")
AT_DOOR = pod("at-door").label("door")


@pytest.fixture
def stage() -> Stage:
    return Stage()


class TestRegressions:
    """What went wrong in other schedulers' queues."""

    def test_a_recreated_pod_is_another_pod_while_the_old_one_is_in_flight(self, stage):
        # kubernetes#56682, #120622: the queue was keyed by name.
        stage.add(POD)
        old = stage.pop()
        again = POD.uid("second")
        stage.queue.delete(old.info.uid)
        stage.add(again)
        stage.refuse(old, "Fit")
        new = stage.pop()
        assert new.info.uid == "second"
        assert new.attempts == 1
        stage.queue.done("second")
        assert not any(stage.queue.counts())

    def test_the_deletion_of_the_old_pod_may_come_late(self, stage):
        # kubernetes#56682.
        stage.add(POD, POD.uid("second"))
        stage.queue.delete(POD.info().uid)
        assert [stage.pop().info.uid] == ["second"]
        assert stage.queue.pop(0) is None

    def test_a_nomination_dies_with_its_pod_even_during_an_attempt(self, stage):
        # kubernetes#102339, #85447: a deleted preemptor was nominated when its attempt ended.
        stage.add(POD)
        queued = stage.pop()
        stage.queue.delete(queued.info.uid)
        stage.refuse(queued, "Fit")
        assert not stage.queue.nominator.add(queued.info, "n1")
        assert stage.queue.nominator.nominated_pods_for_node("n1") == []

    def test_events_of_other_pods_in_flight_reach_all_of_them(self, stage):
        # kubernetes PR 120413.
        stage.add(POD, OTHER)
        attempts = [stage.pop(), stage.pop()]
        stage.queue.move_all(NODE_ADD, None, None)
        for queued in attempts:
            stage.refuse(queued, "Fit")
        assert {stage.state(POD), stage.state(OTHER)} == {QueueState.BACKOFF}

    def test_no_event_is_kept_when_nothing_is_in_flight(self, stage):
        # kubernetes#120622, PRs 126962 and 138324: entries that were never closed.
        stage.add(POD, OTHER, AT_DOOR.gate("wait"))
        first, second = stage.pop(), stage.pop()
        for _ in range(100):
            stage.queue.move_all(NODE_ADD, None, None)
        stage.queue.delete(first.info.uid)
        stage.fail(first)
        stage.queue.done(second.info.uid)
        assert len(stage.queue._pods.in_flight.events()) == 0
        assert stage.queue.counts().in_flight == 0

    def test_a_forgotten_pod_is_a_capacity_event(self, stage):
        # kubernetes#122444.
        stage.refused(POD, "Fit")
        assert stage.queue.move_all(ASSIGNED_POD_DELETE, OTHER.on("n1").build(), None) == 1

    @pytest.mark.parametrize("first", ["release", "refusal"])
    def test_a_pod_is_not_woken_by_its_own_release(self, stage, first):
        stage.add(POD)
        queued = stage.pop()
        if first == "refusal":
            stage.refuse(queued, "Fit")
        stage.queue.move_all(ASSIGNED_POD_DELETE, POD.on("n1").build(), None)
        if first == "release":
            stage.refuse(queued, "Fit")
        assert stage.state(POD) is QueueState.UNSCHEDULABLE

    def test_a_gated_pod_is_woken_although_it_was_refused_before(self, stage):
        # kubernetes#125223.
        stage.door_is_shut = False
        stage.refused(AT_DOOR, "Silent")
        stage.door_is_shut = True
        stage.queue.activate([AT_DOOR.info().uid])
        assert stage.state(AT_DOOR) is QueueState.GATED
        stage.door_is_shut = False
        stage.queue.move_all(NODE_ADD, None, None)
        assert stage.state(AT_DOOR) is not QueueState.GATED

    def test_a_storm_of_updates_leaves_nothing_behind(self, stage):
        # volcano#3597.
        stage.add(POD, OTHER)
        for index in range(5000):
            stage.queue.update(None, POD.priority(index % 2).label("n", str(index)).info())
        assert len(stage.queue._pods.active._heap) < 100


class TestNominations:
    def test_the_api_s_nomination_of_a_new_pod_counts(self, stage):
        stage.queue.add(version(POD, 1, nominated_node_name="n1"))
        assert stage.queue.nominator.node_of(POD.info().uid) == "n1"

    def test_one_that_the_api_clears_is_cleared(self, stage):
        stage.queue.add(version(POD, 1, nominated_node_name="n1"))
        stage.queue.update(None, version(POD, 2))
        assert len(stage.queue.nominator) == 0

    def test_one_that_was_made_here_lasts_through_a_failed_attempt(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.nominator.add(queued.info, "n1")
        stage.queue.update(POD.build(), POD.label("a", "b").info())
        stage.refuse(queued, "Fit")
        assert stage.queue.nominator.nominated_pods_for_node("n1") == [queued.info]

    def test_it_ends_when_the_pod_is_bound(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.nominator.add(queued.info, "n1")
        stage.queue.done(queued.info.uid)
        assert len(stage.queue.nominator) == 0

    def test_it_ends_when_the_pod_is_deleted(self, stage):
        stage.add(POD)
        stage.queue.nominator.add(POD.info(), "n1")
        stage.queue.delete(POD.info().uid)
        assert len(stage.queue.nominator) == 0
