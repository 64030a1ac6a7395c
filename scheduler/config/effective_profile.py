"""Resolve the effective profiles of a configuration: plugins in order, weights, arguments.

*Source*: kube-scheduler 1.36, pkg/scheduler/framework/runtime/framework.go (NewFramework),
pkg/scheduler/profile/profile.go and pkg/scheduler/apis/config/validation/validation.go.

# Differs: the queueSort plugin must be the same in all profiles; upstream compares the file's
# text, berth the effective plugin. A negative weight is rejected by name; upstream detects most of
# them by the overflow in its sum of weights.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from cache.value import Value
from plugins import names
from plugins.default_profile import KUBE_SCHEDULER_PROFILE
from plugins.framework.interfaces import QueueSortPlugin
from plugins.node_resources_fit.args import NodeResourcesFitArgs
from plugins.registry import PLUGINS
from scheduler.config.config_error import ConfigError, Mistake, child, did_you_mean, item, shown
from scheduler.config.extension_points import POINTS, points_of
from scheduler.config.file_profile import PluginEntry, PluginSet
from scheduler.config.plugin_config import REMOVED
from scheduler.config.plugin_sets import order_plugins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.config.configuration import SchedulerConfig
    from scheduler.config.extender import Extender
    from scheduler.config.file_profile import Profile
    from scheduler.config.plugin_sets import PluginOrder

_NOWHERE: Final[frozenset[str]] = frozenset()

DEFAULT_MULTI_POINT: Final = PluginSet(
    tuple(PluginEntry(entry.name, entry.weight or None) for entry in KUBE_SCHEDULER_PROFILE)
)


class EffectiveProfile(Value, frozen=True):
    """One profile with nothing left to look up. Immutable.

    Parameters
    ----------
    scheduler_name
        The ``spec.schedulerName`` of its pods.
    percentage_of_nodes_to_score
        1-100: that share of the nodes; 0: all of them.
    points
        Plugin names by extension point, in the order in which they run. Every point is there.
    score_weights
        The weight of each plugin at ``score``, at least 1.
    args
        The arguments that the file gives to plugins which run, each a struct of the plugin's
        ``args_type`` that has been checked.
    classes
        The plugins that run, by name: of other code comes another profile. Without those that
        kube-scheduler has and nobody brings.
    extenders
        Those that a compiled profile is to ask.

    Of equal profiles come frameworks that decide alike.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int
    points: Mapping[str, tuple[str, ...]]
    score_weights: Mapping[str, int]
    args: Mapping[str, msgspec.Struct]
    classes: Mapping[str, type[Plugin]]
    extenders: tuple[Extender, ...] = ()


def effective_profiles(
    config: SchedulerConfig, plugins: Mapping[str, type[Plugin]] = PLUGINS
) -> tuple[EffectiveProfile, ...]:
    """Work out all profiles, in the order of the file.

    Plugins of kube-scheduler that do not exist here are left out.

    Parameters
    ----------
    config
        What a file says.
    plugins
        The plugins that exist, by name.

    Raises
    ------
    ConfigError
        If a set names a plugin that nobody knows, or twice, or at a point that it does not
        serve; or if a profile does not come to exactly one queueSort plugin, the same in all
        profiles, and at least one bind plugin. Names every such mistake.
    """
    mistakes: list[Mistake] = []
    profiles: list[EffectiveProfile] = []
    percentage = config.percentage_of_nodes_to_score
    for index, profile in enumerate(config.profiles):
        effective, found = effective_profile(profile, plugins, item("profiles", index), percentage)
        mistakes += found
        if effective is not None:
            profiles.append(effective)
    if not mistakes:
        for index, effective in enumerate(profiles[1:], start=1):
            mistakes += check_queue_sort(effective, profiles[0], item("profiles", index))
    if mistakes:
        raise ConfigError.of(mistakes, config.source)
    return tuple(profiles)


def effective_profile(
    profile: Profile, plugins: Mapping[str, type[Plugin]], path: str, percentage: int
) -> tuple[EffectiveProfile | None, list[Mistake]]:
    """Work out one profile; return it, or None and everything wrong with its plugin sets.

    Parameters
    ----------
    path
        Where the profile stands.
    percentage
        Of the nodes to score, where the profile says nothing of it.
    """
    where = child(path, "plugins")
    mistakes = _check_sets(profile, plugins, where)
    if mistakes:
        return None, mistakes
    order = _order(profile, plugins)
    mistakes = _check_order(order, where)
    return (None, mistakes) if mistakes else (_effective(profile, plugins, order, percentage), [])


def _order(profile: Profile, plugins: Mapping[str, type[Plugin]]) -> PluginOrder:
    def serves(name: str) -> frozenset[str]:
        return points_of(plugins[name]) if name in plugins else _NOWHERE

    return order_plugins(
        profile.plugins.by_point(),
        POINTS,
        serves,
        DEFAULT_MULTI_POINT,
    )


