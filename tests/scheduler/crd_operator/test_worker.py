"""One thing after another, on one thread."""

from __future__ import annotations

import threading

from scheduler.crd_operator.worker import Worker


def test_calls_come_in_their_order_and_one_that_fails_costs_no_other() -> None:
    worker, done = Worker("test"), []
    worker.start()
    worker.submit(lambda: done.append(threading.current_thread().name))
    worker.submit(lambda: 1 / 0)
    worker.submit(lambda: done.append("after"))
    assert worker.stop(30)
    assert done == ["test", "after"]


def test_one_that_never_ends_does_not_hold_up_the_end() -> None:
    worker, end = Worker("test"), threading.Event()
    worker.start()
    worker.submit(end.wait)
    assert not worker.stop(0)
    end.set()
    assert worker.stop(30)


def test_one_that_was_never_started_has_ended() -> None:
    assert Worker("test").stop(0)
