from __future__ import annotations

import os

import pytest

from scheduler.ui import forked
from scheduler.ui.forked import ForkedError, answer_of, start_forked


def wait_for_ever() -> bytes:
    reader, _ = os.pipe()
    return os.read(reader, 1)


def test_the_answer_comes_back_whole() -> None:
    assert answer_of(start_forked(lambda: b"x" * 1_000_000), 60.0) == b"x" * 1_000_000


def test_what_it_changes_is_its_own() -> None:
    kept: list[int] = []

    def change() -> bytes:
        kept.append(1)
        return str(len(kept)).encode()

    assert answer_of(start_forked(change), 60.0) == b"1"
    assert kept == []


def test_a_process_without_an_answer_is_ended() -> None:
    process = start_forked(wait_for_ever)
    with pytest.raises(ForkedError, match="no answer within 0 s"):
        answer_of(process, 0.0)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_process_that_fails_is_told_apart_from_an_answer() -> None:
    def fail() -> bytes:
        raise SystemExit(3)

    with pytest.raises(ForkedError, match="has failed"):
        answer_of(start_forked(fail), 60.0)


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "MAX_ANSWER_BYTES", 1_000)
    with pytest.raises(ForkedError, match="larger than 1000 bytes"):
        answer_of(start_forked(lambda: b"x" * 10_000), 60.0)
