from __future__ import annotations

import threading

from scheduler.profiles import live_profiles
from scheduler.profiles.live_profiles import ReloadThread
from tests.fakes.ports import FakeExecutor

PATIENCE_S = 60.0


def nothing() -> None:
    return


def test_jobs_are_done_in_their_order():
    thread = ReloadThread(nothing, FakeExecutor())
    done: list[int] = []
    over = threading.Event()
    for number in range(5):
        thread.do(lambda number=number: done.append(number))
    names: list[str] = []
    thread.do(lambda: names.append(threading.current_thread().name))
    thread.do(over.set)
    thread.start()
    assert over.wait(PATIENCE_S)
    thread.stop(PATIENCE_S)
    assert done == [0, 1, 2, 3, 4]
    assert names == ["policies"]


def test_what_was_asked_for_before_the_end_is_done():
    thread = ReloadThread(nothing, FakeExecutor())
    done: list[int] = []
    thread.do(lambda: done.append(1))
    thread.do(lambda: done.append(2))
    thread.start()
    thread.stop(PATIENCE_S)
    assert done == [1, 2]


def test_a_job_that_never_ends_does_not_hold_up_the_end():
    thread = ReloadThread(nothing, FakeExecutor())
    end, ended = threading.Event(), threading.Event()
    thread.do(lambda: end.wait() and ended.set())
    thread.start()
    thread.stop(0)
    assert not ended.is_set()
    end.set()
    assert ended.wait(PATIENCE_S)


def test_a_job_that_fails_costs_no_other():
    thread = ReloadThread(nothing, FakeExecutor())
    over = threading.Event()

    def fail() -> None:
        raise RuntimeError("a mistake")

    thread.do(fail)
    thread.do(over.set)
    thread.start()
    assert over.wait(PATIENCE_S)
    thread.stop(PATIENCE_S)


def test_it_looks_without_being_asked(monkeypatch):
    monkeypatch.setattr(live_profiles, "LOOK_EVERY_S", 0.01)
    looked = threading.Event()
    thread = ReloadThread(looked.set, FakeExecutor())
    thread.start()
    assert looked.wait(PATIENCE_S)
    thread.stop(PATIENCE_S)


def test_one_that_was_never_started_can_be_stopped():
    ReloadThread(nothing, FakeExecutor()).stop(PATIENCE_S)
