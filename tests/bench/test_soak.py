from __future__ import annotations

from tests.bench.results import today
from tests.bench.soak import Sample, Soak, grown


def soaked(**bounded: bool) -> Soak:
    """Return an hour in which a table has grown by a hundred items a minute."""
    soak = Soak(today("now"), 12.0, 60.0)
    for minute in range(1, 61):
        tables = {"steady": 500, "growing": 100 * minute}
        held = {"growing": 100 * minute} if bounded.get("growing") else {}
        soak.samples.append(
            Sample(float(minute), f"{minute} min", 100.0, 1.0, 1, 1, tables, 1, held)
        )
    return soak


def test_a_table_that_grows_is_named():
    assert list(grown(soaked())) == ["growing"]


def test_a_memory_with_a_limit_is_filled_once_and_not_named():
    assert grown(soaked(growing=True)) == {}
