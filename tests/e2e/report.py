"""What a run tells its reader: as it happens, and in one table at the end."""

from __future__ import annotations

import datetime as dt
import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator


class Report:
    """Lines under headings.

    Concurrency
    -----------
    One thread.
    """

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._facts: list[tuple[str, str]] = []

    def heading(self, text: str) -> None:
        """Begin a phase."""
        self._write(f"\n== {text} ({time.monotonic() - self._started:.0f} s)")

    def show(self, text: str) -> None:
        """Print a block as it is, such as what a command printed."""
        self._write("\n".join(f"   {line}" for line in text.rstrip().splitlines()))

    def fact(self, what: str, value: str) -> None:
        """Print one fact, and again in the table at the end."""
        self._facts.append((what, value))
        self._write(f"   {what}: {value}")

    def table(self) -> Iterator[str]:
        """Yield the lines of the table."""
        width = max((len(what) for what, _ in self._facts), default=0)
        for what, value in self._facts:
            yield f"{what.ljust(width)}  {value}"

    def _write(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def now() -> dt.datetime:
    """Return the time as the audit log tells it."""
    return dt.datetime.now(dt.UTC)
