"""Look after groups once a second on the event loop, while this process schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from scheduler.process.periodic_task import PeriodicTask

if TYPE_CHECKING:
    from scheduler.cycle.held_groups import HeldGroups
    from scheduler.cycle.partial_gangs import PartialGangs
    from scheduler.process.ports import Executor

PERIOD_S: Final = 1.0

log = structlog.get_logger(__name__)


class GroupRounds:
    """Runs the rounds of held groups and of partial gangs.

    Attributes
    ----------
    held
        Looks after the groups that cannot be tried.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, executor: Executor, held: HeldGroups, partial: PartialGangs) -> None:
        self.held = held
        self._partial = partial
        self._task = PeriodicTask(self._round, executor.sleep)

    def start(self) -> None:
        """Begin; for a process that leads."""
        self._task.start(PERIOD_S)

    async def stop(self) -> None:
        """End, and cancel evictions under way."""
        await self._task.stop()
        await self._partial.stop()

    async def _round(self) -> float:
        for part in (self.held, self._partial):
            try:
                part.round()
            except Exception:
                log.exception("a round over pod groups failed")
        return PERIOD_S
