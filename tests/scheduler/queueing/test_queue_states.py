from __future__ import annotations

from itertools import product
from textwrap import indent

import pytest

from scheduler.queueing import queue_states as rooms
from scheduler.queueing.queue_states import IllegalMoveError, Room, check_move, render

LEGAL = {
    Room.NOWHERE: {Room.ACTIVE, Room.GATED},
    Room.ACTIVE: {Room.BACKOFF, Room.GATED, Room.IN_FLIGHT, Room.NOWHERE},
    Room.BACKOFF: {Room.ACTIVE, Room.GATED, Room.IN_FLIGHT, Room.NOWHERE},
    Room.UNSCHEDULABLE: {Room.ACTIVE, Room.BACKOFF, Room.GATED, Room.NOWHERE},
    Room.GATED: {Room.ACTIVE, Room.BACKOFF, Room.NOWHERE},
    Room.IN_FLIGHT: {Room.ACTIVE, Room.BACKOFF, Room.UNSCHEDULABLE, Room.GATED, Room.NOWHERE},
}
MOVES = [pair for pair in product(Room, Room) if pair[1] in LEGAL[pair[0]]]
OTHERS = [pair for pair in product(Room, Room) if pair not in MOVES]


def ids(pairs: list[tuple[Room, Room]]) -> list[str]:
    return [f"{origin.value} to {target.value}" for origin, target in pairs]


def test_the_drawing_in_the_docstring_is_the_table():
    assert rooms.__doc__ is not None
    assert f"\n\n{indent(render(), '    ')}\n\n" in rooms.__doc__


@pytest.mark.parametrize(("origin", "target"), MOVES, ids=ids(MOVES))
def test_a_move_has_a_cause_that_the_docstring_explains(origin, target):
    assert f"\n    {check_move(origin, target)} " in str(rooms.__doc__)


@pytest.mark.parametrize(("origin", "target"), OTHERS, ids=ids(OTHERS))
def test_what_is_no_move_is_refused(origin, target):
    with pytest.raises(IllegalMoveError, match=f"from {origin.value} to {target.value}"):
        check_move(origin, target)
