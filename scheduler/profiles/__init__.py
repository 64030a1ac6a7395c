"""Which profiles run, where each comes from, and how a change of them takes effect.

From the configuration file, SchedulingProfiles (``operator``) or a directory of plugins; compiled,
swapped in between two cycles, rolled back. How a profile's plugins are run belongs to
:mod:`scheduler.runtime`; the shape of the configuration to :mod:`scheduler.config`.
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
