"""What the user sees while the demo runs: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Protocol

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


class Stage(Protocol):
    """One piece of work with a known end."""

    def reach(self, done: int) -> None:
        """Show that `done` of its parts are done."""
        ...


class Display:
    """Shows one stage after another.

    Parameters
    ----------
    console
        Where to; whether it is a terminal decides how.
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    @contextlib.contextmanager
    def stage(self, what: str, total: int) -> Iterator[Stage]:
        """Show a piece of work for as long as the block runs.

        Parameters
        ----------
        what
            Its name.
        total
            Of how many parts it is.
        """
        if not self.console.is_terminal:
            lines = _Lines(self.console, what, total)
            yield lines
            lines.end()
            return
        progress = Progress(
            SpinnerColumn(finished_text="[green]✓[/]"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
        )
        with progress:
            yield _Bar(progress, f"{what:<26}", total)


class _Bar:
    def __init__(self, progress: Progress, what: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=total)

    def reach(self, done: int) -> None:
        self._progress.update(self._task, completed=done)


class _Lines:
    """A line at each quarter: enough to follow, little enough for a log."""

    def __init__(self, console: Console, what: str, total: int) -> None:
        self._console = console
        self._what = what
        self._total = total
        self._done = 0
        self._next = total // 4
        self._started_s = time.monotonic()

    def reach(self, done: int) -> None:
        self._done = done
        if self._next <= done < self._total:
            self._next = done + max(self._total // 4, 1)
            self._print(f"{done}/{self._total}")

    def end(self) -> None:
        seconds = time.monotonic() - self._started_s
        self._print(f"{self._done}/{self._total} in {seconds:.1f} s")

    def _print(self, text: str) -> None:
        self._console.print(f"{self._what}: {text}", highlight=False)
