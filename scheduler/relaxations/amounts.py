"""The smallest amounts that are enough: how much less of a resource, how much more skew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.device_classes import may_be_devices
from scheduler.relaxations.node_options import shortfall
from scheduler.relaxations.option import LessOf, MoreSkew

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.framework.results import BoolArray, IntArray
    from scheduler.relaxations.option import Option
    from scheduler.relaxations.verifier import Verifier

_NO_LIMIT: Final = 1 << 20
"""A skew that no cluster reaches: where it is not enough, the node lacks the label."""


class Amounts:
    """Finds the smallest amounts for options that helped with the largest.

    Parameters
    ----------
    verifier
        Judges the pod with each amount that is tried.

    Notes
    -----
    *Cost*: for a resource one judgement, because the columns tell how much is lacking; for a
    constraint some ten.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._nodes = verifier.snapshot.all_nodes()
        self._made: dict[tuple[Option, int], Option] = {}

    def least_cost(self, option: Option, among: BoolArray) -> float:
        """Return what an option costs at least on some nodes, without any judgement."""
        tries = option.tries
        if isinstance(tries, LessOf):
            need = int(self._needed(tries)[among].min())
            return self._with_amount(option, need).change.cost
        if isinstance(tries, MoreSkew):
            return self._with_amount(option, 1).change.cost
        return option.change.cost

    def least(self, options: tuple[Option, ...], among: BoolArray) -> tuple[Option, ...]:
        """Return the options with the smallest amounts that open one of some nodes.

        Parameters
        ----------
        options
            Together they open one of the nodes.
        among
            bool (n_nodes,): the nodes.

        Raises
        ------
        BudgetSpentError
            When the budget is used up.
        """
        found = self._resources(options, among)
        for at, option in enumerate(found):
            if isinstance(option.tries, MoreSkew):
                found = self._least_of(found, at, _NO_LIMIT, among)
        return found

    # --- resources ----------------------------------------------------------------------------

    def _resources(self, options: tuple[Option, ...], among: BoolArray) -> tuple[Option, ...]:
        places = [at for at, each in enumerate(options) if isinstance(each.tries, LessOf)]
        if not places:
            return options
        rows = np.flatnonzero(self._verifier.opens(*options) & among)
        needed = [self._needed(options[at].tries)[rows] for at in places]
        shares = sum(
            need / _requested(options[at]) for at, need in zip(places, needed, strict=True)
        )
        best = int(np.argmin(shares))
        guess = list(options)
        for at, need in zip(places, needed, strict=True):
            guess[at] = self._with_amount(options[at], int(need[best]))
        found = options
        if self._is_enough(tuple(guess), among):
            found = tuple(guess)
            # Of what a DeviceClass provides, the columns know nothing: some of it may be enough.
            places = [at for at in places if _may_be_devices(found[at])]
        # Otherwise, pods that are nominated for the nodes need room as well.
        for at in places:
            found = self._least_of(found, at, _requested(options[at]), among)
        return found

    def _needed(self, tries: LessOf | MoreSkew | None) -> IntArray:
        """Return how much has to be given up on each node, from 1 to all of it."""
        assert isinstance(tries, LessOf)  # noqa: S101 - the callers chose it
        lacking = shortfall(self._nodes, tries.resource, tries.requested)
        return np.clip(lacking, 1, tries.requested)

    # --- search by halves ---------------------------------------------------------------------

    def _least_of(
        self, options: tuple[Option, ...], at: int, most: int, among: BoolArray
    ) -> tuple[Option, ...]:
        """Return the options with the smallest amount of one of them that is still enough."""
        base = options[at]

        def trying(amount: int) -> tuple[Option, ...]:
            return (*options[:at], self._with_amount(base, amount), *options[at + 1 :])

        if not self._is_enough(trying(most), among):
            return options
        return trying(smallest(most, lambda amount: self._is_enough(trying(amount), among)))

    def _is_enough(self, options: tuple[Option, ...], among: BoolArray) -> bool:
        return bool((self._verifier.opens(*options) & among).any())

    def _with_amount(self, option: Option, amount: int) -> Option:
        made = self._made.get((option, amount))
        if made is None:
            tries = option.tries
            if isinstance(tries, LessOf):
                made = tries.giving_up(amount, option.touches)
            else:
                assert isinstance(tries, MoreSkew)  # noqa: S101 - there are two of them
                made = tries.raised(amount, option.touches)
            self._made[option, amount] = made
        return made


def smallest(most: int, is_enough: Callable[[int], bool]) -> int:
    """Return the smallest number from 1 to ``most`` that is enough, as ``most`` is.

    *Cost*: two tries for each doubling up to the number.
    """
    low, high = 0, 1
    while high < most and not is_enough(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high


def _may_be_devices(option: Option) -> bool:
    """Return whether a whole request was given up of what may be devices."""
    tries = option.tries
    return (
        isinstance(tries, LessOf)
        and not option.change.after.strip("0")
        and may_be_devices(tries.resource)
    )


def _requested(option: Option) -> int:
    return option.tries.requested if isinstance(option.tries, LessOf) else 0
