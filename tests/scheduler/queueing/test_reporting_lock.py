from __future__ import annotations

import structlog.testing

from plugins.framework.cluster_events import NODE_ADD
from scheduler.queueing.reporting_lock import ReportingLock
from tests.builders import pod


def test_incoming_pods_are_told_of_once_the_lock_is_free():
    told = []
    lock = ReportingLock(lambda *what: told.append((*what, lock.lock.locked())))
    with lock:
        lock.report_incoming("active", "NodeAdd")
        assert told == []
    assert told == [("active", "NodeAdd", False)]


def test_each_note_is_told_once():
    told = []
    lock = ReportingLock(lambda *what: told.append(what))
    with lock:
        lock.report_incoming("active", "NodeAdd")
    with lock:
        pass
    assert len(told) == 1


def test_all_failures_of_a_hint_make_one_line():
    lock = ReportingLock(None)
    with structlog.testing.capture_logs() as lines, lock:
        for name in ("a", "b"):
            lock.report_failed_hint("Fit", NODE_ADD, pod(name).build(), ValueError("oh"))
    [line] = lines
    assert (line["plugin"], line["pod"], line["pods"]) == ("Fit", "default/a", 2)
