"""Times as the page needs them: from the API's texts to seconds, and to words for people."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final


@lru_cache(maxsize=4096)
def seconds_of(text: str | None) -> float:
    """Return seconds since the epoch; 0 for a text that is absent or no time."""
    if not text:
        return 0.0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def clock(seconds: float) -> str:
    """Return a moment as ``10:31:07``, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def day_and_clock(seconds: float) -> str:
    """Return a moment as ``2026-11-23 10:31:07``, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def short_time(text: str) -> str:
    """Return a time of the API without its year: ``11-23 10:31:07``."""
    return text[5:19].replace("T", " ") if seconds_of(text) else text[:40]


_UNITS: Final = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))


def span(seconds: float) -> str:
    """Return a duration in its two largest units: ``45s``, ``3m 20s``, ``2h 5m``, ``3d 4h``."""
    total = int(max(seconds, 0))
    for size, unit, smaller, part in _UNITS:
        if total >= size:
            rest = total % size // smaller
            return f"{total // size}{unit} {rest}{part}" if rest else f"{total // size}{unit}"
    return f"{total}s"
