"""All profiles: those of the configuration file and those of SchedulingProfiles.

A change is compiled. Then the deciding profile of each schedulerName is selected, all profiles are
swapped at once, and subscribers receive the names of the SchedulingProfiles whose status changed.
"""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import structlog

from scheduler.config import ConfigError, Mistake
from scheduler.config.config_error import item
from scheduler.config.effective_profile import check_queue_sort
from scheduler.decision.profile_origin import (
    DEFAULT_ORIGIN,
    FROM_DEFAULT,
    FROM_FILE,
    PolicyOrigin,
)
from scheduler.profiles.profile_compiler import SPEC
from scheduler.profiles.profile_spec import Mode
from scheduler.profiles.profile_versions import Resource, Running, winners

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scheduler.config import EffectiveProfile, SchedulerConfig
    from scheduler.profiles.profile_compiler import ProfileCompiler
    from scheduler.profiles.profile_spec import ProfileVersion, ShadowOptions
    from scheduler.profiles.profile_status import ProfileStatus
    from scheduler.runtime.framework_runner import FrameworkRunner

log = structlog.get_logger(__name__)


class Shadows(Protocol):
    """Runs profiles in shadow mode beside the live ones. May be called from any thread."""

    def install(self, name: str, framework: FrameworkRunner, options: ShadowOptions) -> None:
        """Compare a profile with the one that decides for the same pods; replace ``name``'s."""
        ...

    def remove(self, name: str) -> None:
        """End the shadow run that was installed as ``name``; do nothing if there is none."""
        ...


