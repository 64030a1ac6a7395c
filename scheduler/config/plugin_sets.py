"""Resolve the plugins of each extension point, their order and their weights.

A file's sets are laid over the default ones, then each plugin of ``multiPoint`` is spread over
the points that it serves. A point's own set takes precedence over the file's ``multiPoint``, and
that over the defaults.

*Source*: kube-scheduler 1.36, pkg/scheduler/apis/config/v1/default_plugins.go (mergePluginSet) and
pkg/scheduler/framework/runtime/framework.go (expandMultiPointPlugins, getValidScoreWeights).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cache.value import Value
from scheduler.config.file_profile import ALL_PLUGINS, MULTI_POINT, PluginEntry, PluginSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    PointsOf = Callable[[str], frozenset[str]]

SCORE: Final = "score"

DEFAULT_WEIGHT: Final = 1


class PluginOrder(Value, frozen=True):
    """The outcome.

    Parameters
    ----------
    points
        The names of the plugins at each extension point, in the order in which they run.
    score_weights
        What the scores of each plugin at ``score`` are multiplied by, at least 1.
    """

    points: Mapping[str, tuple[str, ...]]
    score_weights: Mapping[str, int]


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Return ``default`` with ``custom`` laid over it.

    A default plugin that is disabled is gone; one that is enabled again stands where it stood,
    with what the custom entry says of it; everything else that is enabled comes behind, in its
    own order.
    """
    disabled = (*custom.disabled, *default.disabled)
    again = {entry.name: entry for entry in custom.enabled}
    kept = [
        again.pop(entry.name, entry)
        for entry in default.enabled
        if not any(each.name in (entry.name, ALL_PLUGINS) for each in disabled)
    ]
    added = [entry for entry in custom.enabled if again.get(entry.name) is entry]
    return PluginSet((*kept, *added), disabled)


def order_plugins(
    sets: Mapping[str, PluginSet],
    points: Iterable[str],
    points_of: PointsOf,
    default_multi_point: PluginSet,
) -> PluginOrder:
    """Work out one profile.

    Parameters
    ----------
    sets
        The sets of the file by the name of the point, ``multiPoint`` among them. No plugin is
        enabled twice in one of them or at a point that it does not serve.
    points
        The extension points to work out.
    points_of
        Tells which points a plugin serves; none for one that does not exist here.
    default_multi_point
        What is enabled if the file says nothing.
    """
    nothing = PluginSet()
    multi_point = merge_plugin_set(default_multi_point, sets.get(MULTI_POINT, nothing))
    serves = {entry.name: points_of(entry.name) for entry in multi_point.enabled}
    order: dict[str, tuple[str, ...]] = {}
    for point in points:
        own = sets.get(point, nothing)
        spread = [entry.name for entry in multi_point.enabled if point in serves[entry.name]]
        order[point] = _at_point(own, spread, points_of, point)
    return PluginOrder(
        MappingProxyType(order),
        MappingProxyType(_weights(order.get(SCORE, ()), sets.get(SCORE, nothing), multi_point)),
    )


def _at_point(
    own: PluginSet, spread: list[str], points_of: PointsOf, point: str
) -> tuple[str, ...]:
    """Return the order at one point.

    First the plugins of multiPoint that the point's own set places anew, then the rest of
    multiPoint, then what only the point's own set has.
    """
    named = [entry.name for entry in own.enabled if point in points_of(entry.name)]
    if any(entry.name == ALL_PLUGINS for entry in own.disabled):
        return tuple(named)
    wanted = [name for name in spread if not own.disables(name)]
    placed_anew = [name for name in named if name in wanted]
    rest = [name for name in wanted if name not in named]
    only_here = [name for name in named if name not in wanted]
    return (*placed_anew, *rest, *only_here)


def _weights(scoring: Iterable[str], own: PluginSet, multi_point: PluginSet) -> dict[str, int]:
    """Return the weights; an entry at ``score`` counts before one at ``multiPoint``.

    An entry without a weight means 1 even where the default entry has another one.
    """
    entries: dict[str, PluginEntry] = {}
    for entry in (*own.enabled, *multi_point.enabled):
        entries.setdefault(entry.name, entry)
    weights = {}
    for name in scoring:
        entry = entries.get(name, PluginEntry(name))
        weights[name] = entry.weight or DEFAULT_WEIGHT
    return weights
