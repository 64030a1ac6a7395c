"""The package reads and checks KubeSchedulerConfiguration v1, and resolves each profile's plugins.

It contains values only: nothing here starts, watches or compiles anything. Running profiles belong
to
:mod:`scheduler.profiles`, the plugins' own arguments to :mod:`plugins`.
"""

from plugins.framework.go_duration import GoDuration, parse_go_duration
from scheduler.config.config_error import ConfigError, Mistake
from scheduler.config.configuration import ClientConnection, LeaderElection, SchedulerConfig
from scheduler.config.defaults import default_config
from scheduler.config.effective_profile import (
    EffectiveProfile,
    effective_profiles,
    leave_to_extenders,
    running_profiles,
    shares_attempts,
)
from scheduler.config.extender import Extender, ExtenderTLS, ManagedResource
from scheduler.config.file_profile import Profile
from scheduler.config.ignored_fields import ignored_fields
from scheduler.config.load import load_config, parse_config, with_election
from scheduler.config.rendering import render_effective

__all__ = [
    "ClientConnection",
    "ConfigError",
    "EffectiveProfile",
    "Extender",
    "ExtenderTLS",
    "GoDuration",
    "LeaderElection",
    "ManagedResource",
    "Mistake",
    "Profile",
    "SchedulerConfig",
    "default_config",
    "effective_profiles",
    "ignored_fields",
    "leave_to_extenders",
    "load_config",
    "parse_config",
    "parse_go_duration",
    "render_effective",
    "running_profiles",
    "shares_attempts",
    "with_election",
]
