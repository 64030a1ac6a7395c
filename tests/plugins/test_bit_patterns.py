from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.bit_patterns import distinct_patterns


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=9)
    )
)
def test_every_column_is_one_of_the_patterns(table: list[list[bool]]) -> None:
    flags = np.array(table)
    patterns, which = distinct_patterns(flags)
    assert [patterns[index].tolist() for index in which] == flags.T.tolist()


@pytest.mark.parametrize(
    "n_flags",
    [pytest.param(62, id="as many as fit one integer"), pytest.param(70, id="more than fit")],
)
def test_each_pattern_is_given_once(n_flags: int) -> None:
    flags = np.zeros((n_flags, 6), dtype=np.bool_)
    flags[n_flags - 1, 1::2] = True
    patterns, which = distinct_patterns(flags)
    assert patterns.shape == (2, n_flags)
    assert [patterns[index].tolist() for index in which] == flags.T.tolist()
