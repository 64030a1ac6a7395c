"""Selects the nodes that count for a constraint, for all rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cache.columns import NodesView
from cache.label_columns import ABSENT
from plugins.framework.attempt_budget import UNLIMITED
from plugins.required_node_affinity import required_node_affinity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.columns import Columns
    from cache.objects import PodSpec
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray
    from plugins.pod_topology_spread.constraints import Constraint
    from plugins.required_node_affinity import RequiredNodeAffinity
    from plugins.taint_tables import TaintTables


class Inclusion:
    """The nodes that count for one pod.

    Parameters
    ----------
    columns
        All nodes.
    spec
        The pod's.
    taint_tables
        Judges hard taints, shared by all pods.
    affinity
        The pod's required node affinity; None to compile it when it is needed.
    budget
        Of the attempt.

    Notes
    -----
    Each mask is computed once, and only if some constraint needs it. None stands for every
    node.
    """

    def __init__(
        self,
        columns: Columns,
        spec: PodSpec,
        taint_tables: TaintTables,
        affinity: RequiredNodeAffinity | None = None,
        budget: AttemptBudget = UNLIMITED,
    ) -> None:
        self._nodes = NodesView(columns)
        self._spec = spec
        self._required = affinity
        self._budget = budget
        self._taint_tables = taint_tables
        self._affine: tuple[BoolArray | None] | None = None
        self._tolerated: tuple[BoolArray | None] | None = None

    def mask(self, constraint: Constraint, labelled: BoolArray | None) -> BoolArray | None:
        """Return bool (n_nodes,): the nodes that count, of those that are ``labelled``."""
        mask = labelled
        if constraint.honors_affinity:
            if self._affine is None:
                required = self._required or required_node_affinity(self._spec, self._budget)
                self._affine = (required.mask(self._nodes, self._budget),)
            mask = _both(mask, self._affine[0])
        if constraint.honors_taints:
            if self._tolerated is None:
                tolerations = self._spec.tolerations
                self._tolerated = (self._taint_tables.passed(self._nodes, tolerations),)
            mask = _both(mask, self._tolerated[0])
        return mask


def with_all_labels(columns: Columns, constraints: Iterable[Constraint]) -> BoolArray | None:
    """Return bool (n_nodes,): the nodes with the topology keys of all constraints.

    None stands for every node.

    *Cost*: constant when every node has the keys, or none has one of them; else a pass over a
    column for each key that some nodes lack.
    """
    keys = dict.fromkeys(each.topology_key for each in constraints)
    known = columns.label_keys
    if any(key not in known for key in keys):
        return np.zeros(len(columns), dtype=np.bool_)
    mask: BoolArray | None = None
    for key in keys:
        if not is_on_every_node(columns, key):
            _, ids = columns.labels.get(key)
            present: BoolArray = ids != ABSENT
            mask = _both(mask, present)
    return mask


def is_on_every_node(columns: Columns, key: str) -> bool:
    """Return whether every node has a label key."""
    return columns.label_keys.get(key, 0) == len(columns)


def _both(one: BoolArray | None, other: BoolArray | None) -> BoolArray | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other
