"""Times as the API writes them, in seconds since the epoch."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from cache.ages import AGES

NO_TIME: Final = math.inf
"""For a text that is no time."""

MAX_TIMES: Final = 8192
"""The cache of parsed times: 2 MiB. Every second adds a new time."""

_LONGEST: Final = 64


def parsed_time_s(text: str) -> float:
    """Return an RFC 3339 time in seconds since the epoch; `NO_TIME` for an invalid time."""
    return _parsed_time_s(text) if len(text) <= _LONGEST else _parsed_time_s.__wrapped__(text)


@AGES.forgets(MAX_TIMES)
def _parsed_time_s(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return NO_TIME
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
