"""What occurs in the worlds, and how often: a record of what never happens would hold nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.worlds.playing import Played

_OBJECT: Final = re.compile(r"(create|change|remove) (\w+)")
_NAMES: Final = re.compile(r"\b[pncv]\d+\b")

NEEDED: Final[Mapping[str, int]] = {
    "write: bind": 1500,
    "write: status": 3500,
    "write: delete": 250,
    "write: event": 5000,
    "write: event again": 800,
    "write: volume": 60,
    "write: claim": 100,
    "status: nominatedNodeName": 450,
    "status: DisruptionTarget=True": 250,
    "status: DisruptionTarget=False": 15,
    "status: PodScheduled=False": 3000,
    "Event: Scheduled": 1200,
    "Event: FailedScheduling": 3500,
    "Event: Preempted": 230,
    "Event: RejectedByNode": 70,
    "bind: ok": 1250,
    "bind: no answer": 25,
    "bind: never sent": 15,
    "bind: 403": 12,
    "bind: 404": 24,
    "bind: 409": 45,
    "bind: 422": 15,
    "bind: 429": 70,
    "bind: 5xx": 30,
    "status: no answer": 25,
    "delete: no answer": 8,
    "event: no answer": 12,
    "outcome: left unbound": 2000,
}
"""What must occur at least so often in all worlds together: about half of what does. What only log
lines say (who expired, was bound elsewhere, was rejected) is printed; their texts may change."""


def counts(played: Played, logs: Counter[str]) -> Counter[str]:
    """Return how often what occurred in one world."""
    counted: Counter[str] = Counter()
    for step, writes in played.steps:
        counted[f"step: {_kind(step)}"] += 1
        for write in writes:
            counted.update(_write_kinds(write))
    for placement in played.placements:
        if " on= " in placement:
            counted["outcome: left unbound"] += 1
    counted["outcome: the scheduling thread died"] += played.has_died
    for message, count in logs.items():
        counted[f"log: {message.partition(': ')[2]}"] += count
    return counted


def _kind(step: str) -> str:
    prefix = "meanwhile " if step.startswith("meanwhile ") else ""
    found = _OBJECT.match(step.removeprefix(prefix))
    return f"{prefix}{found[0]}" if found else _NAMES.sub("_", step)


def _write_kinds(write: str) -> Iterator[str]:
    request, _, outcome = write.rpartition(" -> ")
    verb = "event again" if request.startswith("event again ") else request.partition(" ")[0]
    yield f"write: {verb}"
    yield f"{verb}: {_outcome(outcome)}"
    if verb == "event":
        body = json.loads(request.split(" ", 2)[2])
        yield f"Event: {body['reason']}"
    if verb == "status":
        body = json.loads(request.split(" ", 2)[2])
        if body.get("nominatedNodeName"):
            yield "status: nominatedNodeName"
        for condition in body.get("conditions", ()):
            reason = condition.get("reason", "")
            yield f"status: {condition['type']}={condition['status']}"
            yield f"status: {condition['type']} {reason}"


def _outcome(text: str) -> str:
    if text == "ok" or text.startswith("no answer yet"):
        return text
    if "Timeout" in text:
        return "no answer"
    if "Unreachable" in text:
        return "never sent"
    found = re.search(r"\b([45])\d\d\b", text)
    if found is None:
        return text
    return "5xx" if found[1] == "5" else found[0]
