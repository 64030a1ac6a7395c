"""A change that can be tried: what it does to the pod, and which plugins it may satisfy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from scheduler.relaxations.costs import Kind, request_cost, skew_cost
from scheduler.relaxations.relaxation import Change
from scheduler.relaxations.requests import amount_text, requesting

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod, TopologySpreadConstraint
    from cache.storage_objects import PersistentVolume


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """A change to try. Two options are the same only if they are the same object.

    Parameters
    ----------
    edit
        Returns the changed pod. Edits find what they change by identity or by name, so that they
        can follow each other in any order.
    touches
        The plugins whose verdicts it may change; a search for pairs leaves out the others.
    volume
        The PersistentVolume as it would have to be; None for a change of the pod alone.
    tries
        The resource or the constraint of which less may be enough; None for all or nothing.
    """

    change: Change
    edit: Callable[[Pod], Pod]
    touches: frozenset[str]
    volume: PersistentVolume | None = None
    tries: LessOf | MoreSkew | None = None


@dataclass(frozen=True, slots=True)
class LessOf:
    """A resource of which the pod could request less.

    Parameters
    ----------
    requested
        What it requests now: milli-CPU, bytes or pieces.
    """

    resource: str
    requested: int

    def giving_up(self, amount: int, touches: frozenset[str]) -> Option:
        """Return the option to request less by an amount, from 1 to ``requested``."""
        name, left = self.resource, self.requested - amount
        now, then = amount_text(name, self.requested), amount_text(name, left)
        text = f"request {amount_text(name, amount)} less {name} ({then} instead of {now})"
        if not left:
            text = f"request no {name} (now {now})"
        cost = request_cost(amount, self.requested)
        change = Change(
            Kind.RESOURCE, f"spec.containers[*].resources.requests[{name}]", name, now, then,
            text, cost,
        )  # fmt: skip
        edit = partial(requesting, resource=name, target=left)
        return Option(change, edit, touches, tries=self)


@dataclass(frozen=True, slots=True)
class MoreSkew:
    """A spread constraint with a ``maxSkew`` that could be larger."""

    constraint: TopologySpreadConstraint
    index: int

    def raised(self, more: int, touches: frozenset[str]) -> Option:
        """Return the option of a ``maxSkew`` that is larger by at least 1."""
        old, key = self.constraint, self.constraint.topology_key
        most = old.max_skew + more
        text = f"maxSkew {most} instead of {old.max_skew} for {key}"
        path = f"spec.topologySpreadConstraints[{self.index}].maxSkew"
        change = Change(
            Kind.MAX_SKEW, path, key, str(old.max_skew), str(most), text, skew_cost(more)
        )

        def edit(pod: Pod) -> Pod:
            constraints = tuple(
                replace(each, max_skew=most) if each is old else each
                for each in pod.spec.topology_spread_constraints
            )
            return replace(pod, spec=replace(pod.spec, topology_spread_constraints=constraints))

        return Option(change, edit, touches, tries=self)
