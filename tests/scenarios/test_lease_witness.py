"""The witness itself: it must see what is wrong, or its silence says nothing."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from tests.scenarios.lease_witness import testify as read_log

USER = "system:serviceaccount:berth-system:berth"
LEASE = ("berth-system", "berth")
LEASE_S = 4.0
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def event(at_s: float, token: str, verb: str, resource: str, **more: Any) -> dict[str, Any]:
    group = {"leases": "coordination.k8s.io", "selfsubjectaccessreviews": "authorization.k8s.io"}
    return {
        "verb": verb,
        "requestURI": f"/{resource}",
        "requestReceivedTimestamp": (START + dt.timedelta(seconds=at_s)).isoformat(),
        "user": {
            "username": USER,
            "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={token}"]},
        },
        "objectRef": {
            "resource": resource,
            "apiGroup": group.get(resource, ""),
            "namespace": "berth-system",
            "name": "berth",
        },
        "responseStatus": {"code": 201},
        **more,
    }


def lease(at_s: float, token: str, holder: str, code: int = 200) -> dict[str, Any]:
    spec = {"requestObject": {"spec": {"holderIdentity": holder}}, "responseStatus": {"code": code}}
    return event(at_s, token, "update", "leases", **spec)


def write(at_s: float, token: str) -> dict[str, Any]:
    return event(at_s, token, "create", "pods/binding")


FIRST = [lease(0.0, "a", "one"), lease(2.0, "a", "one")]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*FIRST, write(1.0, "a"), write(5.9, "a")], id="until the end of the lease"),
        pytest.param([write(3.0, "a"), *reversed(FIRST)], id="in whatever order it was logged"),
        pytest.param(
            [*FIRST, lease(2.5, "a", ""), lease(2.6, "b", "two"), write(2.7, "b")], id="handed over"
        ),
        pytest.param([*FIRST, lease(6.1, "b", "two"), write(6.2, "b")], id="taken over"),
        pytest.param([*FIRST, lease(2.1, "b", "two", 409), write(3.0, "a")], id="a refused taker"),
        pytest.param([event(0.0, "z", "list", "pods")], id="anybody may read"),
        pytest.param([event(0.0, "z", "create", "selfsubjectaccessreviews")], id="or ask"),
    ],
)
def test_what_is_right_is_passed_over(events: list[dict[str, Any]]) -> None:
    assert read_log(events, user=USER, lease=LEASE).violations(LEASE_S) == []


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*FIRST, write(6.1, "a")], id="after the end of the lease"),
        pytest.param([write(-0.1, "a"), *FIRST], id="before the lease was taken"),
        pytest.param([*FIRST, write(1.0, "b")], id="by a standby"),
        pytest.param([*FIRST, lease(2.5, "a", ""), write(2.6, "a")], id="after the handing over"),
        pytest.param([*FIRST, lease(6.1, "b", "two"), write(6.2, "a")], id="by who was deposed"),
        pytest.param([*FIRST, lease(5.0, "b", "two")], id="taken over too early"),
    ],
)
def test_what_is_wrong_is_told(events: list[dict[str, Any]]) -> None:
    assert len(read_log(events, user=USER, lease=LEASE).violations(LEASE_S)) == 1


def test_the_next_leader_is_another_tenure_of_the_same_token() -> None:
    events = [*FIRST, lease(2.5, "a", ""), lease(3.0, "a", "one")]
    assert len(read_log(events, user=USER, lease=LEASE).tenures) == 2
