"""Notice a step that does not end: virtual time stands still with it, and no other check is asked.

The clock here is the one of the processor time that this process gets, so that a busy machine
raises no alarm.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.storm.simulation import InvariantError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from tests.storm.simulation import Simulation

PATIENCE_S: Final = 20.0
"""Of processor time. The longest steps, full rebuilds of a cache, take well below a second."""


@contextmanager
def standstill_is_noticed(simulation: Simulation, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """End a step that goes on between two looks, `patience_s` of processor time apart.

    Only in the main thread, where signals arrive; elsewhere nothing is noticed.

    Raises
    ------
    InvariantError
        I11, raised where the process is. Whoever catches it there, a task for example, leaves it
        in :attr:`Simulation.problems`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = -1

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        if simulation.steps != seen:
            seen = simulation.steps
            return
        where = "nowhere" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        why = f"a step goes on for {patience_s:g} s of processor time, at {where}"
        simulation.broken("I11", why)
        raise InvariantError("I11", why)

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, patience_s, patience_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
