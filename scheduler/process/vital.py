"""Watch the vital threads and tasks: if one dies, the process ends.

A leader whose scheduling thread is dead would keep its lease and place nothing, for ever. So
every thread and task that runs until shutdown is watched, and its death ends the process with a
status that is not 0; the kubelet restarts it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    OnDeath: TypeAlias = Callable[[str, BaseException], None]


class VitalThread(threading.Thread):
    """A daemon thread whose death is reported.

    Parameters
    ----------
    run
        What it does; it ends when that returns.
    on_death
        Called on the thread with its name and the exception that ended it, ``SystemExit`` included.
    """

    def __init__(self, run: Callable[[], None], name: str, on_death: OnDeath) -> None:
        super().__init__(name=name, daemon=True)
        self._do = run
        self._on_death = on_death

    def run(self) -> None:
        """Do what it is there for; called by the thread itself."""
        try:
            self._do()
        except BaseException as error:  # noqa: BLE001 - whatever it is, nobody else would notice
            self._on_death(self.name, error)


def watch_task(task: asyncio.Task[None], on_death: OnDeath) -> None:
    """Report a task that ends without having been cancelled, by its name."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            on_death(task.get_name(), task.exception() or RuntimeError("it returned"))

    task.add_done_callback(ended)


def no_death(name: str, error: BaseException) -> None:
    """Raise the error where nobody watches, as a thread or a task does by itself."""
    raise error