class KnownProfiles:
    """Selects the profiles that run, compiles them and swaps them in.

    A SchedulingProfile replaces the file's profile of the same schedulerName, or adds a profile. If
    two SchedulingProfiles have one schedulerName, the older one (by creation, then by name) is
    used. If the newest generation of a SchedulingProfile cannot be used, its last good generation
    keeps running. When a SchedulingProfile is removed, the file's profile takes its place. A
    profile that a change does not affect keeps running unchanged.

    Parameters
    ----------
    compiler
        Compiles and builds profiles.
    shadows
        Runs profiles of mode Shadow; None if shadow mode is not available.

    Notes
    -----
    *Concurrency*: thread-safe by one lock, which is held while a change is compiled and swapped
    in. Therefore changes must not come from the scheduling thread nor, after :meth:`go_live`, from
    the I/O loop. :meth:`status`, :meth:`statuses` and :attr:`config` never block.
    """

    def __init__(self, compiler: ProfileCompiler, shadows: Shadows | None = None) -> None:
        self._compiler = compiler
        self._shadows = shadows
        self._lock = threading.RLock()
        self._swap: Callable[[Sequence[FrameworkRunner]], None] | None = None
        self._config: SchedulerConfig | None = None
        self._file_generation = 0
        self._of_file: dict[str, Running] = {}
        self._resources: dict[str, Resource] = {}
        self._running: dict[str, FrameworkRunner] = {}
        self._held: frozenset[FrameworkRunner] = frozenset()
        self._shadowed: dict[str, tuple[FrameworkRunner, ShadowOptions]] = {}
        self._troubles: Mapping[str, str] = MappingProxyType({})
        self._statuses: Mapping[str, ProfileStatus] = MappingProxyType({})
        self._callbacks: list[Callable[[frozenset[str]], None]] = []

    # --- state --------------------------------------------------------------------------------

    @property
    def config(self) -> SchedulerConfig:
        """The configuration whose profiles were applied last.

        Raises
        ------
        ValueError
            When no configuration has been applied yet.
        """
        if self._config is None:
            raise ValueError("there is no configuration yet")
        return self._config

    @property
    def troubles(self) -> Mapping[str, str]:
        """The problem of each failing plugin by the plugin's name. Immutable."""
        return self._troubles

    def frameworks(self) -> tuple[FrameworkRunner, ...]:
        """Return the profiles that decide; those of the file come first."""
        with self._lock:
            return tuple(self._running.values())

    def effective(self) -> tuple[EffectiveProfile, ...]:
        """Return the profiles that decide, as values: :meth:`frameworks` are built of them."""
        with self._lock:
            running = {name: profile.effective for name, profile in self._of_file.items()}
            for name, winner in winners(self._resources.values()).items():
                if winner.good is not None:
                    running[name] = winner.good.effective
            return tuple(running.values())

    def status(self, name: str) -> ProfileStatus | None:
        """Return the status of a SchedulingProfile, or None if it is not known."""
        return self._statuses.get(name)

    def statuses(self) -> Mapping[str, ProfileStatus]:
        """Return the statuses of all SchedulingProfiles by name. Immutable."""
        return self._statuses

    def subscribe(self, callback: Callable[[frozenset[str]], None]) -> None:
        """Call ``callback`` with the names of the SchedulingProfiles whose status changed.

        The thread that made the change calls it, without the lock. It must be quick and must not
        raise.
        """
        with self._lock:
            self._callbacks.append(callback)

    # --- changes ------------------------------------------------------------------------------

    def go_live(self, swap: Callable[[Sequence[FrameworkRunner]], None]) -> None:
        """Pass each change to ``swap`` from now on; it is expected to run the present profiles.

        Parameters
        ----------
        swap
            Replaces all profiles; when it returns, the new ones are in place.
        """
        with self._lock:
            self._swap = swap

    def set_file(self, config: SchedulerConfig) -> list[Mistake]:
        """Apply the profiles of a configuration; return its mistakes, an empty list on success.

        A configuration that cannot be used changes nothing.
        """
        with self._lock:
            try:
                made = self._compile_file(config)
            except ConfigError as error:
                return list(error.mistakes)
            self._config, self._of_file = config, made
            for resource in self._resources.values():
                self._compile(resource)
            changed = self._activate()
        self._notify(changed)
        return []

    def put(self, version: ProfileVersion) -> ProfileStatus:
        """Apply a new version of a SchedulingProfile, and return its status.

        An equal version changes nothing but the stored object that it was read from. After a
        restart, the last good version may be put before the present one, so that the present one
        can fall back to it.
        """
        name = version.name
        with self._lock:
            resource = self._resources.get(name)
            if resource is None or resource.version.uid != version.uid:
                self._end_shadow(name)
                resource = self._resources[name] = Resource(version)
                is_new = True
            else:
                is_new = not resource.version.asks_for_the_same_as(version)
                resource.version = version
            if is_new:
                self._compile(resource)
            changed = self._activate() if is_new else self._update_statuses()
            status = self._statuses[name]
        self._notify(changed)
        return status

    def remove(self, name: str) -> None:
        """Remove a SchedulingProfile; do nothing if it is not known."""
        with self._lock:
            if self._resources.pop(name, None) is None:
                return
            changed = self._activate()
            self._end_shadow(name)
        self._notify(changed)

    def plugins_changed(self) -> list[Mistake]:
        """Compile the profiles again that use plugins which have been replaced.

        A profile that cannot be built from the new plugins keeps the old ones.

        Returns
        -------
        The mistakes in the file's profiles. SchedulingProfiles report theirs in their status.
        """
        mistakes: list[Mistake] = []
        with self._lock:
            try:
                self._of_file = self._compile_file(self.config)
            except ConfigError as error:
                mistakes += error.mistakes
            for resource in self._resources.values():
                self._compile(resource)
            changed = self._activate()
        self._notify(changed)
        return mistakes

    def plugin_trouble(self, troubles: Mapping[str, str]) -> None:
        """Store the problem of each failing plugin by name, as a text for people.

        The mapping replaces the previous one. Profiles that run a failing plugin are Degraded.
        """
        with self._lock:
            self._troubles = MappingProxyType(dict(troubles))
            changed = self._update_statuses()
        self._notify(changed)

    # --- compiling ----------------------------------------------------------------------------

    def _compile_file(self, config: SchedulerConfig) -> dict[str, Running]:
        profiles = self._compiler.of_file(config)
        first = next(iter(self._of_file.values()), None)
        if first is not None:
            path = item("profiles", 0)
            for mistake in check_queue_sort(profiles[0], first.effective, path):
                why = "cannot change without a restart: all profiles share one queue"
                raise ConfigError(mistake.path, why, source=config.source)
        source = FROM_FILE if config.source else FROM_DEFAULT
        origin = PolicyOrigin(source, self._file_generation + 1)
        if origin == DEFAULT_ORIGIN:
            origin = DEFAULT_ORIGIN
        made: dict[str, Running] = {}
        try:
            for index, effective in enumerate(profiles):
                name = effective.scheduler_name
                known = self._of_file.get(name)
                if known is None or known.effective != effective or known.origin.source != source:
                    framework = self._compiler.build(effective, item("profiles", index), origin)
                    known = Running(effective, framework)
                made[name] = known
        except ConfigError:
            for framework in {running.framework for running in made.values()} - self._held:
                self._compiler.release(framework)
            raise
        if any(running.origin is origin for running in made.values()):
            self._file_generation += 1
        return made

    def _compile(self, resource: Resource) -> None:
        """Build a profile of the newest version; keep the last good one if that fails.

        The last good one is built again then: new plugins and a new file hold for it as well.
        """
        spec, good = resource.version, resource.good_version
        resource.mistakes = self._build(resource, spec)
        if not resource.mistakes:
            resource.good_version = good = spec
        elif good is not None:
            self._build(resource, good)
        if good is None:
            return
        if good.mode is Mode.SHADOW:
            self._shadow(resource, good)
        else:
            self._end_shadow(spec.name)

    def _build(self, resource: Resource, spec: ProfileVersion) -> tuple[Mistake, ...]:
        """Build a profile of a version; return its mistakes, with which nothing changes."""
        good, first = resource.good, next(iter(self._of_file.values())).effective
        origin = PolicyOrigin.of_resource(spec.name, spec.generation, spec.uid)
        try:
            if spec.mistakes:
                raise ConfigError.of(spec.mistakes)
            effective = self._compiler.of_resource(spec, self.config, first)
            if good is None or good.effective != effective or good.origin != origin:
                framework = self._compiler.build(effective, SPEC, origin)
                resource.good = Running(effective, framework)
        except ConfigError as error:
            log.warning("policy cannot be used", policy=origin.text, error=str(error))
            return error.mistakes
        except Exception as error:
            # A bug of Berth that concerns one profile must not affect the others.
            log.exception("policy could not be compiled", policy=origin.text)
            return (Mistake(SPEC, f"could not be compiled: {error!r}"),)
        return ()

    def _shadow(self, resource: Resource, version: ProfileVersion) -> None:
        """Start the comparison with the deciding profile, unless it runs with equal options."""
        if self._shadows is None or resource.good is None:
            return
        name, wanted = version.name, (resource.good.framework, version.shadow)
        if self._shadowed.get(name) != wanted:
            self._shadowed[name] = wanted
            self._shadows.install(name, *wanted)

    def _end_shadow(self, name: str) -> None:
        if self._shadowed.pop(name, None) is not None and self._shadows is not None:
            self._shadows.remove(name)

    # --- selection of the deciding profiles ---------------------------------------------------

    def _activate(self) -> frozenset[str]:
        """Select the deciding profiles, swap them in, and return the names with a new status."""
        running = {name: profile.framework for name, profile in self._of_file.items()}
        for name, winner in winners(self._resources.values()).items():
            if winner.good is not None:
                running[name] = winner.good.framework
        if running != self._running:
            if self._swap is not None:
                self._swap(tuple(running.values()))
            self._running = running
            log.info(
                "profiles running",
                running={n: profile.policy.text for n, profile in running.items()},
            )
        self._release_unused()
        return self._update_statuses()

    def _release_unused(self) -> None:
        """Release the profiles that neither the file nor any SchedulingProfile holds any more.

        Such a profile may never have decided: it ran in shadow mode, or an older one was used.
        """
        goods = (resource.good for resource in self._resources.values())
        known = (*self._of_file.values(), *(good for good in goods if good is not None))
        before, self._held = self._held, frozenset(running.framework for running in known)
        for framework in before - self._held:
            self._compiler.release(framework)

    def _update_statuses(self) -> frozenset[str]:
        """Compute all statuses again and return the names of those that changed."""
        decides = winners(self._resources.values())
        statuses = {
            name: resource.status(decides, self._of_file.keys(), self._troubles)
            for name, resource in self._resources.items()
        }
        before, self._statuses = self._statuses, MappingProxyType(statuses)
        names = before.keys() | statuses.keys()
        return frozenset(name for name in names if before.get(name) != statuses.get(name))

    def _notify(self, names: frozenset[str]) -> None:
        for callback in tuple(self._callbacks) if names else ():
            callback(names)
