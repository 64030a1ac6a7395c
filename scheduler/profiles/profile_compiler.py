"""Compiles the profiles of a configuration file or a SchedulingProfile, and builds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec.structs import replace

from plugins.framework.args import ArgsError
from scheduler.config import ConfigError, Mistake
from scheduler.config.config_error import child, item
from scheduler.config.effective_profile import (
    EffectiveProfile,
    check_queue_sort,
    effective_profile,
    leave_to_extenders,
)
from scheduler.config.file_profile import PluginConfig, PluginEntry, PluginSet
from scheduler.config.plugin_config import check_plugin_config
from scheduler.config.validation import check_extenders
from scheduler.runtime.profile_builder import build_framework

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plugins.framework.handle import Services
    from plugins.framework.interfaces import Plugin
    from scheduler.config import Extender, Profile, SchedulerConfig
    from scheduler.decision.profile_origin import PolicyOrigin
    from scheduler.extenders import ExtenderChain
    from scheduler.profiles.extender_chains import ExtenderChains
    from scheduler.profiles.profile_spec import ProfileVersion, PythonSource
    from scheduler.runtime.framework_runner import FrameworkRunner

SPEC: Final = "spec"
"""The first element of the path of each mistake in a SchedulingProfile."""


class PythonLoader(Protocol):
    """Loads plugin classes from a Python source."""

    def __call__(self, source: PythonSource) -> Mapping[str, type[Plugin]]:
        """Return the plugins of a source by name, after a successful trial.

        Raises
        ------
        ConfigError
            When the source is refused or fails its trial; paths are relative to the source, such
            as ``configMap``.
        """
        ...


class ProfileCompiler:
    """Compiles and builds profiles.

    Parameters
    ----------
    plugins
        Returns the plugins that are loaded now, by name.
    services
        The services that plugins may use.
    chains
        Creates extender chains; None if no profile may have extenders.
    load_python
        Loads the plugins that a SchedulingProfile brings; None if that is not allowed.

    Notes
    -----
    *Concurrency*: that of its callbacks; the object itself has no mutable state.
    """

    def __init__(
        self,
        plugins: Callable[[], Mapping[str, type[Plugin]]],
        services: Services,
        chains: ExtenderChains | None = None,
        load_python: PythonLoader | None = None,
    ) -> None:
        self._plugins = plugins
        self._services = services
        self._chains = chains
        self._load_python = load_python

    def of_file(self, config: SchedulerConfig) -> tuple[EffectiveProfile, ...]:
        """Return the effective profiles of a configuration, in its order.

        Raises
        ------
        ConfigError
            When one of the profiles cannot be used.
        """
        plugins = self._plugins()
        profiles: list[EffectiveProfile] = []
        mistakes: list[Mistake] = []
        for index, profile in enumerate(config.profiles):
            path = item("profiles", index)
            effective, found = _effective(profile, plugins, path, config, config.extenders)
            mistakes += found
            if effective is not None:
                if profiles:
                    mistakes += check_queue_sort(effective, profiles[0], path)
                profiles.append(effective)
        if mistakes:
            raise ConfigError.of(mistakes, config.source)
        return tuple(profiles)

    def of_resource(
        self, spec: ProfileVersion, config: SchedulerConfig, first: EffectiveProfile
    ) -> EffectiveProfile:
        """Return the effective profile of a SchedulingProfile.

        Parameters
        ----------
        config
            The configuration of the file, for fields that the SchedulingProfile does not set.
        first
            A profile that runs: all profiles must have the same QueueSort plugin.

        Raises
        ------
        ConfigError
            When the profile cannot be used. Paths start at ``spec``.
        """
        sources = self._own_plugins(spec)
        own = {name: cls for plugins in sources for name, cls in plugins.items()}
        profile, moved = _with_own_plugins(spec, sources)
        extenders = config.extenders if spec.extenders is None else spec.extenders
        mistakes = list(check_extenders(spec.extenders or (), child(SPEC, "extenders")))
        plugins = {**self._plugins(), **own}
        effective, found = _effective(profile, plugins, SPEC, config, extenders)
        mistakes += [_moved(mistake, moved) for mistake in found]
        if effective is not None:
            mistakes += check_queue_sort(effective, first, SPEC)
        if mistakes or effective is None:
            raise ConfigError.of(mistakes)
        return effective

    def build(
        self, effective: EffectiveProfile, path: str, policy: PolicyOrigin
    ) -> FrameworkRunner:
        """Return a runnable profile with its plugins and extenders.

        Raises
        ------
        ConfigError
            When a plugin cannot be constructed.
        """
        chain: ExtenderChain | None = None
        if self._chains is not None:
            chain = self._chains.make(effective.extenders, child(path, "extenders"))
        try:
            return build_framework(
                effective, path, effective.classes, self._services, policy, chain
            )
        except ConfigError:
            self._release(chain)
            raise
        except Exception as error:
            # A plugin's constructor is a user's code and may raise anything.
            self._release(chain)
            raise ConfigError(path, f"cannot be constructed: {_error_text(error)}") from error

    def release(self, framework: FrameworkRunner) -> None:
        """Release the extenders of a profile that does not decide any more."""
        self._release(framework.extenders)

    def _release(self, chain: ExtenderChain | None) -> None:
        if self._chains is not None:
            self._chains.release(chain)

    def _own_plugins(self, spec: ProfileVersion) -> list[Mapping[str, type[Plugin]]]:
        """Return the plugins of each Python source, in the order of the sources."""
        path = child(SPEC, "python")
        if spec.python and self._load_python is None:
            raise ConfigError(path, "is not allowed: berth runs without --allow-python-profiles")
        found: list[Mapping[str, type[Plugin]]] = []
        mistakes: list[Mistake] = []
        seen: set[str] = set()
        for index, source in enumerate(spec.python):
            where = item(path, index)
            try:
                own = {} if self._load_python is None else self._load_python(source)
            except ConfigError as error:
                mistakes += (Mistake(child(where, m.path), m.why) for m in error.mistakes)
                continue
            found.append(own)
            for name in own:
                if name in seen:
                    mistakes.append(Mistake(where, f"{name} comes from another source already"))
                seen.add(name)
        if mistakes:
            raise ConfigError.of(mistakes)
        return found


def _with_own_plugins(
    spec: ProfileVersion, sources: Sequence[Mapping[str, type[Plugin]]]
) -> tuple[Profile, Mapping[str, str]]:
    """Return the profile with its own plugins enabled, and a mapping of paths of arguments.

    Plugins that the profile enables or disables itself are not added. The mapping gives, for the
    path of each ``pluginConfig`` entry that is added, the path at which a user wrote the arguments.
    """
    profile, moved = spec.profile, dict[str, str]()
    sets = profile.plugins.by_point().values()
    named = {entry.name for entries in sets for entry in (*entries.enabled, *entries.disabled)}
    added: list[PluginEntry] = []
    entries = list(profile.plugin_config)
    for index, (source, own) in enumerate(zip(spec.python, sources, strict=True)):
        added += (PluginEntry(name) for name in own if name not in named)
        for name, cls in own.items():
            if source.args is not None and cls.args_type is not None:
                place = item(child(SPEC, "pluginConfig"), len(entries))
                moved[place] = item(child(SPEC, "python"), index)
                entries.append(PluginConfig(name, source.args))
    multi_point = profile.plugins.multi_point
    enabled = PluginSet((*multi_point.enabled, *added), multi_point.disabled)
    plugins = msgspec.structs.replace(profile.plugins, multi_point=enabled)
    changed = msgspec.structs.replace(profile, plugins=plugins, plugin_config=tuple(entries))
    return changed, moved


def _moved(mistake: Mistake, moved: Mapping[str, str]) -> Mistake:
    for place, instead in moved.items():
        if mistake.path.startswith(place):
            return Mistake(instead + mistake.path.removeprefix(place), mistake.why)
    return mistake


def _effective(
    profile: Profile,
    plugins: Mapping[str, type[Plugin]],
    path: str,
    config: SchedulerConfig,
    extenders: tuple[Extender, ...],
) -> tuple[EffectiveProfile | None, list[Mistake]]:
    percentage = config.percentage_of_nodes_to_score
    where = child(path, "pluginConfig")
    given = [_plain(entry, plugins) for entry in profile.plugin_config]
    try:
        entries, mistakes = check_plugin_config(given, plugins, where)
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything
        return None, [Mistake(where, f"cannot be validated: {_error_text(error)}")]
    checked = msgspec.structs.replace(profile, plugin_config=entries)
    effective, found = effective_profile(checked, plugins, path, percentage)
    mistakes += found
    if mistakes or effective is None:
        return None, mistakes
    (effective,) = leave_to_extenders((effective,), extenders)
    return replace(effective, extenders=extenders), []


def _plain(entry: PluginConfig, plugins: Mapping[str, type[Plugin]]) -> PluginConfig:
    """Return arguments that can be validated again, even if their plugin class was replaced."""
    args_type = getattr(plugins.get(entry.name), "args_type", None)
    if args_type is None or not isinstance(entry.args, msgspec.Struct):
        return entry
    if isinstance(entry.args, args_type):
        return entry
    return PluginConfig(entry.name, msgspec.to_builtins(entry.args, enc_hook=str))


def _error_text(error: Exception) -> str:
    if isinstance(error, ArgsError):
        return f"{error.path}: {error.why}"
    return f"{type(error).__name__}: {error}"
