"""How much of the scheduling thread one attempt at one pod may use.

A pod's own keys, terms and constraints decide what an attempt costs, and anybody may write many.
Whoever loops over them asks the budget between two of them::

    for constraint in constraints:
        state.budget.check()
        ...

What runs out ends as a decision like any other: see :mod:`scheduler.scheduling_cycle`.
"""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


class AttemptBudgetExceededError(BaseException):
    """An attempt has used what it may use.

    Not an ``Exception``, as ``asyncio.CancelledError`` is none: what contains the failures of
    plugins must not take it for one.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the attempt exceeded its budget of {limit_s:g} s")
        self.limit_s = limit_s


class AttemptBudget:
    """A share of one thread's time.

    Parameters
    ----------
    limit_s
        CPU seconds of the thread that made it; infinity for no limit.
    clock
        CPU seconds of the calling thread.

    Notes
    -----
    *Concurrency*: confined to the thread that made it, whose clock it reads.

    *Cost*: of :meth:`check`, one reading of the clock, about a microsecond; next to nothing
    without a limit.
    """

    __slots__ = ("_clock", "_deadline_s", "limit_s")

    def __init__(self, limit_s: float, clock: Callable[[], float] = thread_time) -> None:
        self.limit_s = limit_s
        self._clock = clock
        self._deadline_s = float("inf") if limit_s == float("inf") else clock() + limit_s

    def check(self) -> None:
        """Return if the attempt may go on.

        Raises
        ------
        AttemptBudgetExceededError
            When the budget is used up.
        """
        if self._deadline_s != float("inf") and self._clock() >= self._deadline_s:
            raise AttemptBudgetExceededError(self.limit_s)


UNLIMITED: Final = AttemptBudget(float("inf"))
"""For what-ifs at a terminal and for tests; safe to share, since it has no state."""
