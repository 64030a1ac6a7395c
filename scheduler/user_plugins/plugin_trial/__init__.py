"""Trials of users' plugins: a child process runs the conformance checks before a plugin is used.

The child imports this file and has to start quickly, so the file imports nothing.
"""

from scheduler.user_plugins.plugin_trial.trial import TrialReport, try_source
from scheduler.user_plugins.plugin_trial.trial_messages import ClusterCopy, TrialLimits

__all__ = ["ClusterCopy", "TrialLimits", "TrialReport", "try_source"]
