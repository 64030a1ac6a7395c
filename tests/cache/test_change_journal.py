from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cache import change_journal
from cache.change_journal import ChangeJournal

if TYPE_CHECKING:
    import pytest


@given(keys=st.lists(st.sampled_from("abc"), max_size=30), since=st.integers(0, 30))
def test_what_has_changed_since_is_what_was_noted_since(keys: list[str], since: int) -> None:
    journal: ChangeJournal[str] = ChangeJournal()
    for key in keys:
        journal.record(key)
    since = min(since, len(keys))
    assert journal.since(since) == frozenset(keys[since:])


def test_what_is_too_long_ago_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_journal, "MAX_CHANGES", 2)
    journal: ChangeJournal[str] = ChangeJournal()
    for key in "abc":
        journal.record(key)
    assert journal.since(0) is None
    assert journal.since(1) == frozenset("bc")
