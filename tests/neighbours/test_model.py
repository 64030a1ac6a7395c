"""The model of two schedulers with one cluster."""

from __future__ import annotations

import numpy as np
import pytest

from tests.neighbours.cluster import Cluster, Size
from tests.neighbours.model import (
    Choice,
    Model,
    Side,
    Strategy,
    Timing,
    emptiest,
    fullest,
    with_reserve,
    with_space,
)

SLOW = Timing(bind_s=0.1, flight_s=0.01, lag_s=0.01)
KUBE = Strategy(emptiest)


def play(second: Strategy, timing: Timing, seed: int = 1) -> list[Side]:
    return Model(Cluster(Size(nodes=32, pods=100), seed), [KUBE, second], timing, seed).run()


def rejected(second: Strategy, timing: Timing) -> int:
    return sum(play(second, timing, seed)[1].rejected for seed in range(1, 6))


def test_nobody_is_rejected_where_each_sees_all():
    sides = play(KUBE, Timing(bind_s=0.0, flight_s=0.0, lag_s=0.0))

    assert [side.rejected for side in sides] == [0, 0]


def test_all_pods_run_in_the_end():
    assert [side.left for side in play(KUBE, SLOW)] == [0, 0]


def test_guard_withholds_what_it_sees_and_has_fewer_rejected():
    assert rejected(KUBE, SLOW) > 2 * rejected(KUBE._replace(guard=True), SLOW) > 0
    assert play(KUBE._replace(guard=True), SLOW)[1].withheld > 0


def test_reserve_has_at_most_a_tenth_of_the_rejected_pods():
    reserve = Strategy(with_reserve(np.array([400, 1600 << 20, 1])), guard=True)
    assert rejected(KUBE, SLOW) >= 10 * rejected(reserve, SLOW)


def test_same_seed_gives_the_same_history():
    first, second = (
        [(side.rejected, side.withheld) for side in play(KUBE, SLOW)] for _ in range(2)
    )

    assert first == second


@pytest.mark.parametrize(
    ("candidates", "rows"),
    [
        pytest.param(emptiest, [1, 3], id="the highest scores"),
        pytest.param(fullest, [2], id="the lowest, of feasible nodes"),
        pytest.param(with_space(1, fullest, np.array([10])), [1], id="the emptiest with space"),
        pytest.param(with_space(9, fullest, np.array([10])), [2], id="nobody has the space"),
        pytest.param(with_reserve(np.array([2])), [1], id="the emptiest with space for four"),
        pytest.param(
            with_reserve(np.array([5])), [1], id="space for two where none has it for four"
        ),
        pytest.param(with_reserve(np.array([99])), [1, 3], id="no space, and no score so low"),
    ],
)
def test_candidates(candidates, rows):
    choice = Choice(np.array([-1, 80, 20, 80]), np.array([[90], [15], [10], [5]]))

    assert np.flatnonzero(candidates(choice)).tolist() == rows
