"""Define what a process knows of its pool, from the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from cache.label_selectors import Selector


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """The pool of a process.

    Attributes
    ----------
    name
        As metrics and texts name it; may be empty.
    node_selector
        Selects the nodes of the pool; the empty selector selects all nodes.
    """

    name: str = ""
    node_selector: Selector = field(default_factory=Selector)

    @property
    def has_all_nodes(self) -> bool:
        """Whether there is no other pool."""
        return self.node_selector.empty

    def __str__(self) -> str:
        named = f"pool {self.name}" if self.name else "the pool"
        return f"{named} ({self.node_selector})"


ALL_NODES: Final = PoolOptions()
"""Without ``--node-selector``."""
