"""Row 47: a gang is placed exactly where an exhaustive search places it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gangs.placements import Tally, compare
from tests.scheduler.pod_groups.groups import default_framework


@pytest.fixture(scope="module")
def framework():
    return default_framework()


@settings(max_examples=100)
@given(seed=st.integers(min_value=0, max_value=1 << 40))
def test_row_47_a_gang_is_placed_where_an_exhaustive_search_places_it(framework, seed):
    tally = Tally()
    compare(seed, framework, tally)
    assert tally.differences == []
