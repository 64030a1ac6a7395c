"""The text form of a preemption dry run: the victims on each node, and why a node is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.pod_info import PodInfo
    from plugins.default_preemption import Candidate
    from scheduler.explain.explanation import RoomToMake

MAX_CANDIDATES: Final = 10
MAX_VICTIMS: Final = 8
"""The number of victims that are named for each node."""

_BECAUSE: Final = {
    "pdb_violations": "the fewest violations of PodDisruptionBudgets",
    "highest_priority": "its most important pod to go is less important than elsewhere",
    "sum_of_priorities": "the lowest sum of priorities",
    "num_victims": "the fewest pods to go",
    "running_since_s": "its most important pods to go have run for the shortest time",
    "displaced_nominees": "the fewest nominated pods to lose their node",
}
"""Why a node was chosen, by the field of Harm that decided."""


def preemption_lines(room: RoomToMake) -> Iterator[str]:
    """Yield lines for a terminal."""
    if room.refusal:
        yield f"No other pods go for it: {room.refusal}"
        return
    if not room.candidates:
        yield f"It would not help if pods of a priority below {room.priority} went:"
        yield f"  {room.message}"
        return
    shown = list(room.candidates.items())[:MAX_CANDIDATES]
    yield _headline(room)
    width = max(len(name) for name, _ in shown)
    for name, candidate in shown:
        yield f"  {name:{width}}  {_who(name, candidate)}"
    left = len(room.candidates) - len(shown)
    if left:
        yield f"  and {left} more nodes"


def _headline(room: RoomToMake) -> str:
    nodes = len(room.candidates)
    whom = f"pods of a priority below {room.priority}"
    if nodes == 1:
        return f"If {whom} went, it could run on {room.chosen}:"
    why = "others are as good" if room.decisive is None else _BECAUSE[room.decisive]
    return f"If {whom} went, it could run on {nodes} nodes; chosen is {room.chosen} ({why}):"


def _who(node_name: str, candidate: Candidate) -> str:
    victims = candidate.victims
    named = [
        f"{info.key} (priority {info.priority}{_elsewhere(node_name, info)})"
        for info in victims.pods[:MAX_VICTIMS]
    ]
    left = len(victims.pods) - len(named)
    text = ", ".join(named) + (f" and {left} more" if left else "")
    broken = victims.pdb_violations
    if broken:
        text += f"; {broken} against a PodDisruptionBudget"
    return text


def _elsewhere(node_name: str, info: PodInfo) -> str:
    """Return the node of a member of a gang that is on another node than the preemptor."""
    return "" if info.node_name in ("", node_name) else f", on {info.node_name}"
