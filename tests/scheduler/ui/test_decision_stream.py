from __future__ import annotations

import pytest

from scheduler.ui.decision_stream import OWN, Cursor, stream_page
from scheduler.ui.sources import DecisionRecord, Decisions


def answer(*numbers: int, leader: str = "berth-0", last: int | None = None) -> Decisions:
    records = tuple(DecisionRecord(seq=number) for number in numbers)
    return Decisions(
        last=(numbers or (0,))[-1] if last is None else last, decisions=records, leader=leader
    )


@pytest.mark.parametrize("cursor", [Cursor("berth-0", 12), Cursor(OWN, 1), Cursor("a.b-1", 0)])
def test_a_cursor_survives_its_text(cursor: Cursor) -> None:
    assert Cursor.of(str(cursor)) == cursor


@pytest.mark.parametrize("text", ["", ".", "7", ".7", "a.", "a.x", "a.²", "a.-1", "x" * 400 + ".1"])
def test_a_text_that_is_none_stands_for_the_start(text: str) -> None:
    assert Cursor.of(text) == Cursor()


@pytest.mark.parametrize(
    ("found", "follows"),
    [
        pytest.param(answer(6, 7), True, id="next"),
        pytest.param(answer(last=5), True, id="nothing new"),
        pytest.param(answer(last=2), False, id="the leader was started again"),
        pytest.param(answer(6, leader="berth-1"), False, id="another leader"),
        pytest.param(answer(6, leader=""), False, id="own lists"),
    ],
)
def test_whether_an_answer_goes_on(found: Decisions, follows: bool) -> None:
    assert Cursor("berth-0", 5).is_followed_by(found) is follows


@pytest.mark.parametrize(
    ("cursor", "numbers", "is_whole", "shown", "missed"),
    [
        pytest.param(Cursor(), (1, 2, 3), True, [3, 2, 1], 0, id="start"),
        pytest.param(Cursor("berth-0", 3), (4, 5), True, [5, 4], 0, id="next"),
        pytest.param(Cursor("berth-0", 3), (9,), True, [9], 5, id="dropped by the leader"),
        pytest.param(Cursor("berth-0", 3), (9,), False, [9], 0, id="of other namespaces"),
        pytest.param(Cursor("berth-0", 3), (4, 5, 6, 7, 8), True, [8, 7, 6], 2, id="too many"),
        pytest.param(Cursor("berth-0", 3), (5, 7, 9, 11), False, [11, 9, 7], 1, id="of them"),
        pytest.param(Cursor("berth-0", 3), (), True, [], 0, id="none"),
    ],
)
def test_the_newest_come_first_and_gaps_are_counted(
    cursor: Cursor, numbers: tuple[int, ...], is_whole: bool, shown: list[int], missed: int
) -> None:
    page = stream_page(cursor, answer(*numbers), 3, is_whole=is_whole)
    assert [each.seq for each in page["decisions"]] == shown
    assert page["missed"] == missed
    assert page["restart"] is not bool(cursor.after)
