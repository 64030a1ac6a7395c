"""The states of a pod in the cache: one table of ``(state, stimulus) -> (state, effect)``.

An assumed pod uses resources of its node before the API server has its binding. Afterwards the
watch confirms it, or the scheduler forgets it, or it is lost without a report. The scheduling
cycle, the response to the binding and the watch are three independent sources, so every pair of
state and stimulus can occur and has an entry here. No other code assigns the state of a pod.

Each cell names the next state, where it changes, and the effect:

                     assume     finish_binding     forget     add      update   remove     expire
    Initial          + Assumed  .                  .          + Added  !        !          .
    Assumed          !          @ BindingFinished  - Initial  = Added  = Added  - Deleted  !
    BindingFinished  !          @                  - Initial  = Added  = Added  - Deleted  - Expired
    Added            !          .                  !          ~        ~        - Deleted  .
    Expired          + Assumed  .                  .          + Added  !        !          .
    Deleted          + Assumed  .                  .          + Added  !        !          .

    + add to node  @ set deadline  = confirm  ~ replace  - remove from node  . nothing  ! reject

Initial, Expired and Deleted are not stored: the cache keeps no entry for such a pod and treats an
unknown UID as Initial. So the three react alike, and their rows differ only in the reason.

Rules that the table keeps: no pod is assumed twice; a pod may be added without having been
assumed; what is not stored is neither updated nor removed; an assumed pod whose binding has not
finished never expires; after expiry a late add restores the pod.

*Source*: kube-scheduler 1.36, pkg/scheduler/backend/cache/interface.go and cache.go.
# Differs: kube-scheduler has removed the expiry of assumed pods; it ends its process when an
update shows a pod on another node than before, and rejects an add for an added pod and an update
for an assumed one. Here the latest version from the API is used in all three cases.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class PodState(Enum):
    """The state of a pod in the cache; the value is the name in the table above."""

    INITIAL = "Initial"
    """Never heard of."""
    ASSUMED = "Assumed"
    """Placed by the scheduling cycle; its binding is under way."""
    BINDING_FINISHED = "BindingFinished"
    """Bound by the API's answer, not yet seen by the watch; it has a deadline."""
    ADDED = "Added"
    """Seen by the watch with its node: the truth."""
    EXPIRED = "Expired"
    """Bound but never confirmed within its deadline."""
    DELETED = "Deleted"
    """Gone from the API."""

    __hash__ = object.__hash__
    """Enum's own is a Python function, and each stimulus looks its transition up."""


class Stimulus(Enum):
    """An event in the life of a pod; the value is the name in the table above."""

    ASSUME = "assume"
    """The scheduling cycle chose a node."""
    FINISH_BINDING = "finish_binding"
    """The API server accepted the binding."""
    FORGET = "forget"
    """The scheduling or binding cycle gave the pod up."""
    ADD = "add"
    """The watch shows the pod with a node, and did not before."""
    UPDATE = "update"
    """The watch shows the pod with a node, as before."""
    REMOVE = "remove"
    """The watch shows that the pod is gone, or no longer takes resources."""
    EXPIRE = "expire"
    """The deadline passed, and the API does not know the pod as bound."""

    __hash__ = object.__hash__


class Effect(Enum):
    """What the cache must do when a pod makes a transition; the value is its sign."""

    ADD_TO_NODE = "+"
    """Store the pod and count it on its node."""
    SET_DEADLINE = "@"
    """Let the pod expire one time-to-live from now."""
    CONFIRM = "="
    """The pod is no longer assumed: drop its deadline, then do as for REPLACE."""
    REPLACE = "~"
    """Put the API's pod in place of the stored one; on another node, move it there."""
    REMOVE_FROM_NODE = "-"
    """Take the stored pod off its node and forget it."""
    NOTHING = "."
    """Leave everything as it is; this is a known race and no fault."""
    REJECT = "!"
    """Leave everything as it is and tell the caller that this must not happen."""


class Transition(NamedTuple):
    """The next state of a pod, the effect that the cache must carry out, and the reason."""

    next: PodState
    effect: Effect
    why: str


_TABLE: dict[tuple[PodState, Stimulus], Transition] = {}


def _row(state: PodState, **cells: tuple[PodState | None, Effect, str]) -> None:
    """Add one row to the table; None as the next state means the same state."""
    for stimulus in Stimulus:
        following, effect, why = cells.pop(stimulus.value)
        _TABLE[state, stimulus] = Transition(following or state, effect, why)


