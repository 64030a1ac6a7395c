"""The newest version and the last good version of a SchedulingProfile, and the status of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.value import Value
from scheduler.profiles import profile_status as reasons
from scheduler.profiles.profile_spec import Mode
from scheduler.profiles.profile_status import Condition, ProfileStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from scheduler.config import EffectiveProfile, Mistake
    from scheduler.decision.profile_origin import PolicyOrigin
    from scheduler.profiles.profile_spec import ProfileVersion
    from scheduler.runtime.framework_runner import FrameworkRunner

_MAX_LISTED: Final = 10
"""Maximum number of mistakes in the message of a condition."""


class Running(Value, frozen=True):
    """A runnable profile with the effective profile from which it was built."""

    effective: EffectiveProfile
    framework: FrameworkRunner

    @property
    def origin(self) -> PolicyOrigin:
        """The origin of the profile."""
        return self.framework.policy


class Resource:
    """The state of one SchedulingProfile.

    Attributes
    ----------
    version
        The newest version.
    mistakes
        The mistakes of the newest version; empty if it can be used.
    good_version
        The newest version that could be used.
    good
        The profile that was built from it.

    Notes
    -----
    *Concurrency*: protected by the lock of
    :class:`~scheduler.profiles.known_profiles.KnownProfiles`.
    """

    def __init__(self, version: ProfileVersion) -> None:
        self.version = version
        self.mistakes: tuple[Mistake, ...] = ()
        self.good_version: ProfileVersion | None = None
        self.good: Running | None = None

    @property
    def wants(self) -> str | None:
        """The schedulerName that the profile can serve; None if unusable or in shadow mode."""
        version = self.good_version
        if self.good is None or version is None or version.mode is Mode.SHADOW:
            return None
        return self.good.effective.scheduler_name

    def status(
        self,
        decides: Mapping[str, Resource],
        of_file: Collection[str],
        troubles: Mapping[str, str],
    ) -> ProfileStatus:
        """Return the status of the SchedulingProfile.

        Parameters
        ----------
        decides
            The SchedulingProfile that decides, by schedulerName.
        of_file
            The schedulerNames of the configuration file.
        troubles
            The problem of each failing plugin, by the plugin's name.
        """
        name = self.wants
        winner = None if name is None else decides.get(name)
        is_active = winner is self
        good = self.good if is_active else None
        return ProfileStatus(
            version=self.version,
            accepted=self._accepted(winner),
            active=self._active(winner),
            degraded=self._degraded(is_active, of_file, troubles),
            active_generation=None if good is None else good.origin.generation,
            running_plugins=()
            if good is None
            else tuple(plugin.name for plugin in good.framework.plugins),
            mistakes=self.mistakes,
        )

    def _accepted(self, winner: Resource | None) -> Condition:
        if self.mistakes:
            return Condition(False, reasons.INVALID, _list(self.mistakes))
        if winner is not None and winner is not self:
            return Condition(False, reasons.CONFLICT, _conflict(winner))
        return Condition(True, reasons.VALID)

    def _active(self, winner: Resource | None) -> Condition:
        good = self.good
        if good is None:
            return Condition(False, reasons.NOT_ACCEPTED)
        if winner is self:
            name, generation = good.effective.scheduler_name, good.origin.generation
            text = f"generation {generation} decides over pods of schedulerName {name!r}"
            return Condition(True, reasons.RUNNING, text)
        if winner is not None:
            return Condition(False, reasons.CONFLICT, _conflict(winner))
        return Condition(False, reasons.SHADOWING, "is compared with the policy that decides")

    def _degraded(
        self, is_active: bool, of_file: Collection[str], troubles: Mapping[str, str]
    ) -> Condition:
        good, spec = self.good, self.version
        if self.mistakes and is_active and good is not None:
            text = (
                f"generation {spec.generation} cannot be used, generation "
                f"{good.origin.generation} stays active: {_list(self.mistakes)}"
            )
            return Condition(True, reasons.LAST_GOOD, text)
        if self.mistakes:
            name = spec.profile.scheduler_name
            instead = "the configuration file's profile decides" if name in of_file else "pods wait"
            text = f"generation {spec.generation} cannot be used, {instead}: {_list(self.mistakes)}"
            return Condition(True, reasons.NOT_RUNNING, text)
        running = () if good is None else good.framework.plugins
        failing = [
            f"{plugin.name}: {troubles[plugin.name]}"
            for plugin in running
            if plugin.name in troubles
        ]
        if failing:
            return Condition(True, reasons.PLUGIN_FAILING, "; ".join(failing))
        return Condition(False, reasons.AS_EXPECTED)


def winners(resources: Iterable[Resource]) -> dict[str, Resource]:
    """Return the SchedulingProfile that decides for each schedulerName: the oldest usable one."""
    deciding: dict[str, Resource] = {}
    for candidate in sorted(
        resources, key=lambda resource: (resource.version.created, resource.version.name)
    ):
        name = candidate.wants
        if name is not None:
            deciding.setdefault(name, candidate)
    return deciding


def _conflict(winner: Resource) -> str:
    name = winner.version.profile.scheduler_name
    return f"SchedulingProfile {winner.version.name}, which is older, has schedulerName {name!r}"


def _list(mistakes: tuple[Mistake, ...]) -> str:
    listed = "; ".join(str(mistake) for mistake in mistakes[:_MAX_LISTED])
    more = len(mistakes) - _MAX_LISTED
    return f"{listed}; and {more} more" if more > 0 else listed
