from __future__ import annotations

from typing import Any

import pytest

from tests.gangs.writes import BINDS, DELETES, EVENTS, GROUP_STATUS, POD_STATUS, counts, writes

US = "scheduler"


def entry(verb: str, resource: str, subresource: str = "", **changes: Any) -> dict[str, Any]:
    target = {"resource": resource, "name": "x"}
    if subresource:
        target["subresource"] = subresource
    return {
        "verb": verb,
        "user": {"username": US},
        "objectRef": target,
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        **changes,
    }


@pytest.mark.parametrize(
    ("logged", "kind"),
    [
        pytest.param(entry("create", "pods", "binding"), BINDS, id="a bind"),
        pytest.param(entry("create", "events"), EVENTS, id="an Event"),
        pytest.param(entry("patch", "events"), EVENTS, id="an Event that goes on"),
        pytest.param(entry("patch", "pods", "status"), POD_STATUS, id="a condition of a pod"),
        pytest.param(entry("patch", "podgroups", "status"), GROUP_STATUS, id="a group's status"),
        pytest.param(entry("update", "podgroups"), GROUP_STATUS, id="a group without subresource"),
        pytest.param(entry("delete", "pods"), DELETES, id="a victim"),
        pytest.param(entry("update", "leases"), "leases", id="a lease"),
    ],
)
def test_what_was_written(logged, kind):
    assert counts(writes([logged], US)) == {kind: 1}


@pytest.mark.parametrize(
    "logged",
    [
        pytest.param(entry("get", "pods"), id="a read"),
        pytest.param(entry("create", "events", user={"username": "other"}), id="of another user"),
        pytest.param(entry("create", "events", responseStatus={"code": 409}), id="refused"),
    ],
)
def test_what_does_not_count(logged):
    assert writes([logged], US) == []
