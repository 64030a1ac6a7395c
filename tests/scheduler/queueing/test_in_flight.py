from __future__ import annotations

from plugins.framework.cluster_events import NODE_ADD, NODE_DELETE
from scheduler.queueing.in_flight import InFlight
from scheduler.queueing.queue_event import Happening
from scheduler.queueing.queued_pod import QueuedPod
from tests.builders import pod


def start(in_flight: InFlight, name: str) -> str:
    queued = QueuedPod(pod(name).info(), 0.0, 0, ())
    in_flight.start(queued)
    return queued.info.uid


def seen(in_flight: InFlight, uid: str) -> list[object]:
    return [happening.new for happening in in_flight.events_of(in_flight.get(uid))]


def test_an_attempt_sees_what_happened_since_it_started():
    in_flight = InFlight()
    one = start(in_flight, "one")
    in_flight.record(Happening(NODE_ADD, None, "a"))
    two = start(in_flight, "two")
    in_flight.record(Happening(NODE_DELETE, None, "b"))
    assert seen(in_flight, one) == ["b", "a"]
    assert seen(in_flight, two) == ["b"]


def test_nothing_is_kept_while_nothing_is_in_flight():
    in_flight = InFlight()
    in_flight.record(Happening(NODE_ADD, None, "a"))
    assert len(in_flight.events()) == 0


def test_events_are_dropped_once_no_older_attempt_needs_them():
    in_flight = InFlight()
    one = start(in_flight, "one")
    for _ in range(5):
        in_flight.record(Happening(NODE_ADD, None, "early"))
    two = start(in_flight, "two")
    in_flight.record(Happening(NODE_ADD, None, "late"))
    in_flight.end(one)
    assert len(in_flight.events()) == 1
    assert seen(in_flight, two) == ["late"]
    in_flight.end(two)
    assert len(in_flight.events()) == 0


def test_the_end_of_a_younger_attempt_drops_nothing():
    in_flight = InFlight()
    one = start(in_flight, "one")
    in_flight.record(Happening(NODE_ADD, None, "a"))
    two = start(in_flight, "two")
    in_flight.end(two)
    assert seen(in_flight, one) == ["a"]


def test_an_attempt_that_lasts_keeps_a_bounded_number_of_events_and_knows_it():
    in_flight = InFlight(max_events=100)
    slow = start(in_flight, "slow")
    for index in range(1000):
        in_flight.record(Happening(NODE_ADD, None, index))
    late = start(in_flight, "late")
    in_flight.record(Happening(NODE_ADD, None, "last"))
    assert len(in_flight.events()) == 100
    assert in_flight.has_lost_events(in_flight.get(slow))
    assert not in_flight.has_lost_events(in_flight.get(late))
    assert seen(in_flight, late) == ["last"]


def test_an_attempt_ends_once():
    in_flight = InFlight()
    one = start(in_flight, "one")
    two = start(in_flight, "two")
    in_flight.record(Happening(NODE_ADD, None, "a"))
    in_flight.end(two)
    in_flight.end(two)
    assert len(in_flight) == 1
    assert seen(in_flight, one) == ["a"]
