"""The status of a SchedulingProfile as values: Accepted, Active and Degraded with reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.value import Value

if TYPE_CHECKING:
    from scheduler.config import Mistake
    from scheduler.profiles.profile_spec import ProfileVersion

# Reasons of conditions: programs read them, so they must not change.
VALID: Final = "Valid"
INVALID: Final = "Invalid"
CONFLICT: Final = "Conflict"
RUNNING: Final = "Running"
SHADOWING: Final = "Shadowing"
NOT_ACCEPTED: Final = "NotAccepted"
LAST_GOOD: Final = "LastGoodRunning"
PLUGIN_FAILING: Final = "PluginFailing"
AS_EXPECTED: Final = "AsExpected"
NOT_RUNNING: Final = "NotRunning"


class Condition(Value, frozen=True):
    """A condition of the API without its type and times."""

    status: bool
    reason: str
    """A word in CamelCase for programs."""
    message: str = ""
    """A text for people with the path of each mistake: ``spec.plugins.score.enabled[0].name``."""


class ProfileStatus(Value, frozen=True):
    """The status of one SchedulingProfile. Immutable.

    Parameters
    ----------
    version
        The newest version.
    accepted
        Whether the newest version can be used.
    active
        Whether a generation of this SchedulingProfile decides over pods.
    degraded
        Whether there is a problem while the last good generation, or another profile, keeps
        running.
    active_generation
        The generation that decides; None if no generation decides.
    running_plugins
        The plugins of that generation, in order of first use.
    mistakes
        The mistakes of the newest version with their paths.
    """

    version: ProfileVersion
    accepted: Condition
    active: Condition
    degraded: Condition
    active_generation: int | None = None
    running_plugins: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
