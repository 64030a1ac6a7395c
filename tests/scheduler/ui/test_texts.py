from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.ui.amounts import amount, count, percent
from scheduler.ui.charts import STEPS, line_of, map_of
from scheduler.ui.condition_decisions import decisions_after
from scheduler.ui.paging import PER_PAGE, page_of
from scheduler.ui.sources import DecisionRecord
from scheduler.ui.times import seconds_of, span

SPACE = "\N{NARROW NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (span(0), "0s"),
        (span(59.9), "59s"),
        (span(200), "3m 20s"),
        (span(7200), "2h"),
        (span(90_000), "1d 1h"),
        (count(20_000), f"20{SPACE}000"),
        (percent(0.001), f"<{SPACE}1{SPACE}%"),
        (percent(0.5), f"50{SPACE}%"),
        (amount(1500, "cpu"), "1.5"),
        (amount(250, "cpu"), "0.25"),
        (amount(4000, "cpu"), "4"),
        (amount(3 * 2**30, "memory"), f"3{SPACE}Gi"),
        (amount(1536, "memory"), f"1.5{SPACE}Ki"),
        (amount(8, "nvidia.com/gpu"), "8"),
    ],
)
def test_numbers_are_for_people(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1970-01-01T00:00:10Z", 10.0), ("1970-01-01T00:00:10", 10.0), ("soon", 0.0), (None, 0.0)],
)
def test_times_are_seconds(text: str | None, expected: float) -> None:
    assert seconds_of(text) == expected


@given(st.lists(st.floats(0, 1), max_size=300), st.integers(1, 60))
def test_a_map_has_a_cell_for_each_share(shares: list[float], columns: int) -> None:
    found = map_of(np.array(shares, dtype=np.float64), columns)
    assert sum(shade.path.count("M") for shade in found.shades) == len(shares)
    assert all(0 <= shade.step <= STEPS + 1 for shade in found.shades)


def test_a_line_goes_from_left_to_right() -> None:
    assert line_of([0, 1, 2], 10, 20) == "M0.0 20.0L5.0 10.0L10.0 0.0"


@given(st.integers(0, 1000), st.text(max_size=5))
def test_any_page_number_leads_to_a_page(rows: int, number: str) -> None:
    page = page_of(range(rows), number)
    assert 1 <= page.number <= page.pages
    assert len(page.rows) <= PER_PAGE


def test_pages_together_have_every_row_once() -> None:
    rows = [row for number in "123" for row in page_of(range(250), number).rows]
    assert rows == list(range(250))


@pytest.mark.parametrize(
    ("after", "limit", "expected"),
    [
        pytest.param(0, 2, [6, 7], id="the newest at first"),
        pytest.param(3, 2, [4, 5], id="then the next ones"),
        pytest.param(7, 2, [], id="nothing new"),
        pytest.param(1, 9, [3, 4, 5, 6, 7], id="some are gone"),
        pytest.param(99, 9, [], id="of another run"),
    ],
)
def test_the_stream_goes_on_where_it_was(after: int, limit: int, expected: list[int]) -> None:
    records = tuple(DecisionRecord(seq=seq) for seq in range(3, 8))
    found = decisions_after(records, after, limit)
    assert [record.seq for record in found.decisions] == expected
    assert found.last == (expected[-1] if expected else after)
