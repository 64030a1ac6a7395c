"""Berth without one of its protections: what the simulation must notice.

Each mutation takes one protection away: the fence before a write, the UID in a binding, the undo
after Reserve. Some are those of :mod:`tests.regressions.broken_variants`, which a text scenario
notices each. Where no world breaks a promise without it, either the worlds lack something, or the
protection is not needed.
"""

from __future__ import annotations

from tests.storm.mutations import binding, evicting, guarding, knowing, leading, queueing, step7
from tests.storm.mutations.registry import FORMER, MUTATIONS, Mutation, without

__all__ = ["FORMER", "MUTATIONS", "Mutation", "without"]

_LISTED = (leading, binding, knowing, queueing, evicting, guarding, step7)
"""Each registers its own."""
