"""What another policy would have done with what a journal recorded.

The journal is read once, and two clusters follow it: the recorded one, in which each decision is
made again by the policy of then, and another one, which the placements of the other policy fill.
:mod:`scheduler.journal` reads the files and proves that a replay is exact; forecasts from the
present are in :mod:`scheduler.what_if`.
"""

from scheduler.policy_replay.command import add_policy_flags

__all__ = ["add_policy_flags"]
