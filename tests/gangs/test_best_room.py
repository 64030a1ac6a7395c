from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gangs.best_room import best_used_milli, decreasing, that_fit, used_milli
from tests.gangs.gangs import Gang, nodes_for, random_gangs

SIZES = st.builds(
    Gang, st.just("g"), st.integers(1, 6), st.sampled_from([500, 1_000, 2_000, 3_000])
)


def placed_one_by_one(gangs: list[Gang], order: tuple[int, ...], nodes: int, size: int) -> int:
    free = [size] * nodes
    for index in order:
        gang, trial = gangs[index], list(free)
        for _ in range(gang.members):
            at = next((n for n, room in enumerate(trial) if room >= gang.milli), None)
            if at is None:
                break
            trial[at] -= gang.milli
        else:
            free = trial
    return nodes * size - sum(free)


@given(st.lists(SIZES, min_size=1, max_size=4), st.integers(1, 4), st.integers(1, 6))
def test_counting_gives_what_placing_pod_by_pod_gives(gangs, nodes, cpus):
    orders = list(itertools.permutations(range(len(gangs))))
    expected = [placed_one_by_one(gangs, order, nodes, 1_000 * cpus) for order in orders]
    assert used_milli(gangs, np.array(orders), nodes, 1_000 * cpus).tolist() == expected


def test_the_best_is_the_best_of_all_orders_that_were_tried():
    # Three nodes of 32 CPUs: the order by falling size leaves a sixth of the room.
    gangs = [Gang("a", 20, 4_000), Gang("b", 12, 4_000), Gang("c", 12, 4_000)]
    assert used_milli(gangs, np.array([decreasing(gangs)]), 3).tolist() == [80_000]
    assert best_used_milli(gangs, 3, orders=20, seed=1) == 96_000


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        pytest.param([2_000, 1_900], ["small"], id="pieces too small for the large one"),
        pytest.param([2_000, 2_000], ["small", "large"], id="both"),
        pytest.param([900, 900], [], id="none"),
    ],
)
def test_a_gang_fits_when_all_of_its_members_do(free, expected):
    gangs = [Gang("small", 2, 1_000), Gang("large", 2, 2_000)]
    assert [gang.name for gang in that_fit(gangs, free)] == expected


def test_nodes_have_room_for_half_of_the_gangs():
    gangs = random_gangs(1, 200, 3, 50)
    assert nodes_for(gangs, 0.5) == round(sum(g.members * g.milli for g in gangs) / 64_000)
