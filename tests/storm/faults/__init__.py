"""The faults F1 to F35 of docs/faults.md, as far as they can happen to an assembled Berth.

Each counts itself, so that a campaign can say what has happened how often.
"""

from __future__ import annotations

from tests.storm.faults import answers, others, processes, watches
from tests.storm.faults.registry import ACTIONS, ONLY_WITH_STANDBYS, WEIGHTS

__all__ = ["ACTIONS", "ONLY_WITH_STANDBYS", "WEIGHTS"]

_LISTED = (watches, answers, others, processes)
"""Each registers its own."""
