"""SchedulingProfiles as people read them."""

from __future__ import annotations

import calendar
import time
from typing import Any

import pytest

from scheduler.profiles.operator.profile_table import details, state_of, table
from tests.scheduler.profiles.operator.objects import raw

NOW_S = calendar.timegm(time.strptime("2026-01-02T00:00:00Z", "%Y-%m-%dT%H:%M:%SZ"))


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T23:55:00Z",
    }


RUNS = {
    "observedGeneration": 2,
    "activeGeneration": 2,
    "conditions": [
        condition("Accepted", "True", "Valid"),
        condition("Active", "True", "Running"),
        condition("Degraded", "False"),
    ],
    "runningPlugins": ["NodeName", "NodeResourcesFit"],
    "history": [{"generation": 2, "activeSince": "2026-01-01T21:00:00Z", "spec": {}}],
}
DEGRADED = {
    **RUNS,
    "observedGeneration": 3,
    "conditions": [
        condition("Accepted", "False", "Invalid", "spec.mode: is none"),
        condition("Active", "True", "Running"),
        condition("Degraded", "True", "LastGoodRunning", "spec.mode: is none"),
    ],
}


@pytest.mark.parametrize(
    ("generation", "status", "state"),
    [
        pytest.param(1, None, "Unread", id="nobody-has-looked"),
        pytest.param(3, RUNS, "Unread", id="nobody-has-looked-since"),
        pytest.param(2, RUNS, "Active", id="runs"),
        pytest.param(3, DEGRADED, "Degraded", id="the-last-good-one-runs"),
        pytest.param(
            2,
            {
                "observedGeneration": 2,
                "conditions": [condition("Active", "False", "Shadowing")],
            },
            "Shadow",
            id="looks-on",
        ),
        pytest.param(
            2,
            {"observedGeneration": 2, "conditions": [condition("Active", "False", "Conflict")]},
            "Conflict",
            id="an-older-one-decides",
        ),
    ],
)
def test_the_word_that_matters_most(generation: int, status: Any, state: str) -> None:
    assert state_of(raw(generation=generation, status=status)) == state


def test_the_table() -> None:
    profiles = [
        raw("gpu", generation=2, status=RUNS),
        raw("spare", generation=3, status=DEGRADED),
        raw("new", generation=1),
    ]
    assert table(profiles, NOW_S) == (
        "NAME    SCHEDULER   STATE      GENERATION   RUNNING   SINCE   MESSAGE\n"
        "gpu     gpu         Active     2            2         3h\n"
        "spare   spare       Degraded   3            2         3h      spec.mode: is none\n"
        "new     new         Unread     1            -         -       "
        "the leader has not processed this generation yet\n"
    )


def test_the_details() -> None:
    assert details(raw("spare", generation=3, status=DEGRADED), NOW_S) == (
        "NAME    SCHEDULER   STATE      GENERATION   RUNNING   SINCE   MESSAGE\n"
        "spare   spare       Degraded   3            2         3h      spec.mode: is none\n"
        "\n"
        "Accepted:   False   Invalid           spec.mode: is none\n"
        "Active:     True    Running\n"
        "Degraded:   True    LastGoodRunning   spec.mode: is none\n"
        "\n"
        "Plugins: NodeName, NodeResourcesFit\n"
        "\n"
        "GOOD GENERATION   SINCE\n"
        "2                 3h\n"
    )


def test_a_long_message_does_not_break_the_table() -> None:
    long = {**DEGRADED, "conditions": [condition("Degraded", "True", "Invalid", "x" * 500)]}
    (_, line) = table([raw(generation=3, status=long)], NOW_S).splitlines()
    assert line.endswith("x...")
    assert len(line) < 200
