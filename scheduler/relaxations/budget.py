"""The CPU time and the number of verifications that one search for relaxations may use."""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING, Final

from plugins.framework.attempt_budget import AttemptBudget

if TYPE_CHECKING:
    from collections.abc import Callable

CPU_S: Final = 1.0
"""CPU seconds of a search unless the caller says otherwise. With 5 000 nodes a pod with ten
requirements needs a tenth of it; a pod with 40 000 uses all of it."""

VERIFICATIONS: Final = 600
"""Runs of the filters over all nodes: what a pod with a dozen requirements needs, ten times."""


class BudgetSpentError(Exception):
    """The budget is used up; the message says which part of it, for the user."""


class Budget:
    """What one search may use.

    Parameters
    ----------
    cpu_s
        CPU seconds of the calling thread.
    verifications
        How often the filters may run over all nodes.
    clock
        CPU seconds of the calling thread.

    Notes
    -----
    *Concurrency*: confined to the thread that made it.
    """

    def __init__(
        self,
        cpu_s: float = CPU_S,
        verifications: int = VERIFICATIONS,
        clock: Callable[[], float] = thread_time,
    ) -> None:
        self._clock = clock
        self._cpu_s = cpu_s
        self._began_s = clock()
        self._most = verifications
        self.verifications = 0
        """How often the filters ran."""

    @property
    def used_s(self) -> float:
        """The CPU seconds since creation."""
        return self._clock() - self._began_s

    @property
    def left_s(self) -> float:
        """The CPU seconds that are left; at most 0 when the budget is used up."""
        return self._cpu_s - self.used_s

    def part(self, share: float) -> Budget:
        """Return a budget for a share of the time that is left, without verifications."""
        return Budget(self.left_s * share, 0, self._clock)

    def check(self) -> None:
        """Return if the search may go on.

        Raises
        ------
        BudgetSpentError
            When the CPU time is used up.
        """
        if self.left_s <= 0:
            raise BudgetSpentError(self.out_of_time)

    def take(self) -> AttemptBudget:
        """Count one verification, and return the budget for its plugins.

        Raises
        ------
        BudgetSpentError
            When either part of the budget is used up.
        """
        self.check()
        if self.verifications >= self._most:
            raise BudgetSpentError(f"the limit of {self._most} verifications was reached")
        self.verifications += 1
        return AttemptBudget(self.left_s, self._clock)

    @property
    def out_of_time(self) -> str:
        """The sentence for a search that used all of its CPU time."""
        return f"the limit of {self._cpu_s:g} s of CPU time was reached"
