"""The forecast: the answer to a question, as one frozen value that is also its JSON form.

    {"placed": n, "refused": n, "undecided": n, "nodes": {name: n}, "reason": message,
     "parts": [{"kind", "subject", "placed", "refused", "undecided", "stayed", "nodes", "reason",
                "next", "oneMoreFits", "refusals": [{"reason", "pods", "sample"}],
                "placements": [{"pod", "from", "node"}], "placementsOmitted": n}],
     "drains": [{"node", "evicted", "daemonSetPods", "mirrorPods", "unmanaged", "blocked"}],
     "budgets": [{"budget", "allowed", "evicted", "waited", "blocked"}],
     "preempted": [{"pod", "node", "by"}], "notes": [...], "outOfTime": bool}

Lists of names are limited; the counts beside them are complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from typing import Self

MAX_PLACEMENTS: Final = 10_000
"""Placements that one part lists: 50 000 replicas would be 5 MB of JSON."""

MAX_SAMPLE: Final = 10
"""Pods that are named for each reason."""

MAX_NAMES: Final = 1_000
"""Names in any other list."""


class Placement(msgspec.Struct, frozen=True, rename={"from_node": "from"}, omit_defaults=True):
    """Where one pod would go.

    Attributes
    ----------
    pod
        ``namespace/name``; that of the pod that it replaces, where it replaces one.
    node
        Its node afterwards.
    from_node
        Its node before; empty for a pod that had none.
    """

    pod: str
    node: str
    from_node: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """Pods that would wait for one reason."""

    reason: str
    pods: int
    sample: tuple[str, ...] = ()


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """The forecast for one part of the question.

    Attributes
    ----------
    kind
        ``pending``, ``removed`` (successors of the pods of removed nodes), ``drained``, ``pods``,
        ``group``, ``preempted`` (successors of victims) or ``config``.
    subject
        What it is about: names of pods, groups or nodes.
    placed, refused, undecided
        Numbers of pods. For ``config``: those that would move, those that would find no node any
        more. Undecided are those that the time did not suffice for.
    stayed
        For ``config``: the pods whose node is as good as any other.
    nodes
        How many of the placed pods would go to each node.
    reason
        Why the first pod was refused; empty if none was.
    next
        Why one more pod or group of this kind would not fit; empty if it would, or if that was not
        decided.
    one_more_fits
        Whether one more would fit; None if that was not decided.
    """

    kind: str
    subject: str
    placed: int = 0
    refused: int = 0
    undecided: int = 0
    stayed: int = 0
    nodes: Mapping[str, int] = {}
    reason: str = ""
    next: str = ""
    one_more_fits: bool | None = None
    refusals: tuple[Refusal, ...] = ()
    placements: tuple[Placement, ...] = ()
    placements_omitted: int = 0


class Blocked(msgspec.Struct, frozen=True):
    """A pod that could not be evicted, and the budgets in its way."""

    pod: str
    budgets: tuple[str, ...]
    reason: str


class NodeDrain(msgspec.Struct, frozen=True, rename="camel"):
    """What a drain would do to the pods of one node.

    Attributes
    ----------
    evicted
        The number of pods that would be evicted, unmanaged ones included.
    daemon_set_pods, mirror_pods
        The numbers of pods that stay: ``kubectl drain`` leaves them alone.
    unmanaged
        Evicted pods that no controller replaces: the drain needs ``--force``, and they are lost.
    blocked
        The pods that no eviction is allowed for.
    """

    node: str
    evicted: int = 0
    daemon_set_pods: int = 0
    mirror_pods: int = 0
    unmanaged: tuple[str, ...] = ()
    blocked: tuple[Blocked, ...] = ()


class BudgetUse(msgspec.Struct, frozen=True):
    """How far a PodDisruptionBudget stands in the way.

    Attributes
    ----------
    budget
        ``namespace/name``.
    allowed
        The disruptions that it allows at first.
    evicted
        The evictions that used it.
    waited
        How often evictions had to wait until successors of evicted pods ran.
    blocked
        The pods that it kept from being evicted in the end.
    """

    budget: str
    allowed: int
    evicted: int = 0
    waited: int = 0
    blocked: int = 0


class Preempted(msgspec.Struct, frozen=True):
    """A pod that would be evicted for a more important one."""

    pod: str
    node: str
    by: str


class Forecast(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to a question: see the module.

    Attributes
    ----------
    placed, refused, undecided, nodes
        The sums over all parts but ``config``, whose pods run already.
    reason
        What stops the next pod: why the first pod was refused, or else why one more copy of the
        question's pods would not fit. Empty if nothing does.
    out_of_time
        Whether the time ended before everything was decided.
    """

    placed: int
    refused: int
    undecided: int
    nodes: Mapping[str, int]
    reason: str
    parts: tuple[Part, ...] = ()
    drains: tuple[NodeDrain, ...] = ()
    budgets: tuple[BudgetUse, ...] = ()
    preempted: tuple[Preempted, ...] = ()
    notes: tuple[str, ...] = ()
    out_of_time: bool = False

    @classmethod
    def of(
        cls,
        parts: tuple[Part, ...],
        drains: tuple[NodeDrain, ...],
        budgets: tuple[BudgetUse, ...],
        preempted: tuple[Preempted, ...],
        notes: tuple[str, ...],
    ) -> Self:
        """Return the forecast of some parts."""
        counted = [part for part in parts if part.kind != CONFIG]
        nodes: dict[str, int] = {}
        for part in counted:
            for name, count in part.nodes.items():
                nodes[name] = nodes.get(name, 0) + count
        reason = next((part.reason for part in parts if part.reason), "")
        return cls(
            sum(part.placed for part in counted),
            sum(part.refused for part in counted),
            sum(part.undecided for part in counted),
            nodes,
            reason or next((part.next for part in parts if part.next), ""),
            parts,
            drains,
            budgets,
            preempted,
            notes,
            any(part.undecided for part in parts),
        )


