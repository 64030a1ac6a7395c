"""The states of a pod in the queue, and the legal moves between them.

A pod is in exactly one state. The table names the cause of each move; a dot is a move that
nothing may cause:

    from           active  backoff  unschedulable  gated  grouped  in_flight  nowhere
    nowhere        add     add      .              add    add      .          .
    active         .       hold     .              shut   gather   pop        delete
    backoff        over    .        .              shut   gather   pop        delete
    unschedulable  wake    wake     .              wake   gather   .          delete
    gated          wake    wake     .              .      gather   .          delete
    grouped        leave   leave    watch          shut   .        pop        delete
    in_flight      fail    fail     fail           fail   fail     .          end

    add     a pod that waits for one of our profiles appeared; to backoff only a group that was
            refused before, and has members again
    pop     an attempt starts; from backoff only when no pod is active
    over    its backoff is over, or it was activated
    hold    its namespace has used the time that attempts over budget may use of the thread
    shut    another policy has become active, and it gates the pod
    wake    an event, an update of the pod itself, the time limit or an activation
    gather  the pod is tried together with the others of its group, whose entry stands for it
    leave   the pod is tried alone from now on: its group has begun, or it names another one
    watch   its group was refused, and what would help this pod may help the group
    fail    the attempt failed: the new state depends on the events since it started
    end     the pod was bound, abandoned, or deleted meanwhile
    delete  the pod was deleted, or belongs to another scheduler now

A gated pod is a pod that a PreEnqueue plugin keeps out. PreEnqueue runs when a pod moves to active
or backoff and never for a pod that keeps its state, so a pod that a filter rejected becomes gated
only when an event would have woken it. Only a new policy runs PreEnqueue for all pods again.

*Source*: pkg/scheduler/backend/queue/scheduling_queue.go (1.36). There, gated pods share a map with
the unschedulable ones; apart, they cost nothing to the events that cannot concern them.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class QueueState(Enum):
    """The state of a pod; the value is its name in the table and in metrics."""

    NOWHERE = "nowhere"
    """Not known to the queue."""
    ACTIVE = "active"
    """To be tried as soon as it is the first."""
    BACKOFF = "backoff"
    """To be tried after a pause, because it failed before."""
    UNSCHEDULABLE = "unschedulable"
    """Rejected; waits for an event that may make the pod schedulable."""
    GATED = "gated"
    """Kept out by a PreEnqueue plugin."""
    GROUPED = "grouped"
    """A member of a group, which stands in the queue for it."""
    IN_FLIGHT = "in_flight"
    """Popped: in its scheduling or binding cycle, or held by a Permit plugin."""

    __hash__ = object.__hash__
    """Enum's own is a Python function, and every move of a pod looks its states up."""


INCOMING_QUEUE: Final = {
    QueueState.ACTIVE: "active",
    QueueState.BACKOFF: "backoff",
    QueueState.UNSCHEDULABLE: "unschedulable",
    QueueState.GATED: "unschedulable",
}
"""The ``queue`` label of scheduler_queue_incoming_pods_total, which has none for gated pods."""


PAUSING_OR_ACTIVE: Final = frozenset({QueueState.ACTIVE, QueueState.BACKOFF})


class IllegalMoveError(Exception):
    """A move that the table does not contain: an error in the queue itself."""


_MOVES: dict[tuple[QueueState, QueueState], str] = {
    (QueueState.NOWHERE, QueueState.ACTIVE): "add",
    (QueueState.NOWHERE, QueueState.BACKOFF): "add",
    (QueueState.NOWHERE, QueueState.GATED): "add",
    (QueueState.NOWHERE, QueueState.GROUPED): "add",
    (QueueState.ACTIVE, QueueState.BACKOFF): "hold",
    (QueueState.ACTIVE, QueueState.GATED): "shut",
    (QueueState.ACTIVE, QueueState.GROUPED): "gather",
    (QueueState.ACTIVE, QueueState.IN_FLIGHT): "pop",
    (QueueState.ACTIVE, QueueState.NOWHERE): "delete",
    (QueueState.BACKOFF, QueueState.ACTIVE): "over",
    (QueueState.BACKOFF, QueueState.GATED): "shut",
    (QueueState.BACKOFF, QueueState.GROUPED): "gather",
    (QueueState.BACKOFF, QueueState.IN_FLIGHT): "pop",
    (QueueState.BACKOFF, QueueState.NOWHERE): "delete",
    (QueueState.UNSCHEDULABLE, QueueState.ACTIVE): "wake",
    (QueueState.UNSCHEDULABLE, QueueState.BACKOFF): "wake",
    (QueueState.UNSCHEDULABLE, QueueState.GATED): "wake",
    (QueueState.UNSCHEDULABLE, QueueState.GROUPED): "gather",
    (QueueState.UNSCHEDULABLE, QueueState.NOWHERE): "delete",
    (QueueState.GATED, QueueState.ACTIVE): "wake",
    (QueueState.GATED, QueueState.BACKOFF): "wake",
    (QueueState.GATED, QueueState.GROUPED): "gather",
    (QueueState.GATED, QueueState.NOWHERE): "delete",
    (QueueState.GROUPED, QueueState.ACTIVE): "leave",
    (QueueState.GROUPED, QueueState.BACKOFF): "leave",
    (QueueState.GROUPED, QueueState.UNSCHEDULABLE): "watch",
    (QueueState.GROUPED, QueueState.GATED): "shut",
    (QueueState.GROUPED, QueueState.IN_FLIGHT): "pop",
    (QueueState.GROUPED, QueueState.NOWHERE): "delete",
    (QueueState.IN_FLIGHT, QueueState.ACTIVE): "fail",
    (QueueState.IN_FLIGHT, QueueState.BACKOFF): "fail",
    (QueueState.IN_FLIGHT, QueueState.UNSCHEDULABLE): "fail",
    (QueueState.IN_FLIGHT, QueueState.GATED): "fail",
    (QueueState.IN_FLIGHT, QueueState.GROUPED): "fail",
    (QueueState.IN_FLIGHT, QueueState.NOWHERE): "end",
}


def check_move(origin: QueueState, target: QueueState) -> str:
    """Return the cause that moves a pod from one state to the other.

    Raises
    ------
    IllegalMoveError
        When nothing does.
    """
    cause = _MOVES.get((origin, target))
    if cause is None:
        raise IllegalMoveError(f"no pod moves from {origin.value} to {target.value}")
    return cause
