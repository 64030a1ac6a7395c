"""Drops the series of profiles that are gone, some others after them.

Whoever may make SchedulingProfiles makes names, and each name has some hundred series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from scheduler.metrics.cycle_metrics import CycleMetrics
    from scheduler.metrics.instruments import Registry

GONE_KEPT: Final = 16
"""Profiles that are gone and whose series stay, to be scraped once more: a megabyte at most."""

_LABEL: Final = "profile"


class GoneProfiles:
    """Which profiles have series and are not in force any more.

    Notes
    -----
    *Concurrency*: confined to the thread that folds metrics.
    """

    def __init__(self, registry: Registry, cycles: CycleMetrics) -> None:
        self._registry = registry
        self._cycles = cycles
        self._names: Callable[[], Set[str]] | None = None
        self._in_force: Set[str] = frozenset()
        self._gone: list[str] = []

    def watch(self, names: Callable[[], Set[str]]) -> None:
        """Name whom to ask which profiles are in force."""
        self._names = names

    def forget(self) -> None:
        """Drop series when other profiles have come into force, but for those gone last.

        *Cost*: next to nothing while the profiles are the same, else a pass over all series.
        """
        if self._names is None:
            return
        in_force = self._names()
        if in_force == self._in_force:
            return
        self._in_force = in_force
        # A binding that outlasts its profile makes its series anew: so all are looked at.
        gone = self._registry.values_of(_LABEL) - in_force
        known = [name for name in self._gone if name in gone]
        self._gone = known + sorted(gone.difference(known))
        dropped = set(self._gone[:-GONE_KEPT])
        if dropped:
            self._registry.drop(_LABEL, dropped)
            self._cycles.forget_profiles(dropped)
