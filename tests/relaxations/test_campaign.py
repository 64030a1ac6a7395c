from __future__ import annotations

import pytest

from tests.relaxations.checking import Tally, check_case


@pytest.mark.parametrize("index", range(3))
def test_relaxations_are_true_and_single_ones_minimal(index: int) -> None:
    tally = Tally()
    assert list(check_case("test", index, tally)) == []
    assert tally.helped
