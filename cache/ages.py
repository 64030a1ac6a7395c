"""Ages: periods of some minutes, after which unused cached results are dropped.

A limit in bytes bounds the size of a cache, not its lifetime: below the limit, results computed
for deleted objects would stay until the process ends. Cached results therefore expire with age.
A component that has a clock begins the ages; each cache compares its own age with the number here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import _lru_cache_wrapper

P = ParamSpec("P")
R = TypeVar("R")

AGE_S: Final = 300.0
"""How long an age lasts: the pace at which the queue tries hopeless pods again, and more than what
is in use is ever left alone."""


class Ages:
    """The number of the current age, and the functions whose results are dropped with each age.

    Notes
    -----
    *Concurrency*: one thread begins the ages; any thread may read.
    """

    __slots__ = ("_forgetful", "number")

    def __init__(self) -> None:
        self.number = 0
        self._forgetful: list[_lru_cache_wrapper[Any]] = []

    def begin(self) -> None:
        """Begin the next age.

        *Cost*: some 50 ns for each cached result of a function.
        """
        self.number += 1
        for function in self._forgetful:
            function.cache_clear()

    def forgets(self, maxsize: int) -> Callable[[Callable[P, R]], _lru_cache_wrapper[R]]:
        """Return a decorator like ``functools.lru_cache`` that keeps results for at most one age.

        Use it for results that are quick to compute, from arguments of limited size.
        """

        def decorate(function: Callable[P, R]) -> _lru_cache_wrapper[R]:
            remembering = lru_cache(maxsize)(function)
            self._forgetful.append(remembering)
            return remembering

        return decorate


AGES: Final = Ages()
"""Those of the process."""
