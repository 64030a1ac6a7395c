"""What became of a SchedulingProfile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scheduler.config import Mistake
    from scheduler.profiles.profile_spec import ProfileVersion

# Reasons of conditions: for programs, so they never change.
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


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as the API has it, without its type and times."""

    status: bool
    reason: str
    """One word for programs."""
    message: str = ""
    """For people; names the path of each mistake, as in ``spec.plugins.score.enabled[0].name``."""


@dataclass(frozen=True, slots=True)
class ProfileStatus:
    """The state of one SchedulingProfile. Immutable.

    Parameters
    ----------
    version
        The newest one.
    accepted
        Whether it can be used.
    active
        Whether a generation of this SchedulingProfile decides over pods.
    degraded
        Whether something is wrong while a last good generation, or another profile, goes on.
    active_generation
        The generation that decides; None if none does.
    running_plugins
        The plugins of that generation, in order of first use.
    mistakes
        What is wrong with the newest version, each with its path.
    """

    version: ProfileVersion
    accepted: Condition
    active: Condition
    degraded: Condition
    active_generation: int | None = None
    running_plugins: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
