"""All policies: those of the configuration file, and those of SchedulingProfiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.config import Mistake, SchedulerConfig
    from scheduler.framework_runner import FrameworkRunner
    from scheduler.policy.policy_spec import PolicySpec, PythonSource, ShadowOptions
    from scheduler.policy.policy_status import PolicyOutcome, PolicyStatus


class PythonLoader(Protocol):
    """Makes plugin classes of Python sources."""

    def __call__(self, sources: Sequence[PythonSource]) -> Mapping[str, type[Plugin]]:
        """Return the plugins that sources bring, by name, tried and ready for a profile.

        Raises
        ------
        ConfigError
            With paths that start at ``[INDEX]`` of the sources, such as ``[0].configMap``.
        """
        ...


class Shadows(Protocol):
    """Runs profiles in the shadow of the live ones. Called from any thread."""

    def install(self, name: str, framework: FrameworkRunner, options: ShadowOptions) -> None:
        """Hold a profile against the one that decides over the same pods; replaces ``name``'s."""
        ...

    def remove(self, name: str) -> None:
        """End what ``name`` has installed; nothing happens if there is nothing."""
        ...


class Policies:
    """Decides which profiles run, compiles them and swaps them in.

    A SchedulingProfile replaces the file's profile of the same schedulerName, or adds one. Of two
    for one schedulerName the older (by creation, then by name) counts. One that cannot be used
    leaves its last good generation running. One that is removed gives way to the file's profile.

    Notes
    -----
    *Concurrency*: thread-safe by one lock. Compiles in the caller's thread, which must not be the
    scheduling thread; :meth:`status` and :meth:`statuses` never wait.
    """

    def set_file(self, config: SchedulerConfig) -> list[Mistake]:
        """Take over the profiles of a configuration; return why not, or nothing."""
        raise NotImplementedError

    def put(self, spec: PolicySpec) -> PolicyOutcome:
        """Take over a new version of a SchedulingProfile. The same one once more is no change."""
        raise NotImplementedError

    def remove(self, name: str) -> PolicyOutcome:
        """Forget a SchedulingProfile. One that is not known is no mistake."""
        raise NotImplementedError

    def status(self, name: str) -> PolicyStatus | None:
        """Return the state of a SchedulingProfile, or None if it is not known."""
        raise NotImplementedError

    def statuses(self) -> Mapping[str, PolicyStatus]:
        """Return the states of all SchedulingProfiles by name. Immutable."""
        raise NotImplementedError

    def subscribe(self, callback: Callable[[frozenset[str]], None]) -> None:
        """Have ``callback`` told the names whose status changed; in whichever thread changed it.

        It is called without the lock, must be quick and must not raise.
        """
        raise NotImplementedError

    def plugins_changed(self, names: frozenset[str]) -> list[Mistake]:
        """Compile the profiles anew that use one of these plugins, from what the catalogue has now.

        A profile that cannot be made of the new plugins goes on with the old ones.
        """
        raise NotImplementedError

    def plugin_trouble(self, troubles: Mapping[str, str]) -> None:
        """Take note of the plugins that fail: by name, what is wrong, for people.

        Replaces what was said before. Profiles that run one of them are Degraded.
        """
        raise NotImplementedError
