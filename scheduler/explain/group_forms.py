"""The text form and the JSON form of the explanation of a group.

The JSON form is::

    {"podGroup": "ns/name", "apiGroup": "scheduling.k8s.io" | "scheduling.x-k8s.io",
     "minimum": n | null,
     "members": {"gated": n, "waiting": n, "assigned": n, "succeeded": n, "failed": n,
                 "running": n},
     "schedulerNames": [...],
     "verdict": "held" | "begun" | "nobodyWaits" | "fits" | "doesNotFit" | "notFound" | "failed",
     "cause": null | "object" | "rules" | "scheduler_names" | "size" | "members" | "gates",
     "message": text,
     "needed": n, "fitting": n, "domain": value,
     "placed": {member: node}, "refused": {member: text},
     "preemption": {"victims": {"ns/name": node}, "message": text}}

``minimum`` is null for a group without an object, and ``cause`` for one that is not held.
``preemption`` has the pods that would be evicted for a group that does not fit, or why preemption
does not help; it is absent where the group was not asked for victims.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.explain.group_explanation import BEGUN, FITS, HELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.pod_groups import GroupCounts
    from scheduler.explain.group_explanation import GroupExplanation

MAX_NODES: Final = 10
MAX_REFUSED: Final = 5
MAX_VICTIMS: Final = 10

_STATES: Final = ("gated", "waiting", "assigned", "succeeded", "failed", "running")

_VERDICTS: Final = {
    "held": "it cannot be tried",
    "begun": "it has begun",
    "nobodyWaits": "nobody waits",
    "fits": "it fits",
    "doesNotFit": "it does not fit",
    "notFound": "no placement was found in the time given",
    "failed": "the attempt failed",
}


def group_json(explanation: GroupExplanation) -> bytes:
    """Return one line of JSON without a newline."""
    standing = explanation.standing
    answer: dict[str, Any] = {
        "podGroup": str(explanation.key),
        "apiGroup": explanation.key.source.value,
        "minimum": None if standing.rules is None else standing.rules.minimum,
        "members": {state: getattr(standing.counts, state) for state in _STATES},
        "schedulerNames": standing.scheduler_names,
        "verdict": explanation.verdict,
        "cause": explanation.cause or None,
        "message": explanation.message,
        "needed": explanation.needed,
        "fitting": explanation.fitting,
        "domain": explanation.domain,
        "placed": explanation.placed,
        "refused": explanation.refused,
    }
    if explanation.victims or explanation.preemption:
        answer["preemption"] = {
            "victims": explanation.victims,
            "message": explanation.preemption,
        }
    return msgspec.json.encode(answer)


def group_text(explanation: GroupExplanation) -> str:
    """Return lines for a terminal."""
    return "".join(f"{line}\n" for line in _lines(explanation))


def _lines(explanation: GroupExplanation) -> Iterator[str]:
    key, standing = explanation.key, explanation.standing
    yield f"PodGroup {key} ({key.source.value}): {_VERDICTS[explanation.verdict]}"
    rules = standing.rules
    minimum = "unknown: there is no object" if rules is None else str(rules.minimum)
    yield f"   minimum  {minimum}"
    yield f"   members  {_members(standing.counts)}"
    if standing.scheduler_names:
        yield f" scheduler  {', '.join(standing.scheduler_names)}"
    if rules is not None and rules.topology_key:
        chosen = f", chosen: {explanation.domain}" if explanation.domain else ""
        yield f"  topology  {rules.topology_key}{chosen}"
    if explanation.message:
        yield ""
        yield explanation.message
    yield from _outcome(explanation)


def _members(counts: GroupCounts) -> str:
    named = [
        (counts.waiting, "waiting"),
        (counts.gated, "with scheduling gates"),
        (counts.assigned, f"with a node ({counts.running} running)"),
        (counts.succeeded, "succeeded"),
        (counts.failed, "failed"),
    ]
    return ", ".join(f"{number} {name}" for number, name in named if number) or "none"


def _outcome(explanation: GroupExplanation) -> Iterator[str]:
    verdict, waiting = explanation.verdict, explanation.waiting
    if verdict == FITS:
        yield ""
        yield f"{explanation.fitting} of {len(waiting)} waiting members would be placed:"
        nodes = Counter(explanation.placed.values()).most_common()
        for node, number in nodes[:MAX_NODES]:
            yield f"{number:7}  {node}"
        if len(nodes) > MAX_NODES:
            yield f"         and on {len(nodes) - MAX_NODES} more nodes"
    elif verdict == BEGUN and explanation.needed:
        yield f"{explanation.needed} more members have to get nodes for the minimum."
    if explanation.refused:
        yield ""
        yield "Members without a node, one of each kind:"
        for name, message in list(explanation.refused.items())[:MAX_REFUSED]:
            yield f"  {name}: {message}"
    if explanation.victims:
        yield ""
        yield f"It would fit without {len(explanation.victims)} pods of lower priority:"
        victims = list(explanation.victims.items())
        for pod, node in victims[:MAX_VICTIMS]:
            yield f"  {pod} on {node}"
        if len(victims) > MAX_VICTIMS:
            yield f"  and {len(victims) - MAX_VICTIMS} more"
    elif explanation.preemption:
        yield ""
        yield f"Preemption does not help: {explanation.preemption}"
    example = next(iter(explanation.refused or waiting), None)
    if example is not None and verdict not in (FITS, HELD):
        yield ""
        pod = f"{explanation.key.namespace}/{example}"
        yield f"Alone, without the others: berth explain --pod {pod}"
