"""The CPU time of the scheduling thread that one attempt may use.

A pod's own keys, terms and constraints decide what an attempt costs, and any user may write many.
Code that loops over them checks the budget in each iteration::

    for constraint in constraints:
        state.budget.check()
        ...

An attempt over its budget ends with a decision like any other: see
:mod:`scheduler.cycle.scheduling_cycle`.
"""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_NEVER_S: Final = float("inf")


class AttemptBudgetExceededError(BaseException):
    """An attempt has used up its budget.

    Not an ``Exception``, as ``asyncio.CancelledError`` is none: what contains the failures of
    plugins must not take it for one.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the attempt exceeded its budget of {limit_s:g} s")
        self.limit_s = limit_s


class Spent(NamedTuple):
    """What was decided by the time that an attempt had used, for a replay to decide the same.

    Attributes
    ----------
    limit_s
        The limit of the budget.
    ran_out_at
        From which call of :meth:`AttemptBudget.check` on it was used up; None if it was not.
    late_at
        From which call of :meth:`AttemptBudget.has_used` on some seconds were used up, by these.
    """

    limit_s: float
    ran_out_at: int | None
    late_at: Mapping[float, int]


class AttemptBudget:
    """A share of one thread's time.

    Parameters
    ----------
    limit_s
        CPU seconds of the thread that made it; infinity for no limit.
    clock
        CPU seconds of the calling thread.
    ceiling
        A clock that costs less to read and never runs slower: until it says so the limit cannot
        be reached. None for ``clock`` itself, but for the real one.

    Attributes
    ----------
    checks
        How often :meth:`check` was called: where a budget ran out is known by it, and a replay
        with :class:`ReplayedBudget` runs out at the same place.
    ran_out_at
        The number of the first check that found the budget used up; None if none has.
    questions
        How often :meth:`has_used` was called.
    was_short
        Whether an answer was given because so much time was used: what was decided then depends on
        the time that it took.

    Notes
    -----
    *Concurrency*: confined to the thread that made it, whose clock it reads.

    *Cost*: of :meth:`check`, 0.1 us as long as less time has passed than the limit; of the thread's
    clock, 1.3 us, which is read seldom after that.
    """

    __slots__ = (
        "_began_s",
        "_ceiling",
        "_clock",
        "_deadline_s",
        "_late_at",
        "_nearest_s",
        "checks",
        "limit_s",
        "questions",
        "ran_out_at",
        "was_short",
    )

    def __init__(
        self,
        limit_s: float,
        clock: Callable[[], float] = thread_time,
        ceiling: Callable[[], float] | None = None,
    ) -> None:
        if ceiling is None:
            ceiling = perf_counter if clock is thread_time else clock
        self.limit_s = limit_s
        self.checks = self.questions = 0
        self.ran_out_at: int | None = None
        self.was_short = False
        self._late_at: dict[float, int] = {}
        self._clock = clock
        unlimited = limit_s == _NEVER_S
        # Without a limit it is always 0.0, and no clock is read.
        self._ceiling = float if unlimited else ceiling
        self._deadline_s = limit_s if unlimited else clock() + limit_s
        self._began_s = limit_s if unlimited else ceiling()
        self._nearest_s = self._began_s + limit_s

    def check(self) -> None:
        """Return if the attempt may go on.

        Raises
        ------
        AttemptBudgetExceededError
            When the budget is used up.
        """
        self.checks += 1
        if self._ceiling() >= self._nearest_s:
            left_s = self._deadline_s - self._clock()
            if left_s <= 0:
                self.was_short = True
                self.ran_out_at = self.ran_out_at or self.checks
                raise AttemptBudgetExceededError(self.limit_s)
            self._nearest_s = self._ceiling() + left_s

    def glance(self) -> None:
        """Return if the attempt may go on; this check is counted only when it is the last one.

        For work that is not done at all when its outcome is remembered from another attempt: the
        looks that are counted must be the same in a replay, which runs out at the next of them.

        Raises
        ------
        AttemptBudgetExceededError
            When the budget is used up.
        """
        self.check()
        self.checks -= 1

    @contextmanager
    def exempt(self) -> Iterator[None]:
        """Exempt the code within the context from the budget.

        Only for what is built once for all pods by the first one that needs it, never for what a
        pod's own keys or terms make us build.
        """
        began_s = self._clock() if self._deadline_s != _NEVER_S else 0.0
        try:
            yield
        finally:
            if self._deadline_s != _NEVER_S:
                spent_s = self._clock() - began_s
                self._deadline_s += spent_s
                self._nearest_s += spent_s

    def has_used(self, seconds: float) -> bool:
        """Return whether more CPU time was used than some seconds, without exempt code.

        *Cost*: 0.1 us while less time has passed.
        """
        self.questions += 1
        has_used = self._ceiling() - self._began_s > seconds and self.used_s() > seconds
        if has_used:
            self.was_short = True
            self._late_at.setdefault(seconds, self.questions)
        return has_used

    def spent(self, checks: int = 0, questions: int = 0) -> Spent:
        """Return what was decided by time, after a number of checks and of questions."""
        ran_out_at = None if self.ran_out_at is None else max(self.ran_out_at - checks, 1)
        late_at = {each: max(at - questions, 1) for each, at in self._late_at.items()}
        return Spent(self.limit_s, ran_out_at, late_at)

    def used_s(self) -> float:
        """Return the CPU seconds since creation, without exempt code; 0 without a limit."""
        if self._deadline_s == _NEVER_S:
            return 0.0
        return self._clock() - (self._deadline_s - self.limit_s)


class ReplayedBudget(AttemptBudget):
    """The budget of an attempt that is replayed: it runs out where it did, however long it takes.

    Parameters
    ----------
    limit_s
        What the attempt might use.
    ran_out_at
        From which call of :meth:`check` on it was used up; None when it was not.
    late_at
        From which call of :meth:`has_used` on some seconds were used up, by these.
    """

    __slots__ = ("_runs_out_at",)

    def __init__(
        self, limit_s: float, ran_out_at: int | None, late_at: Mapping[float, int] | None = None
    ) -> None:
        super().__init__(limit_s, lambda: 0.0)
        self._runs_out_at = ran_out_at
        self._late_at = dict(late_at or {})

    def check(self) -> None:
        """Return if the replayed attempt went on here."""
        self.checks += 1
        if self._runs_out_at is not None and self.checks >= self._runs_out_at:
            self.ran_out_at = self.ran_out_at or self.checks
            raise AttemptBudgetExceededError(self.limit_s)

    def has_used(self, seconds: float) -> bool:
        """Return what was returned then."""
        self.questions += 1
        late_at = self._late_at.get(seconds)
        return late_at is not None and self.questions >= late_at

    def glance(self) -> None:
        """Return: nothing runs out here."""


class _Unlimited(AttemptBudget):
    __slots__ = ()

    def check(self) -> None:
        pass

    def glance(self) -> None:
        pass

    def has_used(self, seconds: float) -> bool:
        return False


UNLIMITED: Final[AttemptBudget] = _Unlimited(float("inf"))
"""For what-ifs at a terminal and for tests; safe to share, since nothing changes in it."""
