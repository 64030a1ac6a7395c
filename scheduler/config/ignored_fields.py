"""List the settings of a configuration that berth ignores.

*Source*: of the fields, k8s.io/kube-scheduler config/v1/types.go (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins import names
from plugins.registry import PLUGINS
from scheduler.config.config_error import child, did_you_mean, item, shown
from scheduler.config.extension_points import POINTS
from scheduler.config.file_profile import ALL_PLUGINS, MULTI_POINT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plugins.framework.interfaces import Plugin
    from scheduler.config.configuration import ClientConnection, SchedulerConfig
    from scheduler.config.file_profile import PluginSet, Profile

_JSON: Final = "application/json"


def ignored_fields(
    config: SchedulerConfig, plugins: Mapping[str, type[Plugin]] = PLUGINS
) -> list[str]:
    """Return what the file asks for and does not get: the path, and in brackets why.

    A field that asks for what happens anyway is not among them.

    Parameters
    ----------
    config
        What a file says; the built-in configuration asks for nothing.
    plugins
        The plugins that exist, by name.
    """
    found = [*_top_level(config), *config.replaced, *_connection(config)]
    for index, profile in enumerate(config.profiles):
        found += _profile(profile, item("profiles", index), plugins)
    return found


def _top_level(config: SchedulerConfig) -> Iterator[str]:
    given = config.given
    if "parallelism" in given:
        yield "parallelism (one thread decides over all nodes at once)"
    if "enableProfiling" in given and config.enable_profiling:
        yield "enableProfiling (there are no profiling handlers)"
    if "enableContentionProfiling" in given and config.enable_contention_profiling:
        yield "enableContentionProfiling (it is about the locks of Go)"
    if config.delay_cache_until_active:
        yield "delayCacheUntilActive (a replica in waiting keeps its cache, to take over at once)"
    if config.percentage_of_placements_to_score is not None:
        yield "percentageOfPlacementsToScore (pods are placed one by one)"


def _connection(config: SchedulerConfig) -> Iterator[str]:
    connection: ClientConnection = config.client_connection
    for name, value in (
        ("contentType", connection.content_type),
        ("acceptContentTypes", connection.accept_content_types),
    ):
        if value not in ("", _JSON):
            yield f"clientConnection.{name} (the client speaks JSON)"
    if "clientConnection.burst" in config.given and connection.qps is None:
        yield "clientConnection.burst (it belongs to qps, which is not given)"


def _profile(profile: Profile, path: str, plugins: Mapping[str, type[Plugin]]) -> Iterator[str]:
    if profile.percentage_of_placements_to_score is not None:
        yield f"{path}.percentageOfPlacementsToScore (pods are placed one by one)"
    for point, plugin_set in profile.plugins.by_point().items():
        yield from _plugin_set(plugin_set, point, child(f"{path}.plugins", point), plugins)
    for index, entry in enumerate(profile.plugin_config):
        where = child(item(f"{path}.pluginConfig", index), "args")
        if not entry.args:
            continue
        if entry.name not in plugins:
            yield f"{where} ({_absent(entry.name)})"
        elif entry.name in names.IN_TREE and plugins[entry.name].args_type is None:
            yield f"{where} ({entry.name} takes none)"


def _plugin_set(
    plugin_set: PluginSet, point: str, path: str, plugins: Mapping[str, type[Plugin]]
) -> Iterator[str]:
    if plugin_set.enabled and point not in (*POINTS, MULTI_POINT):
        yield f"{path} (pods are placed one by one)"
        return
    absent = [entry.name for entry in plugin_set.enabled if entry.name not in plugins]
    if absent:
        yield f"{path}.enabled (not there yet: {', '.join(absent)})"
    known = names.IN_TREE | plugins.keys() | {ALL_PLUGINS}
    for index, entry in enumerate(plugin_set.disabled):
        where = item(f"{path}.disabled", index)
        if entry.name not in known:
            near = did_you_mean(entry.name, known)
            yield f"{where} (there is no plugin {shown(entry.name)}{near})"


def _absent(name: str) -> str:
    if name in names.IN_TREE:
        return f"not there yet: {name}"
    return f"there is no plugin {shown(name)}"
