"""Live profiles: which profiles run, where they come from, and how a change takes effect.

Profiles come from the configuration file, from SchedulingProfiles (``operator``) or from a
directory of plugins. This package compiles them, swaps them in between two cycles and rolls them
back. Running a profile's plugins belongs to :mod:`scheduler.runtime`, the format of the
configuration to :mod:`scheduler.config`.
"""

from scheduler.profiles.profile_spec import (
    Mode,
    ProfileObject,
    ProfileVersion,
    PythonSource,
    ShadowOptions,
)
from scheduler.profiles.profile_status import Condition, ProfileStatus

__all__ = [
    "Condition",
    "Mode",
    "ProfileObject",
    "ProfileStatus",
    "ProfileVersion",
    "PythonSource",
    "ShadowOptions",
]