CONFIG: Final = "config"
DRAINED: Final = "drained"
GROUP: Final = "group"
PENDING: Final = "pending"
PODS: Final = "pods"
PREEMPTED: Final = "preempted"
REMOVED: Final = "removed"


def forecast_json(forecast: Forecast) -> bytes:
    """Return a forecast as one line of JSON without a newline."""
    return msgspec.json.encode(forecast)


def without_names(forecast: Forecast) -> Forecast:
    """Return a forecast for readers who may see neither nodes nor pods of others: counts only."""
    own = without_others(forecast)
    parts = tuple(
        replace(part, nodes={}, placements=(), placements_omitted=part.placed) for part in own.parts
    )
    drains = tuple(replace(each, node="") for each in own.drains)
    return replace(own, nodes={}, parts=parts, drains=drains)


def without_others(forecast: Forecast) -> Forecast:
    """Return a forecast for readers who may see nodes, and no pods but those of the question.

    Of the question's own pods and groups the reasons stay, because they count nodes. Those of other
    pods may name them and their claims.
    """

    def anonymous(part: Part) -> Part:
        if part.kind in (PODS, GROUP):
            return part
        return replace(
            part,
            subject="",
            reason="",
            refusals=(),
            nodes={},
            placements=(),
            placements_omitted=part.placed,
        )

    parts = tuple(map(anonymous, forecast.parts))
    own_nodes = {name for part in parts for name in part.nodes}
    return replace(
        forecast,
        nodes={name: count for name, count in forecast.nodes.items() if name in own_nodes},
        reason=next((reason for each in parts if (reason := each.reason or each.next)), ""),
        parts=parts,
        drains=tuple(replace(each, unmanaged=(), blocked=()) for each in forecast.drains),
        budgets=(),
        preempted=tuple(Preempted("", "", each.by) for each in forecast.preempted),
    )