_row(
    PodState.INITIAL,
    assume=(PodState.ASSUMED, Effect.ADD_TO_NODE, "a decision takes its resources at once"),
    finish_binding=(None, Effect.NOTHING, "the pod was forgotten or deleted during its binding"),
    forget=(None, Effect.NOTHING, "the pod was deleted first, so there is nothing to give back"),
    add=(PodState.ADDED, Effect.ADD_TO_NODE, "bound by somebody else, or before we started"),
    update=(None, Effect.REJECT, "what was never added cannot be updated"),
    remove=(None, Effect.REJECT, "what was never added cannot be removed"),
    expire=(None, Effect.NOTHING, "the pod was forgotten before it could expire"),
)
_row(
    PodState.ASSUMED,
    assume=(None, Effect.REJECT, "the pod is already assumed: it would count twice"),
    finish_binding=(
        PodState.BINDING_FINISHED,
        Effect.SET_DEADLINE,
        "only from now on is the watch expected to confirm",
    ),
    forget=(PodState.INITIAL, Effect.REMOVE_FROM_NODE, "the binding failed: it frees its node"),
    add=(PodState.ADDED, Effect.CONFIRM, "the watch was faster than the bind's answer"),
    update=(PodState.ADDED, Effect.CONFIRM, "the API says that the pod has its node"),
    remove=(PodState.DELETED, Effect.REMOVE_FROM_NODE, "deleted while it was being bound"),
    expire=(None, Effect.REJECT, "a binding under way never expires, however long it takes"),
)
_row(
    PodState.BINDING_FINISHED,
    assume=(None, Effect.REJECT, "the pod is already bound: it would count twice"),
    finish_binding=(None, Effect.SET_DEADLINE, "the later answer is the fresher evidence"),
    forget=(
        PodState.INITIAL,
        Effect.REMOVE_FROM_NODE,
        "a bind that turned out to have failed frees its resources",
    ),
    add=(PodState.ADDED, Effect.CONFIRM, "the watch confirms the binding"),
    update=(PodState.ADDED, Effect.CONFIRM, "the API says that the pod has its node"),
    remove=(PodState.DELETED, Effect.REMOVE_FROM_NODE, "deleted before the watch confirmed it"),
    expire=(PodState.EXPIRED, Effect.REMOVE_FROM_NODE, "bound by no evidence but our own"),
)
_row(
    PodState.ADDED,
    assume=(None, Effect.REJECT, "the API has already assigned the pod"),
    finish_binding=(None, Effect.NOTHING, "the watch confirmed before the bind's answer came"),
    forget=(None, Effect.REJECT, "what the API has confirmed is not ours to forget"),
    add=(None, Effect.REPLACE, "a repeated add is the API's latest word, on any node"),
    update=(None, Effect.REPLACE, "the API's latest word, on any node"),
    remove=(PodState.DELETED, Effect.REMOVE_FROM_NODE, "the API says it is gone"),
    expire=(None, Effect.NOTHING, "confirmed while the expiry was being settled"),
)
_row(
    PodState.EXPIRED,
    assume=(PodState.ASSUMED, Effect.ADD_TO_NODE, "the pod was queued and placed again"),
    finish_binding=(None, Effect.NOTHING, "an answer too late: only the API's word counts now"),
    forget=(None, Effect.NOTHING, "its resources were freed when it expired"),
    add=(PodState.ADDED, Effect.ADD_TO_NODE, "bound after all: a late add restores the pod"),
    update=(None, Effect.REJECT, "what was never added cannot be updated"),
    remove=(None, Effect.REJECT, "what was never added cannot be removed"),
    expire=(None, Effect.NOTHING, "it has already expired"),
)
_row(
    PodState.DELETED,
    assume=(
        PodState.ASSUMED,
        Effect.ADD_TO_NODE,
        "deleted during its cycle: the bind will fail for its UID and the pod be forgotten",
    ),
    finish_binding=(None, Effect.NOTHING, "deleted before the bind's answer came"),
    forget=(None, Effect.NOTHING, "its resources were freed when it was deleted"),
    add=(PodState.ADDED, Effect.ADD_TO_NODE, "a deletion that was inferred from a stale list"),
    update=(None, Effect.REJECT, "a pod that is gone cannot be updated"),
    remove=(None, Effect.REJECT, "a pod is removed once"),
    expire=(None, Effect.NOTHING, "deleted while the expiry was being settled"),
)


def transition(state: PodState, stimulus: Stimulus) -> Transition:
    """Return the transition of a pod in ``state`` when ``stimulus`` occurs.

    Every pair has a result. With REJECT and NOTHING the state does not change.
    """
    return _TABLE[state, stimulus]
