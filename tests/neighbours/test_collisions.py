"""Who came second: the decisive pod of each rejection, and the times between the binds."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.neighbours.admission import Rejection
from tests.neighbours.cluster import FIRST, SECOND
from tests.neighbours.collisions import Bind, binds, collisions, lags_ms
from tests.neighbours.kubelets import Arrival

NODES = {"n": {"status": {"allocatable": {"cpu": "1", "pods": "9"}}}}
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def pod(name: str, party: str, milli: int, at_ms: float = 0.0) -> Arrival:
    at_s = START.timestamp() + at_ms / 1000
    return Arrival(at_s, name, name, party, "n", {"cpu": milli}, None)


def rejected(name: str, party: str, milli: int) -> Arrival:
    return pod(name, party, milli)._replace(rejection=Rejection("OutOfcpu", ""))


def bind(received_ms: float, done_ms: float) -> Bind:
    return Bind(*(START + dt.timedelta(milliseconds=ms) for ms in (received_ms, done_ms)))


@pytest.mark.parametrize(
    ("arrivals", "winner", "gap_ms"),
    [
        pytest.param([pod("a", FIRST, 600)], FIRST, 40.0, id="the only pod of the other"),
        pytest.param(
            [pod("a", FIRST, 600), pod("b", FIRST, 100)],
            FIRST,
            40.0,
            id="the newest is not enough, so the loser cannot have known the one before",
        ),
        pytest.param(
            [pod("b", FIRST, 100), pod("a", FIRST, 600)], FIRST, 40.0, id="the newest is enough"
        ),
        pytest.param(
            [pod("a", FIRST, 300), pod("own", SECOND, 400)],
            FIRST,
            40.0,
            id="own pods are known, however new",
        ),
        pytest.param([pod("own", SECOND, 600)], SECOND, None, id="nobody but itself"),
        pytest.param([pod("before", "", 600)], SECOND, None, id="pods that ran before are known"),
    ],
)
def test_decisive_pod(arrivals, winner, gap_ms):
    bound = {"a": bind(0, 10), "b": bind(20, 30), "own": bind(0, 1), "x": bind(50, 60)}

    (found,) = collisions(NODES, [*arrivals, rejected("x", SECOND, 500)], bound)

    assert (found.party, found.winner, found.gap_ms) == (SECOND, winner, gap_ms)


def test_gap_is_negative_where_both_binds_were_under_way():
    arrivals = [pod("a", FIRST, 600), rejected("x", SECOND, 500)]

    (found,) = collisions(NODES, arrivals, {"a": bind(0, 10), "x": bind(7, 12)})

    assert found.gap_ms == -3.0


@pytest.mark.parametrize(
    ("received_ms", "shown_at_ms", "was_shown"),
    [
        pytest.param(50, 40, True, id="the watch was faster"),
        pytest.param(50, 60, False, id="the watch was slower"),
        pytest.param(5, 12, False, id="both binds were under way"),
    ],
)
def test_guard_can_avoid_what_the_watch_has_shown(received_ms, shown_at_ms, was_shown):
    arrivals = [pod("a", FIRST, 600, at_ms=shown_at_ms), rejected("x", SECOND, 500)]
    bound = {"a": bind(0, 10), "x": bind(received_ms, received_ms + 5)}

    (found,) = collisions(NODES, arrivals, bound)

    assert found.was_shown is was_shown


def test_rejected_pod_takes_nothing_from_the_next():
    arrivals = [
        pod("a", FIRST, 600),
        rejected("x", SECOND, 500),
        rejected("y", FIRST, 500),
    ]

    first, second = collisions(NODES, arrivals, {})

    assert (first.winner, second.winner) == (FIRST, FIRST)


def test_lag_is_from_the_answer_to_the_watch():
    arrivals = [pod("a", FIRST, 600, at_ms=14.0), pod("b", FIRST, 1, at_ms=31.0)]

    assert lags_ms(arrivals, {"a": bind(0, 10), "b": bind(20, 30)}) == pytest.approx(
        [1.0, 4.0], abs=0.01
    )


def test_binds_are_read_from_the_audit_log():
    event = {
        "auditID": "1",
        "verb": "create",
        "user": {"username": "u"},
        "objectRef": {"resource": "pods", "subresource": "binding", "name": "p"},
        "requestObject": {"metadata": {"uid": "p-uid"}, "target": {"name": "n"}},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.050000Z",
        "stageTimestamp": "2026-01-01T00:00:00.060000Z",
    }
    refused = {**event, "auditID": "2", "responseStatus": {"code": 409}}

    assert binds([event, refused]) == {"p-uid": bind(50, 60)}
