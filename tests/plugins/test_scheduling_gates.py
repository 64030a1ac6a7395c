from __future__ import annotations

import pytest

from plugins.framework.cluster_events import Action, ClusterEvent, Hint, Resource
from plugins.framework.status import SUCCESS, Status, unresolvable
from plugins.scheduling_gates import SchedulingGates
from tests.builders import PodBuilder, pod
from tests.plugins.conformance import RecordingHandle


@pytest.fixture
def plugin() -> SchedulingGates:
    return SchedulingGates(None, RecordingHandle())


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(pod(), SUCCESS, id="no gates"),
        pytest.param(
            pod().gate("foo"), unresolvable("waiting for scheduling gates: [foo]"), id="one gate"
        ),
        pytest.param(
            pod().gate("foo", "example.com/bar"),
            unresolvable("waiting for scheduling gates: [foo example.com/bar]"),
            id="gates are named in the pod's order",
        ),
    ],
)
def test_a_pod_waits_for_its_gates(
    plugin: SchedulingGates, asked: PodBuilder, expected: Status
) -> None:
    assert plugin.pre_enqueue(asked.build()) == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(pod("p"), Hint.QUEUE, id="its own"),
        pytest.param(pod("q"), Hint.SKIP, id="another's"),
    ],
)
def test_only_its_own_gates_matter(
    plugin: SchedulingGates, changed: PodBuilder, expected: Hint
) -> None:
    (registered,) = plugin.events_to_register()
    assert registered.hint is not None
    assert registered.hint(pod("p").build(), None, changed.build()) is expected


def test_the_removal_of_gates_is_the_only_event(plugin: SchedulingGates) -> None:
    events = [registered.event for registered in plugin.events_to_register()]
    assert events == [ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)]
