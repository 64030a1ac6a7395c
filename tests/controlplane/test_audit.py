from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.controlplane.audit import (
    accepted_binds,
    bind_records,
    check_binds,
    forbidden_requests,
    read_events,
)

if TYPE_CHECKING:
    from pathlib import Path

BERTH = "system:serviceaccount:berth-system:berth"
PEER = "system:kube-scheduler"


def bind_event(
    uid: str,
    node: str,
    *,
    code: int = 201,
    user: str = BERTH,
    name: str = "web",
    **fields: Any,
) -> dict[str, Any]:
    event = {
        "stage": "ResponseComplete",
        "auditID": "a-1",
        "verb": "create",
        "requestURI": f"/api/v1/namespaces/default/pods/{name}/binding",
        "user": {"username": user},
        "objectRef": {
            "resource": "pods",
            "subresource": "binding",
            "namespace": "default",
            "name": name,
        },
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": "2026-01-02T03:04:05.678901Z",
        "requestObject": {"metadata": {"uid": uid} if uid else {}, "target": {"name": node}},
    }
    return {key: value for key, value in (event | fields).items() if value is not None}


def pod(uid: str, node: str) -> dict[str, Any]:
    return {
        "metadata": {"uid": uid, "namespace": "default", "name": "web"},
        "spec": {"nodeName": node} if node else {},
    }


@pytest.mark.parametrize(
    ("events", "violations"),
    [
        pytest.param([bind_event("u1", "a"), bind_event("u2", "a")], 0, id="each-pod-once"),
        pytest.param([bind_event("u1", "a"), bind_event("u1", "a")], 1, id="accepted-twice"),
        pytest.param(
            [bind_event("u1", "a", code=500), bind_event("u1", "a")], 0, id="again-same-node"
        ),
        pytest.param(
            [bind_event("u1", "a", code=500), bind_event("u1", "b")], 1, id="again-other-node"
        ),
        pytest.param(
            [bind_event("u1", "a"), bind_event("u1", "b", code=409)], 1, id="other-node-refused"
        ),
        pytest.param(
            [bind_event("u1", "a"), bind_event("u1", "b", code=409, user=PEER)],
            0,
            id="a-rival-comes-too-late",
        ),
        pytest.param(
            [bind_event("u1", "a"), bind_event("u1", "a", user=PEER)], 1, id="a-rival-comes-through"
        ),
        pytest.param([bind_event("", "a")], 1, id="without-uid"),
        pytest.param([bind_event("", "a", user=PEER)], 0, id="a-rival-without-uid"),
        pytest.param(
            [bind_event("u1", "a", code=429, requestObject=None), bind_event("u1", "b")],
            0,
            id="refused-before-the-body-was-read",
        ),
        pytest.param(
            [bind_event("u1", "a"), bind_event("u2", "b")], 0, id="recreated-under-the-same-name"
        ),
    ],
)
def test_violations(events: list[dict[str, Any]], violations: int) -> None:
    assert len(check_binds(events, user=BERTH)) == violations


@pytest.mark.parametrize(
    ("pods", "violations"),
    [
        pytest.param([pod("u1", "a")], 0, id="as-logged"),
        pytest.param([pod("u1", "b")], 1, id="elsewhere"),
        pytest.param([pod("u1", "")], 1, id="nowhere"),
        pytest.param([pod("u2", "b")], 0, id="not-in-the-log"),
    ],
)
def test_the_log_is_compared_with_the_pods(pods: list[dict[str, Any]], violations: int) -> None:
    assert len(check_binds([bind_event("u1", "a")], user=BERTH, pods=pods)) == violations


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(bind_event("u1", "a", verb="get"), id="another-verb"),
        pytest.param(bind_event("u1", "a", stage="RequestReceived"), id="not-yet-answered"),
        pytest.param(bind_event("u1", "a", requestURI="/x?dryRun=All"), id="dry-run"),
        pytest.param(bind_event("u1", "a", objectRef={"resource": "pods"}), id="creation-of-a-pod"),
        pytest.param(bind_event("u1", "a", objectRef=None), id="no-object"),
    ],
)
def test_what_is_no_bind(event: dict[str, Any]) -> None:
    assert list(bind_records([event])) == []


def test_a_record_says_who_bound_what_where() -> None:
    (record,) = bind_records([bind_event("u1", "a", code=409)])
    assert (record.uid, record.namespace, record.name, record.node) == ("u1", "default", "web", "a")
    assert (record.user, record.code, record.accepted) == (BERTH, 409, False)
    assert record.time.isoformat() == "2026-01-02T03:04:05.678901+00:00"


def test_the_legacy_collection_binds_too() -> None:
    target = {"resource": "bindings", "namespace": "default"}
    body = {"metadata": {"name": "web", "uid": "u1"}, "target": {"name": "a"}}
    (record,) = bind_records([bind_event("", "", objectRef=target, requestObject=body)])
    assert (record.name, record.uid, record.node) == ("web", "u1", "a")


def test_only_accepted_binds_are_accepted() -> None:
    events = [bind_event("u1", "a"), bind_event("u1", "b", code=409), bind_event("u2", "c")]
    accepted = accepted_binds(events)
    assert {uid: [r.node for r in of] for uid, of in accepted.items()} == {
        "u1": ["a"],
        "u2": ["c"],
    }


@pytest.mark.parametrize(
    ("user", "count"),
    [
        pytest.param(None, 2, id="anybody's"),
        pytest.param(BERTH, 1, id="one-user's"),
    ],
)
def test_forbidden_requests(user: str | None, count: int) -> None:
    events = [
        bind_event("u1", "a"),
        bind_event("u1", "a", code=403),
        bind_event("u1", "a", code=403, user=PEER),
    ]
    assert len(forbidden_requests(events, user=user)) == count


def test_a_last_line_without_its_end_is_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(b'{"verb":"get"}\n{"verb":"cre')
    assert list(read_events(log)) == [{"verb": "get"}]


def test_a_spoilt_line_inside_the_log_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(b'{"verb":"cre{"verb":"get"}\n')
    with pytest.raises(msgspec.DecodeError):
        list(read_events(log))


def test_a_log_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert list(read_events(tmp_path / "audit.log")) == []
