"""Where a pod of the queue can be, and which ways lead from one room to another.

A pod is in exactly one room. The table says by what each move happens; a dot is a move that no
event may cause:

    from           active  backoff  unschedulable  gated  in_flight  nowhere
    nowhere        add     .        .              add    .          .
    active         .       hold     .              shut   pop        delete
    backoff        over    .        .              shut   pop        delete
    unschedulable  wake    wake     .              wake   .          delete
    gated          wake    wake     .              .      .          delete
    in_flight      fail    fail     fail           fail   .          end

    add     a pod that waits for one of our profiles appeared
    pop     an attempt starts; from backoff only when no pod is active
    over    its backoff is over, or somebody activated it
    hold    its namespace has used what attempts over budget may use of the thread
    shut    another policy has come into force, and it keeps the pod out
    wake    an event, an update of the pod itself, the time limit or an activation
    fail    the attempt was refused: where to depends on what happened since it started
    end     bound, given up, or deleted meanwhile
    delete  gone from the API, or no longer ours

A gated pod is one that a PreEnqueue plugin keeps out. Gates are asked on the way to active or
backoff and never for a pod that stays where it is, so a pod that was refused by a filter becomes
gated only when an event would have woken it. Only another policy has all gates asked again.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (1.36). There, gated pods share a map with
the unschedulable ones; apart, they cost nothing to the events that cannot concern them.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Room(Enum):
    """Where a pod is; the value is the name in the drawing and in metrics."""

    NOWHERE = "nowhere"
    """Not known to the queue."""
    ACTIVE = "active"
    """To be tried as soon as it is the first."""
    BACKOFF = "backoff"
    """To be tried after a pause, because it failed before."""
    UNSCHEDULABLE = "unschedulable"
    """Refused; waits for an event that may change the plugins' minds."""
    GATED = "gated"
    """Kept out by a PreEnqueue plugin."""
    IN_FLIGHT = "in_flight"
    """Popped: in its scheduling or binding cycle, or held by a Permit plugin."""

    __hash__ = object.__hash__
    """Enum's own is a Python function, and every move of a pod looks its rooms up."""


INCOMING_QUEUE: Final = {
    Room.ACTIVE: "active",
    Room.BACKOFF: "backoff",
    Room.UNSCHEDULABLE: "unschedulable",
    Room.GATED: "unschedulable",
}
"""The ``queue`` label of scheduler_queue_incoming_pods_total, which has none for gated pods."""


class IllegalMoveError(Exception):
    """A move that the table does not have: a mistake of the queue's own."""


_MOVES: dict[tuple[Room, Room], str] = {
    (Room.NOWHERE, Room.ACTIVE): "add",
    (Room.NOWHERE, Room.GATED): "add",
    (Room.ACTIVE, Room.BACKOFF): "hold",
    (Room.ACTIVE, Room.GATED): "shut",
    (Room.ACTIVE, Room.IN_FLIGHT): "pop",
    (Room.ACTIVE, Room.NOWHERE): "delete",
    (Room.BACKOFF, Room.ACTIVE): "over",
    (Room.BACKOFF, Room.GATED): "shut",
    (Room.BACKOFF, Room.IN_FLIGHT): "pop",
    (Room.BACKOFF, Room.NOWHERE): "delete",
    (Room.UNSCHEDULABLE, Room.ACTIVE): "wake",
    (Room.UNSCHEDULABLE, Room.BACKOFF): "wake",
    (Room.UNSCHEDULABLE, Room.GATED): "wake",
    (Room.UNSCHEDULABLE, Room.NOWHERE): "delete",
    (Room.GATED, Room.ACTIVE): "wake",
    (Room.GATED, Room.BACKOFF): "wake",
    (Room.GATED, Room.NOWHERE): "delete",
    (Room.IN_FLIGHT, Room.ACTIVE): "fail",
    (Room.IN_FLIGHT, Room.BACKOFF): "fail",
    (Room.IN_FLIGHT, Room.UNSCHEDULABLE): "fail",
    (Room.IN_FLIGHT, Room.GATED): "fail",
    (Room.IN_FLIGHT, Room.NOWHERE): "end",
}


def check_move(origin: Room, target: Room) -> str:
    """Return what moves a pod from one room to the other.

    Raises
    ------
    IllegalMoveError
        When nothing does.
    """
    cause = _MOVES.get((origin, target))
    if cause is None:
        raise IllegalMoveError(f"no pod moves from {origin.value} to {target.value}")
    return cause


def render() -> str:
    """Return the table as it stands in this module's docstring."""
    targets = [*(room for room in Room if room is not Room.NOWHERE), Room.NOWHERE]
    rows = [["from", *(room.value for room in targets)]]
    rows += [
        [origin.value, *(_MOVES.get((origin, target), ".") for target in targets)]
        for origin in Room
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
