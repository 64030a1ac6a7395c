"""Keeps users' plugins from harming the scheduler: see docs/plugin-containment.md."""

from scheduler.containment.breaker import BreakerRules
from scheduler.containment.containment import Containment
from scheduler.containment.guard import BreakerReport, ContainedGuard, PluginFailedError
from scheduler.containment.note import StateDirError
from scheduler.containment.options import (
    ContainmentOptions,
    add_containment_flags,
    containment_options,
)
from scheduler.containment.plugin_code import PluginCode
from scheduler.containment.trial import TrialLimits, TrialReport, try_source

__all__ = [
    "BreakerReport",
    "BreakerRules",
    "ContainedGuard",
    "Containment",
    "ContainmentOptions",
    "PluginCode",
    "PluginFailedError",
    "StateDirError",
    "TrialLimits",
    "TrialReport",
    "add_containment_flags",
    "containment_options",
    "try_source",
]
