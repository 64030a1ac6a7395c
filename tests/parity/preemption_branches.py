"""Which branches of preemption an answer has reached, and which rung of the ladder decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.parity.vocabulary import Json

    Rung = Callable[[Sequence[Json], int], float | str]

_NONE: Final = (
    "No preemption victims found for incoming pod",
    "Preemption is not helpful for scheduling",
    "not eligible due to a terminating pod on the nominated node.",
    "not eligible due to preemptionPolicy=Never.",
    "Insufficient cpu",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) didn't have free ports for the requested pod ports",
)

PREEMPTION: Final = frozenset(
    [
        *(f"preemption message: {message}" for message in _NONE),
        "preemption: victims",
        "preemption: several victims",
        "preemption: several candidates",
        "preemption: a budget is violated",
        "preemption: a budget is violated by the best",
        "preemption: a less important pod may stay",
        "preemption: a more important pod goes than one that stays",
        "preemption: another pod is nominated to a candidate",
        "preemption: the pod itself is nominated to a candidate",
        "preemption: a victim is leaving already",
        "preemption: a victim has not started",
        "preemption: chosen by pdbViolations",
        "preemption: chosen by highest priority",
        "preemption: chosen by sum of priorities",
        "preemption: chosen by start time",
        "preemption: chosen by chance",
        "some node is feasible",
    ]
)
"""What must be reached; the number of victims cannot decide where the sum of priorities has not."""

_LADDER: Final[tuple[tuple[str, Rung], ...]] = (
    ("pdbViolations", lambda pods, violations: violations),
    ("highest priority", lambda pods, violations: _priority(pods[0])),
    ("sum of priorities", lambda pods, violations: sum(_priority(pod) + 2**31 for pod in pods)),
)


def preemption_branches(question: Json, preemption: Json) -> Iterator[str]:
    """Yield what the oracle's ``preemption`` shows of a question, some more than once."""
    message = preemption["message"]
    yield from (f"preemption message: {each}" for each in _NONE if each in message)
    candidates = preemption["candidates"]
    if not candidates:
        return
    pods = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": each
        for each in question["objects"]
        if each["kind"] == "Pod"
    }
    asked = question["pod"]
    victims = {
        name: [pods[victim] for victim in candidate["victims"]]
        for name, candidate in candidates.items()
    }
    yield "preemption: victims"
    yield from _of_candidates(asked, pods, victims)
    for name, candidate in candidates.items():
        if candidate["pdbViolations"]:
            yield "preemption: a budget is violated"
            if name in preemption["best"]:
                yield "preemption: a budget is violated by the best"
    if len(candidates) > 1:
        yield "preemption: several candidates"
        yield f"preemption: chosen by {_decisive(candidates, victims, preemption['best'])}"


def _of_candidates(
    asked: Json, pods: dict[str, Json], victims: dict[str, list[Json]]
) -> Iterator[str]:
    if asked["status"].get("nominatedNodeName") in victims:
        yield "preemption: the pod itself is nominated to a candidate"
    for pod in pods.values():
        host = pod["spec"].get("nodeName", "")
        if not host and pod["status"].get("nominatedNodeName") in victims:
            yield "preemption: another pod is nominated to a candidate"
        going = victims.get(host, [])
        if going and pod not in going and _priority(pod) < _priority(asked):
            yield "preemption: a less important pod may stay"
            if _priority(going[0]) > _priority(pod):
                yield "preemption: a more important pod goes than one that stays"
    for going in victims.values():
        if len(going) > 1:
            yield "preemption: several victims"
        for pod in going:
            if "deletionTimestamp" in pod["metadata"]:
                yield "preemption: a victim is leaving already"
            if "startTime" not in pod["status"]:
                yield "preemption: a victim has not started"


def _decisive(candidates: Json, victims: dict[str, list[Json]], best: list[str]) -> str:
    if len(best) > 1:
        return "chance"
    left = list(candidates)
    for what, rung in _LADDER:
        heights = {name: rung(victims[name], candidates[name]["pdbViolations"]) for name in left}
        lowest = min(heights.values())
        left = [name for name in left if heights[name] == lowest]
        if len(left) == 1:
            return what
    return "start time"


def _priority(pod: Json) -> int:
    priority: int = pod["spec"].get("priority", 0)
    return priority
