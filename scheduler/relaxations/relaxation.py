"""The values of a search for relaxations: changes, node groups, new nodes, deciding plugins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.relaxations.costs import Kind


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the pod, or of one volume.

    Parameters
    ----------
    kind
        What is changed.
    path
        The field of the pod (of the PersistentVolume for ``volumePlace``).
    subject
        What distinguishes the change from others of its kind: the resource, the taint, the key.
    before, after
        The value now and then; empty for none.
    text
        A phrase for people: "request 300m less cpu (3700m instead of 4)".
    cost
        See :mod:`scheduler.relaxations.costs`.
    """

    kind: Kind
    path: str
    subject: str
    before: str
    after: str
    text: str
    cost: float


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Changes with which the pod would be placed on a node of a group.

    Parameters
    ----------
    changes
        One change or two; none where only preemption is needed.
    num_nodes
        The number of nodes of the group that would then be feasible.
    nodes
        Some of them, by name.
    victims
        The pods that would be evicted from the first of ``nodes``, by ``namespace/name``; the most
        important ones, if there are many.
    num_victims
        The number of all of them.
    """

    changes: tuple[Change, ...]
    num_nodes: int
    nodes: tuple[str, ...]
    victims: tuple[str, ...] = ()
    num_victims: int = 0

    @property
    def cost(self) -> float:
        """The sum of the costs of the changes."""
        return sum(change.cost for change in self.changes)


@dataclass(frozen=True, slots=True)
class Reason:
    """What one plugin says of the nodes of a group."""

    plugin: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """The nodes that the same plugins reject for the same reasons.

    Parameters
    ----------
    relaxations
        The cheapest first; empty where no change and no pair of changes helps.
    """

    reasons: tuple[Reason, ...]
    num_nodes: int
    nodes: tuple[str, ...]
    relaxations: tuple[Relaxation, ...] = ()


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that does not exist and could run the pod.

    Parameters
    ----------
    like
        The node whose allocatable amounts, labels and taints it has; empty for a new shape.
    allocatable
        What the pod needs of it, by resource.
    labels
        The labels that it needs.
    """

    like: str
    allocatable: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Instead:
    """What would have let the runner-up win.

    Parameters
    ----------
    kind
        ``weight``, ``preference`` or ``pod``.
    subject
        The plugin, the field of the pod, or the pod on the runner-up.
    text
        A phrase for people.
    value
        The weight; 0 for a plugin that does not score.
    """

    kind: str
    subject: str
    text: str
    value: int = 0


@dataclass(frozen=True, slots=True)
class Deciding:
    """Why a node won.

    Parameters
    ----------
    node, total
        The winner: the node with the highest score, or the node that the pod is on.
    runner_up, runner_up_total
        The best of the other nodes; empty if no other node is feasible.
    margins
        By plugin, how much higher its weighted score of the winner is; plugins without a difference
        are left out.
    decided_by
        The plugins without each of which the winner would have lost or shared the first place; the
        largest margin first.
    instead
        What would have let the runner-up win, as verified.
    """

    node: str
    total: int
    runner_up: str = ""
    runner_up_total: int = 0
    margins: Mapping[str, int] | None = None
    decided_by: tuple[str, ...] = ()
    instead: tuple[Instead, ...] = ()

    def without_names(self) -> Deciding:
        """Return the same without names of nodes and pods."""
        instead = tuple(each for each in self.instead if each.kind != "pod")
        runner_up = self.runner_up and "the runner-up"
        return replace(self, node="the chosen node", runner_up=runner_up, instead=instead)


@dataclass(frozen=True, slots=True)
class Relaxations:
    """The result of a search for one pod.

    Parameters
    ----------
    groups
        The nodes by reason, largest group first; empty if the pod would be placed.
    num_other_groups
        Groups beyond the limit, for which nothing was searched.
    new_node
        None if none was found, or if the pod would be placed.
    deciding
        Why the chosen node won; None if no node is feasible.
    notes
        What was not looked at, and why.
    verifications, cpu_s
        What the search took.
    """

    pod_key: str
    groups: tuple[NodeGroup, ...] = ()
    num_other_groups: int = 0
    new_node: NewNode | None = None
    deciding: Deciding | None = None
    notes: tuple[str, ...] = ()
    verifications: int = 0
    cpu_s: float = 0.0

    @property
    def helps(self) -> bool:
        """Whether at least one node group got a relaxation."""
        return any(group.relaxations for group in self.groups)


def without_names(found: Relaxations) -> Relaxations:
    """Return the result without names of nodes and of other pods, for users who may not see them.

    Numbers, changes and amounts stay.
    """
    groups = tuple(
        replace(
            group,
            nodes=(),
            relaxations=tuple(replace(each, nodes=(), victims=()) for each in group.relaxations),
        )
        for group in found.groups
    )
    new_node = found.new_node
    if new_node is not None and new_node.like:
        new_node = replace(new_node, like="another node")
    deciding = None if found.deciding is None else found.deciding.without_names()
    return replace(found, groups=groups, new_node=new_node, deciding=deciding)
