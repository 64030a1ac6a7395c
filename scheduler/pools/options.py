"""Define what a process knows of its pool and of the others, from the command line."""

from __future__ import annotations

from typing import Final

import msgspec

from cache.label_selectors import Selector
from cache.value import Value

HAND_OVER_AFTER_S: Final = 60.0
"""How long a pod is refused before it goes to the next pool. An autoscaler that has nodes to add
has begun by then, and the pod should stay."""

MAX_PAUSE_S: Final = 3600.0
"""The longest pause between two rounds through all pools."""


class Pool(Value, frozen=True):
    """One of several disjoint sets of nodes.

    Attributes
    ----------
    name
        Unique among the pools.
    node_selector
        Selects its nodes.
    scheduler_names
        Which pods its schedulers look after.
    lease
        The Lease of its leader.
    """

    name: str
    node_selector: Selector
    scheduler_names: frozenset[str]
    lease: str = ""


class PoolOptions(Value, frozen=True):
    """The pool of a process.

    Attributes
    ----------
    name
        As metrics and texts name it; may be empty where no other pool is known.
    node_selector
        Selects the nodes of the pool; the empty selector selects all nodes.
    topology_keys
        Labels of nodes whose domains may be looked at by themselves in each pool.
    pools
        All pools in the order in which a pod goes from one to the next; empty where others are
        not known.
    hand_over_after_s
        How long a pod is refused before it goes to the next pool.
    """

    name: str = ""
    node_selector: Selector = msgspec.field(default_factory=Selector)
    topology_keys: frozenset[str] = frozenset()
    pools: tuple[Pool, ...] = ()
    hand_over_after_s: float = HAND_OVER_AFTER_S

    @property
    def has_all_nodes(self) -> bool:
        """Whether there is no other pool."""
        return self.node_selector.empty

    def __str__(self) -> str:
        named = f"pool {self.name}" if self.name else "the pool"
        return f"{named} ({self.node_selector})"


ALL_NODES: Final = PoolOptions()
"""Without ``--node-selector``."""
