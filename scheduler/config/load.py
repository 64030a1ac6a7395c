"""Load a file into a checked configuration.

Reading goes in steps: text to plain data (:mod:`~scheduler.config.document`), the version, plain
data to structs (:mod:`~scheduler.config.strict_decoding`), defaults, rules
(:mod:`~scheduler.config.validation`), plugin arguments and plugin sets. Within a step all errors
are collected; a step that depends on the success of the previous one is skipped if that failed.

*Source*: Kubernetes documentation, "Scheduler Configuration" (the migrations of each version), and
KEP-785 for the versions in which each one came and went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plugins.registry import PLUGINS
from scheduler.config.config_error import ConfigError, Mistake, child, item, shown
from scheduler.config.configuration import (
    API_VERSION,
    GROUP,
    KIND,
    KubeSchedulerConfiguration,
    SchedulerConfig,
)
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


# --- versions that are read, and how to move from those that are not ------------------------

_FROM_V1BETA3: Final = (
    f"set apiVersion to {API_VERSION} and take the plugin SelectorSpread out "
    "(PodTopologySpread, on by default, does its work)"
)
_FROM_V1BETA2: Final = (
    f"{_FROM_V1BETA3}; since v1beta3 the default weight of InterPodAffinity and NodeAffinity is 2 "
    "and that of TaintToleration 3: give weights of 1 to keep the old scores"
)
_FROM_V1BETA1: Final = (
    f"{_FROM_V1BETA2}; NodeResourcesLeastAllocated, NodeResourcesMostAllocated and "
    "RequestedToCapacityRatio became scoringStrategy.type of NodeResourcesFitArgs, NodeLabel and "
    "ServiceAffinity gave way to node and pod affinity, NodePreferAvoidPods to taints, and "
    "healthzBindAddress and metricsBindAddress are gone"
)

MIGRATIONS: Final[Mapping[str, str]] = {
    f"{GROUP}/v1beta3": f"was removed in Kubernetes 1.29; to move: {_FROM_V1BETA3}",
    f"{GROUP}/v1beta2": f"was removed in Kubernetes 1.28; to move: {_FROM_V1BETA2}",
    f"{GROUP}/v1beta1": f"was removed in Kubernetes 1.23; to move: {_FROM_V1BETA1}",
    f"{GROUP}/v1alpha2": f"was removed long ago; to move: {_FROM_V1BETA1}",
    f"{GROUP}/v1alpha1": f"was removed long ago; write a new file for {API_VERSION}",
}


def check_version(data: Mapping[str, object]) -> list[Mistake]:
    """Return what is wrong with ``apiVersion`` and ``kind``."""
    version, kind = data.get("apiVersion"), data.get("kind")
    if kind == "Policy":
        why = f"scheduling policies were removed in Kubernetes 1.23; write a {KIND} instead"
        return [Mistake("kind", why)]
    mistakes = []
    if version in (None, ""):
        mistakes.append(Mistake("apiVersion", f"is required; it must be {API_VERSION}"))
    elif isinstance(version, str) and version in MIGRATIONS:
        mistakes.append(Mistake("apiVersion", f"{version} {MIGRATIONS[version]}"))
    elif version != API_VERSION:
        mistakes.append(Mistake("apiVersion", f"must be {API_VERSION}, not {shown(version)}"))
    if kind in (None, ""):
        mistakes.append(Mistake("kind", f"is required; it must be {KIND}"))
    elif kind != KIND:
        mistakes.append(Mistake("kind", f"must be {KIND}, not {shown(kind)}"))
    return mistakes
