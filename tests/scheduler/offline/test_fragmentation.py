"""What is free and cannot be used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.offline.fragmentation import fragmentation


def column(*amounts: int) -> np.ndarray:
    return np.array(amounts, dtype=np.int64)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        pytest.param([({"cpu": 1000}, 1)], [0, 0], id="what fits uses all"),
        pytest.param([({"cpu": 3000}, 1)], [2000, 0], id="what does not fit uses nothing"),
        pytest.param([({"cpu": 3000}, 1), ({"cpu": 1000}, 3)], [500, 0], id="by their number"),
        pytest.param([({"gpu": 1}, 5)], [0, 0], id="who does not ask does not count"),
        pytest.param([({"cpu": 1000, "gpu": 1}, 1)], [2000, 4000], id="another resource lacks"),
        pytest.param([], [0, 0], id="no requests"),
    ],
)
def test_what_the_usual_requests_cannot_use_is_fragmented(
    shapes: list[tuple[dict[str, int], int]], expected: list[int]
) -> None:
    free = {"cpu": column(2000, 4000), "pods": column(10, 10)}
    assert fragmentation(free, shapes)["cpu"].tolist() == expected


def test_a_node_without_room_for_another_pod_is_fragmented() -> None:
    free = {"cpu": column(2000), "pods": column(0)}
    assert fragmentation(free, [({"cpu": 1000}, 1)])["cpu"].tolist() == [2000]


@given(
    st.lists(st.integers(0, 10**15), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(1, 10**15), st.integers(1, 1000)), max_size=5),
)
def test_no_more_is_fragmented_than_is_free(
    amounts: list[int], wishes: list[tuple[int, int]]
) -> None:
    free = {"cpu": column(*amounts), "pods": column(*[1 for _ in amounts])}
    found = fragmentation(free, [({"cpu": amount}, count) for amount, count in wishes])["cpu"]
    assert (found >= 0).all()
    assert (found <= free["cpu"] * (1 + 1e-9)).all()
