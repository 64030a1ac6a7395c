"""Protects the scheduler from faulty users' plugins: see docs/plugin-containment.md.

This package contains circuit breakers, time budgets, memory limits and the watchdog. Finding and
loading plugins belongs to :mod:`scheduler.user_plugins`.
"""

from scheduler.user_plugins.containment.circuit_breaker import BreakerRules
from scheduler.user_plugins.containment.containment import Containment
from scheduler.user_plugins.containment.containment_metrics import add_containment_metrics
from scheduler.user_plugins.containment.crash_note import StateDirError
from scheduler.user_plugins.containment.guard import (
    BreakerReport,
    ContainedGuard,
    PluginFailedError,
)
from scheduler.user_plugins.containment.options import (
    ContainmentOptions,
    add_containment_flags,
    containment_options,
)
from scheduler.user_plugins.containment.plugin_code import PluginCode

__all__ = [
    "BreakerReport",
    "BreakerRules",
    "ContainedGuard",
    "Containment",
    "ContainmentOptions",
    "PluginCode",
    "PluginFailedError",
    "StateDirError",
    "add_containment_flags",
    "add_containment_metrics",
    "containment_options",
]
