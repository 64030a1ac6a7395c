"""How long the search of devices on one node may take."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from cache.value import MutableValue
from plugins.dynamic_resources.errors import SearchCancelledError, SearchTimeoutError
from plugins.framework.attempt_budget import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.framework.attempt_budget import AttemptBudget

_NEVER_S: Final = float("inf")


class SearchTimes(MutableValue, eq=False):
    """The time that searches take. A journal and a replay put functions of their own here.

    Attributes
    ----------
    clock
        Monotonic seconds.
    on_timeout
        Receives the UID of a pod and the name of a node when a search takes too long.
    has_timed_out
        Returns whether a search for the pod with this UID on the node with this name took too long
        in the decision that is replayed.
    """

    clock: Callable[[], float] = perf_counter
    on_timeout: Callable[[str, str], object] = lambda *_: None
    has_timed_out: Callable[[str, str], bool] = lambda *_: False


class Deadline:
    """The end of one search, and the budget of the attempt that it is a part of.

    Parameters
    ----------
    limit_s
        The seconds that the search may take from now on; 0 for no limit.
    clock
        Monotonic seconds.
    budget
        The budget of the attempt, which is checked at each step.
    is_cancelled
        Returns whether the search is to be stopped; None for a search that is never cancelled.
    """

    __slots__ = ("_budget", "_clock", "_ends_s", "_is_cancelled")

    def __init__(
        self,
        limit_s: float,
        clock: Callable[[], float],
        budget: AttemptBudget = UNLIMITED,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self._budget = budget
        self._is_cancelled = is_cancelled
        self._clock = clock
        self._ends_s = clock() + limit_s if limit_s else _NEVER_S

    def check(self) -> None:
        """Return if the search may go on.

        Raises
        ------
        SearchTimeoutError
            When the time is up.
        SearchCancelledError
            When the search was cancelled.
        AttemptBudgetExceededError
            When the attempt has used up its budget.
        """
        # Another attempt may have kept the result: a replay must not count on these checks.
        self._budget.glance()
        if self._ends_s != _NEVER_S and self._clock() >= self._ends_s:
            raise SearchTimeoutError
        if self._is_cancelled is not None and self._is_cancelled():
            raise SearchCancelledError


NO_DEADLINE: Final = Deadline(0.0, lambda: 0.0)
"""For tests and for what-ifs at a terminal."""
