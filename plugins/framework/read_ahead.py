"""Plugins that prepare data for all pods while no pod waits for a decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cache.columns import NodesView
    from plugins.framework.attempt_budget import AttemptBudget


class ReadAheadPlugin(ABC):
    """A plugin whose first pods would wait for data that do not depend on them."""

    @abstractmethod
    def read_ahead(self, nodes: NodesView, budget: AttemptBudget) -> None:
        """Prepare what is not prepared yet; what was done before the budget ran out remains done.

        Called on the scheduling thread between cycles, again and again.

        Parameters
        ----------
        nodes
            All nodes.

        Raises
        ------
        AttemptBudgetExceededError
            When the budget is used up before all is prepared.

        Notes
        -----
        *Cost*: next to nothing if nothing has changed.
        """
