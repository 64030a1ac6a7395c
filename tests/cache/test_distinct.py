from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cache.distinct import distinct, distinct_with_inverse

_ARRAYS = arrays(np.int64, st.integers(0, 40), elements=st.integers(-(2**62), 2**62) | st.just(7))


@given(_ARRAYS)
def test_they_are_those_of_numpy(values: np.ndarray) -> None:
    codes, which = np.unique(values, return_inverse=True)
    assert distinct(values).tolist() == codes.tolist()
    own_codes, own_which = distinct_with_inverse(values)
    assert own_codes.tolist() == codes.tolist()
    assert own_which.tolist() == which.tolist()


@pytest.mark.parametrize("function", ["distinct", "distinct_with_inverse"])
def test_nothing_is_imported_by_the_first_call(function: str) -> None:
    program = (
        "import sys, numpy as np, cache.distinct as d\n"
        "before = set(sys.modules)\n"
        f"d.{function}(np.array([3, 1, 3]))\n"
        "assert set(sys.modules) == before, set(sys.modules) - before\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
