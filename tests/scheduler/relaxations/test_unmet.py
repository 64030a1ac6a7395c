from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.relaxations.amounts import smallest
from scheduler.relaxations.unmet import MOST, Unmet, near_of

_NODES = 5
_MASKS = st.lists(st.lists(st.booleans(), min_size=_NODES, max_size=_NODES), max_size=8)


@given(masks=_MASKS)
def test_near_requirements_are_those_of_nodes_that_miss_at_most_two(
    masks: list[list[bool]],
) -> None:
    near = near_of(((at, np.array(mask)) for at, mask in enumerate(masks)), _NODES, 100)
    wanted = set()
    for node in range(_NODES):
        missed = [at for at, mask in enumerate(masks) if not mask[node]]
        if len(missed) <= MOST:
            wanted.update(missed)
    assert set(near) == wanted


def test_the_count_ends_when_every_node_misses_more_than_two() -> None:
    unmet: Unmet[int] = Unmet(_NODES)
    nowhere = np.zeros(_NODES, dtype=np.bool_)
    assert [unmet.add(at, nowhere) for at in range(3)] == [True, True, False]


def test_requirements_that_are_alone_come_first() -> None:
    masks = [np.array([False, True, False]), np.array([False, False, True])]
    masks.append(np.array([True, False, True]))
    assert near_of(enumerate(masks), 3, 1) == [0]


@given(wanted=st.integers(1, 1000), most=st.integers(1, 1000))
def test_the_smallest_number_that_is_enough_is_found(wanted: int, most: int) -> None:
    wanted = min(wanted, most)
    assert smallest(most, lambda number: number >= wanted) == wanted
