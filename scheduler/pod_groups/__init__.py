"""Decide about groups of pods: which members go where, or why the group as a whole does not fit.

Only the trial over the snapshot is here; :mod:`scheduler.cycle.group_cycle` executes its result.
"""
