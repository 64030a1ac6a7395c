"""Tries plugins before they are used: in a child process, against what every plugin must keep to.

Imported by that child, which has to start quickly: so there is little here.
"""

from scheduler.user_plugins.plugin_trial.trial import TrialReport, try_source
from scheduler.user_plugins.plugin_trial.trial_messages import ClusterCopy, TrialLimits

__all__ = ["ClusterCopy", "TrialLimits", "TrialReport", "try_source"]
