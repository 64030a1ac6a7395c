from __future__ import annotations

from itertools import product
from textwrap import indent

import pytest

from scheduler.queueing import queue_states as states
from scheduler.queueing.queue_states import IllegalMoveError, QueueState, check_move
from tests.text_tables import aligned

LEGAL = {
    QueueState.NOWHERE: {
        QueueState.ACTIVE,
        QueueState.BACKOFF,
        QueueState.GATED,
        QueueState.GROUPED,
    },
    QueueState.ACTIVE: {
        QueueState.BACKOFF,
        QueueState.GATED,
        QueueState.GROUPED,
        QueueState.IN_FLIGHT,
        QueueState.NOWHERE,
    },
    QueueState.BACKOFF: {
        QueueState.ACTIVE,
        QueueState.GATED,
        QueueState.GROUPED,
        QueueState.IN_FLIGHT,
        QueueState.NOWHERE,
    },
    QueueState.UNSCHEDULABLE: {
        QueueState.ACTIVE,
        QueueState.BACKOFF,
        QueueState.GATED,
        QueueState.GROUPED,
        QueueState.NOWHERE,
    },
    QueueState.GATED: {
        QueueState.ACTIVE,
        QueueState.BACKOFF,
        QueueState.GROUPED,
        QueueState.NOWHERE,
    },
    QueueState.GROUPED: {
        QueueState.ACTIVE,
        QueueState.BACKOFF,
        QueueState.UNSCHEDULABLE,
        QueueState.GATED,
        QueueState.IN_FLIGHT,
        QueueState.NOWHERE,
    },
    QueueState.IN_FLIGHT: {
        QueueState.GROUPED,
        QueueState.ACTIVE,
        QueueState.BACKOFF,
        QueueState.UNSCHEDULABLE,
        QueueState.GATED,
        QueueState.NOWHERE,
    },
}
MOVES = [pair for pair in product(QueueState, QueueState) if pair[1] in LEGAL[pair[0]]]
OTHERS = [pair for pair in product(QueueState, QueueState) if pair not in MOVES]


def ids(pairs: list[tuple[QueueState, QueueState]]) -> list[str]:
    return [f"{origin.value} to {target.value}" for origin, target in pairs]


def render() -> str:
    """The table of moves as text."""
    targets = [state for state in QueueState if state is not QueueState.NOWHERE]
    targets.append(QueueState.NOWHERE)
    rows = [["from", *(state.value for state in targets)]]
    for origin in QueueState:
        causes = (states._MOVES.get((origin, target), ".") for target in targets)
        rows.append([origin.value, *causes])
    return aligned(rows)


def test_the_drawing_in_the_docstring_is_the_table():
    assert states.__doc__ is not None
    assert f"\n\n{indent(render(), '    ')}\n\n" in states.__doc__


@pytest.mark.parametrize(("origin", "target"), MOVES, ids=ids(MOVES))
def test_a_move_has_a_cause_that_the_docstring_explains(origin, target):
    assert f"\n    {check_move(origin, target)} " in str(states.__doc__)


@pytest.mark.parametrize(("origin", "target"), OTHERS, ids=ids(OTHERS))
def test_what_is_no_move_is_refused(origin, target):
    with pytest.raises(IllegalMoveError, match=f"from {origin.value} to {target.value}"):
        check_move(origin, target)
