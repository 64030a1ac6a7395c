"""Keeps users' plugins from harming the scheduler: see docs/plugin-containment.md."""

from scheduler.containment.breaker import BreakerRules
from scheduler.containment.containment import Containment
from scheduler.containment.containment_metrics import ContainmentMetrics
from scheduler.containment.guard import BreakerReport, ContainedGuard, PluginFailedError
from scheduler.containment.note import StateDirError
from scheduler.containment.options import (
    ContainmentOptions,
    add_containment_flags,
    containment_options,
)
from scheduler.containment.plugin_code import PluginCode

__all__ = [
    "BreakerReport",
    "BreakerRules",
    "ContainedGuard",
    "Containment",
    "ContainmentMetrics",
    "ContainmentOptions",
    "PluginCode",
    "PluginFailedError",
    "StateDirError",
    "add_containment_flags",
    "containment_options",
]
