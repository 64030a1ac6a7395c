from __future__ import annotations

import pytest

from plugins.framework.cluster_events import (
    ALL_EVENTS,
    ASSIGNED_POD_ADD,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Resource,
    update_events,
)

EVERY_UPDATE = ClusterEvent(Resource.POD, Action.UPDATE)
SOME_UPDATES = ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL)
ANY_NEW_THING = ClusterEvent(Resource.WILDCARD, Action.ADD)
(LABEL,) = update_events(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL)
(OTHER,) = update_events(Resource.UNSCHEDULED_POD, Action.UPDATE_OTHER)


@pytest.mark.parametrize(
    ("registered", "happened", "covered"),
    [
        pytest.param(SOME_UPDATES, LABEL, True, id="one of its actions"),
        pytest.param(SOME_UPDATES, ASSIGNED_POD_ADD, True, id="pods are of two kinds"),
        pytest.param(SOME_UPDATES, NODE_ADD, False, id="another resource"),
        pytest.param(SOME_UPDATES, OTHER, False, id="an update without a name"),
        pytest.param(EVERY_UPDATE, OTHER, True, id="every update is wanted"),
        pytest.param(SOME_UPDATES, EVERY_UPDATE, False, id="any update at all is more than some"),
        pytest.param(ANY_NEW_THING, NODE_ADD, True, id="any resource"),
        pytest.param(ANY_NEW_THING, LABEL, False, id="any resource, another action"),
        pytest.param(ANY_NEW_THING, UNSCHEDULABLE_TIMEOUT, False, id="the time limit"),
        pytest.param(ALL_EVENTS, UNSCHEDULABLE_TIMEOUT, True, id="the time limit, all wanted"),
        pytest.param(ALL_EVENTS, OTHER, True, id="all wanted"),
        pytest.param(
            SOME_UPDATES, ClusterEvent(Resource.POD, Action(0)), False, id="nothing happened"
        ),
    ],
)
def test_what_a_registration_covers(
    registered: ClusterEvent, happened: ClusterEvent, covered: bool
) -> None:
    assert registered.matches(happened) is covered


def test_an_update_is_an_event_for_each_thing_that_changed() -> None:
    changed = Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_LABEL
    assert [event.label for event in update_events(Resource.NODE, changed)] == [
        "NodeUpdateNodeLabel",
        "NodeUpdateNodeTaint",
    ]


def test_an_update_of_nothing_is_no_event() -> None:
    assert update_events(Resource.NODE, Action(0)) == ()
