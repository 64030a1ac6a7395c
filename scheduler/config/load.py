"""From a file to a checked configuration.

Reading goes in steps: text to plain data (:mod:`~scheduler.config.document`), the version, plain
data to structs (:mod:`~scheduler.config.strict_decoding`), defaults, rules
(:mod:`~scheduler.config.validation`), plugin arguments and plugin sets. Within a step all mistakes
are collected; a step that needs the one before it to have succeeded is not taken otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plugins.registry import PLUGINS
from scheduler.config.api_version import check_version
from scheduler.config.config_error import ConfigError, Mistake, child, item, shown
from scheduler.config.configuration import KubeSchedulerConfiguration, SchedulerConfig
from scheduler.config.defaults import defaulted, electing
from scheduler.config.document import read_document, read_text
from scheduler.config.effective_profile import effective_profiles
from scheduler.config.plugin_config import check_plugin_config
from scheduler.config.strict_decoding import decode
from scheduler.config.validation import check_configuration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plugins.framework.interfaces import Plugin


def load_config(path: Path, plugins: Mapping[str, type[Plugin]] = PLUGINS) -> SchedulerConfig:
    """Read a file.

    Parameters
    ----------
    path
        A KubeSchedulerConfiguration in YAML or JSON.
    plugins
        The plugins that exist, by name: a file may name no others, but for kube-scheduler's.

    Raises
    ------
    ConfigError
        If it cannot be read or used. All mistakes that could be found are in it.
    """
    return parse_config(read_text(path), str(path), plugins)


def parse_config(
    text: str, source: str, plugins: Mapping[str, type[Plugin]] = PLUGINS
) -> SchedulerConfig:
    """Read the text of a file; ``source`` names it in messages.

    Parameters and what is raised are as for :func:`load_config`.
    """
    try:
        data, mistakes = read_document(text)
    except ConfigError as error:
        raise ConfigError.of(error.mistakes, source) from error
    if not isinstance(data, dict):
        raise ConfigError("", f"must be a mapping, not {shown(data)}", source=source)
    of_version = check_version(data)
    if of_version:
        # The other fields belong to whatever version that is.
        raise ConfigError.of(of_version, source)
    config, of_types = decode(data, KubeSchedulerConfiguration, "")
    mistakes += of_types
    if config is None or mistakes:
        raise ConfigError.of(mistakes, source)
    checked, mistakes = _check(defaulted(config, data, source), plugins)
    if mistakes:
        raise ConfigError.of(mistakes, source)
    return checked


def with_election(config: SchedulerConfig, leader_elect: bool) -> SchedulerConfig:
    """Return a configuration that elects a leader, or none, whatever its file says of that.

    Raises
    ------
    ConfigError
        The file's other fields about the election, which did not matter before, cannot be used.
    """
    changed = electing(config, leader_elect)
    mistakes = list(check_configuration(changed))
    if mistakes:
        raise ConfigError.of(mistakes, config.source)
    return changed


def _check(
    config: SchedulerConfig, plugins: Mapping[str, type[Plugin]]
) -> tuple[SchedulerConfig, list[Mistake]]:
    mistakes = list(check_configuration(config))
    profiles = []
    for index, profile in enumerate(config.profiles):
        path = child(item("profiles", index), "pluginConfig")
        entries, of_args = check_plugin_config(profile.plugin_config, plugins, path)
        mistakes += of_args
        profiles.append(msgspec.structs.replace(profile, plugin_config=entries))
    checked = msgspec.structs.replace(config, profiles=tuple(profiles))
    try:
        effective_profiles(checked, plugins)
    except ConfigError as error:
        mistakes += error.mistakes
    return checked, mistakes
