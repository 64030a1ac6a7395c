"""Format times as the API writes them.

*Source*: k8s.io/apimachinery/pkg/apis/meta/v1, Time and MicroTime (1.36).
"""

from __future__ import annotations

import time
from functools import lru_cache

_MICROS = 1_000_000


def api_time(wall_s: float) -> str:
    """Return seconds since the epoch as a ``Time``: ``2026-01-31T23:59:59Z``."""
    return f"{_to_the_second(int(wall_s))}Z"


def api_micro_time(wall_s: float) -> str:
    """Return seconds since the epoch as a ``MicroTime``: ``2026-01-31T23:59:59.000000Z``.

    All six digits are always there: the API server refuses a MicroTime without them, which is
    what ``isoformat()`` makes of a whole second.
    """
    seconds, micros = divmod(int(wall_s * _MICROS), _MICROS)
    return f"{_to_the_second(seconds)}.{micros:06d}Z"


# Under load a thousand times fall into the same second, and formatting it is what costs.
@lru_cache(maxsize=4)
def _to_the_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
