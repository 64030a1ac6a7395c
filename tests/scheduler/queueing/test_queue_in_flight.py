from __future__ import annotations

import pytest

from plugins.framework.cluster_events import (
    NODE_ADD,
)
from scheduler.queueing import QueueState
from tests.builders import pod
from tests.scheduler.queueing.stage import (
    NODE_TAINT,
    Stage,
    version,
)

POD = pod("p")
OTHER = pod("other")


@pytest.fixture
def stage() -> Stage:
    return Stage()


class TestInFlight:
    """Events and updates that arrive while a pod is being tried."""

    def test_an_event_during_the_attempt_is_not_lost(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.move_all(NODE_ADD, None, None)
        stage.refuse(queued, "Fit")
        assert stage.state(POD) is QueueState.BACKOFF

    @pytest.mark.parametrize(
        "refused_by",
        [pytest.param(["Taints"], id="of use"), pytest.param(["Silent"], id="of none")],
    )
    def test_it_counts_only_for_whom_it_may_help(self, stage, refused_by):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.move_all(NODE_TAINT, None, None)
        stage.refuse(queued, *refused_by)
        expected = QueueState.BACKOFF if refused_by == ["Taints"] else QueueState.UNSCHEDULABLE
        assert stage.state(POD) is expected

    def test_an_event_before_the_attempt_does_not_count(self, stage):
        stage.add(OTHER, POD)
        older = stage.pop()
        stage.queue.move_all(NODE_ADD, None, None)
        younger = stage.pop()
        stage.refuse(younger, "Fit")
        stage.refuse(older, "Fit")
        assert stage.state(POD) is QueueState.UNSCHEDULABLE
        assert stage.state(OTHER) is QueueState.BACKOFF

    def test_what_a_pending_plugin_waited_for_counts_more_than_others(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.move_all(NODE_ADD, None, None)
        stage.queue.move_all(NODE_TAINT, None, None)
        stage.refuse(queued, "Taints", pending=("Fit",))
        assert stage.state(POD) is QueueState.ACTIVE

    def test_an_activation_during_the_attempt_is_not_lost(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.activate([queued.info.uid])
        stage.refuse(queued, "Silent")
        assert stage.state(POD) is QueueState.BACKOFF

    def test_an_update_that_may_help_is_not_lost(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.update(POD, POD.toleration("t"))
        stage.refuse(queued, "Taints")
        assert stage.state(POD) is QueueState.BACKOFF

    def test_an_update_and_its_reversal_are_no_reason_to_try_again(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.update(POD, POD.toleration("t"))
        stage.update(POD.toleration("t"), POD)
        stage.refuse(queued, "Taints")
        assert stage.state(POD) is QueueState.UNSCHEDULABLE

    def test_the_next_attempt_is_made_with_the_latest_version(self, stage):
        stage.add(POD)
        queued = stage.pop()
        new = POD.label("app", "web").info()
        stage.queue.update(POD.build(), new)
        stage.fail(queued)
        stage.queue.activate([new.uid])
        assert stage.pop().info is new

    def test_a_version_that_the_caller_looked_up_is_kept_if_it_is_newer(self, stage):
        stage.queue.add(version(POD, 1))
        queued = stage.pop()
        stage.queue.update(None, version(POD, 2))
        queued.info = version(POD.toleration("t"), 3)
        stage.refuse(queued, "Taints")
        assert stage.state(POD) is QueueState.BACKOFF
        assert queued.info.pod.metadata.resource_version == "3"

    def test_a_version_that_the_caller_looked_up_is_dropped_if_it_is_older(self, stage):
        stage.queue.add(version(POD, 1))
        queued = stage.pop()
        stage.queue.update(None, version(POD, 3))
        queued.info = version(POD, 2)
        stage.refuse(queued, "Fit")
        assert queued.info.pod.metadata.resource_version == "3"

    def test_an_update_does_not_put_the_pod_into_a_room(self, stage):
        stage.add(POD)
        stage.pop()
        stage.update(POD, POD.label("app", "web"))
        stage.queue.add(POD.info())
        assert stage.queue.counts() == (0, 0, 0, 0, 1)

    def test_a_pod_deleted_during_its_attempt_ends_nowhere(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.delete(queued.info.uid)
        stage.refuse(queued, "Fit")
        assert not any(stage.queue.counts())

    def test_a_pod_that_is_told_of_after_its_deletion_is_back(self, stage):
        stage.add(POD)
        queued = stage.pop()
        stage.queue.delete(queued.info.uid)
        stage.add(POD)
        stage.refuse(queued, "Fit")
        assert stage.state(POD) is QueueState.UNSCHEDULABLE

    def test_an_attempt_that_lost_events_is_made_again(self):
        stage = Stage(max_in_flight_events=10)
        stage.add(POD)
        queued = stage.pop()
        for _ in range(11):
            stage.queue.move_all(NODE_TAINT, None, None)
        stage.refuse(queued, "Fit")
        assert stage.state(POD) is QueueState.BACKOFF