def _effective(
    profile: Profile,
    plugins: Mapping[str, type[Plugin]],
    order: PluginOrder,
    otherwise: int,
) -> EffectiveProfile:
    runs = {name for listed in order.points.values() for name in listed}
    percentage = profile.percentage_of_nodes_to_score
    return EffectiveProfile(
        scheduler_name=profile.scheduler_name,
        percentage_of_nodes_to_score=otherwise if percentage is None else percentage,
        points=order.points,
        score_weights=order.score_weights,
        args=MappingProxyType(
            {
                entry.name: entry.args
                for entry in profile.plugin_config
                if entry.name in runs and isinstance(entry.args, msgspec.Struct)
            }
        ),
        classes=MappingProxyType({name: plugins[name] for name in sorted(runs)}),
    )


def leave_to_extenders(
    profiles: Sequence[EffectiveProfile], extenders: Sequence[Extender]
) -> tuple[EffectiveProfile, ...]:
    """Return the profiles with NodeResourcesFit blind to what the extenders want to judge alone.

    Where there are such resources, they replace ``ignoredResources``.

    *Source*: kube-scheduler 1.36, pkg/scheduler/scheduler.go (buildExtenders).
    """
    ignored = tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return tuple(profiles)
    return tuple(replace(profile, args=_blind_to(ignored, profile.args)) for profile in profiles)


def _blind_to(
    resources: tuple[str, ...], args: Mapping[str, msgspec.Struct]
) -> Mapping[str, msgspec.Struct]:
    fit = args.get(names.NODE_RESOURCES_FIT, NodeResourcesFitArgs())
    blind = msgspec.structs.replace(fit, ignored_resources=resources)
    return MappingProxyType({**args, names.NODE_RESOURCES_FIT: blind})


# --- checks -----------------------------------------------------------------------------------


def _check_sets(profile: Profile, plugins: Mapping[str, type[Plugin]], path: str) -> list[Mistake]:
    mistakes: list[Mistake] = []
    for point, plugin_set in profile.plugins.by_point().items():
        seen: set[str] = set()
        for index, entry in enumerate(plugin_set.enabled):
            where = item(f"{child(path, point)}.enabled", index)
            why = _why_not_at(entry, point, plugins)
            if entry.name in seen:
                why = f"{shown(entry.name)} stands there twice"
            seen.add(entry.name)
            if why:
                mistakes.append(Mistake(child(where, "name"), why))
            if entry.weight is not None and entry.weight < 0:
                why = f"must not be negative, but is {entry.weight}"
                mistakes.append(Mistake(child(where, "weight"), why))
    return mistakes


def _why_not_at(entry: PluginEntry, point: str, plugins: Mapping[str, type[Plugin]]) -> str:
    """Return why a plugin cannot be enabled at a point; ``""`` if it can."""
    name = entry.name
    if name in REMOVED:
        return f"{name} {REMOVED[name]}"
    plugin = plugins.get(name)
    if plugin is None:
        if name in names.IN_TREE:
            return ""
        near = did_you_mean(name, names.IN_TREE | plugins.keys())
        return f"there is no plugin {shown(name)}{near}"
    if point in POINTS and point not in points_of(plugin):
        served = ", ".join(each for each in POINTS if each in points_of(plugin))
        return f"{name} does not serve {point}, only {served}"
    return ""


def _check_order(order: PluginOrder, path: str) -> list[Mistake]:
    mistakes = []
    sorting = order.points["queueSort"]
    if len(sorting) != 1:
        which = f"it has {', '.join(sorting)}" if sorting else "it has none"
        why = f"a profile needs exactly one queueSort plugin, {which}"
        mistakes.append(Mistake(child(path, "queueSort"), why))
    if not order.points["bind"]:
        mistakes.append(Mistake(child(path, "bind"), "a profile needs a bind plugin, it has none"))
    return mistakes


def check_queue_sort(
    profile: EffectiveProfile, first: EffectiveProfile, path: str
) -> list[Mistake]:
    """Return what is wrong if a profile sorts otherwise than the first: one queue for all."""
    (sorting,) = first.points["queueSort"]
    (other,) = profile.points["queueSort"]
    if other != sorting:
        why = f"must be the same in all profiles: {sorting}, not {other}"
        return [Mistake(f"{path}.plugins.queueSort", why)]
    if profile.args.get(sorting) != first.args.get(sorting):
        why = f"the arguments of {sorting} must be the same in all profiles"
        return [Mistake(f"{path}.pluginConfig", why)]
    return []


def running_profiles(
    config: SchedulerConfig, plugins: Mapping[str, type[Plugin]] = PLUGINS
) -> tuple[EffectiveProfile, ...]:
    """Return the profiles as they run: less the resources that extenders look after.

    Parameters are as for :func:`effective_profiles`.

    Raises
    ------
    ConfigError
        As :func:`effective_profiles`.
    """
    return leave_to_extenders(effective_profiles(config, plugins), config.extenders)


def shares_attempts(config: SchedulerConfig, plugins: Mapping[str, type[Plugin]]) -> bool:
    """Tell whether the QueueSort plugin of a configuration shares attempts between accounts.

    False as well for a configuration that cannot be used: whoever uses it finds that out.
    """
    profile, path = config.profiles[0], item("profiles", 0)
    effective, _ = effective_profile(profile, plugins, path, config.percentage_of_nodes_to_score)
    if effective is None:
        return False
    (name,) = effective.points["queueSort"]
    sorting = plugins[name]
    return issubclass(sorting, QueueSortPlugin) and sorting.account is not QueueSortPlugin.account
