"""Writers that are killed, in the small: ``make journal`` kills fifty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.journal_hours.kills import kill_writers

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_killed_writer_left_comes_out_equal(tmp_path: Path) -> None:
    killed = list(kill_writers(1, 1, tmp_path))
    assert [each.different for each in killed] == [0]
    assert all(each.equal for each in killed)
