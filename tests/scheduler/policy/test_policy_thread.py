from __future__ import annotations

import threading

from scheduler.policy import policy_thread
from scheduler.policy.policy_thread import PolicyThread

PATIENCE_S = 60.0


def nothing() -> None:
    return


def test_jobs_are_done_in_their_order():
    thread = PolicyThread(nothing)
    done: list[int] = []
    over = threading.Event()
    for number in range(5):
        thread.do(lambda number=number: done.append(number))
    thread.do(over.set)
    thread.start()
    assert over.wait(PATIENCE_S)
    thread.stop(PATIENCE_S)
    assert done == [0, 1, 2, 3, 4]


def test_a_job_that_fails_costs_no_other():
    thread = PolicyThread(nothing)
    over = threading.Event()

    def fail() -> None:
        raise RuntimeError("a mistake")

    thread.do(fail)
    thread.do(over.set)
    thread.start()
    assert over.wait(PATIENCE_S)
    thread.stop(PATIENCE_S)


def test_it_looks_without_being_asked(monkeypatch):
    monkeypatch.setattr(policy_thread, "LOOK_EVERY_S", 0.01)
    looked = threading.Event()
    thread = PolicyThread(looked.set)
    thread.start()
    assert looked.wait(PATIENCE_S)
    thread.stop(PATIENCE_S)


def test_one_that_was_never_started_can_be_stopped():
    PolicyThread(nothing).stop(PATIENCE_S)
