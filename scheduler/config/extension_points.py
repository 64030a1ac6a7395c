"""Define the extension points by their names in a configuration, and the plugins of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.framework.interfaces import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

POINTS: Mapping[str, type[Plugin]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
"""The extension points by their name in a configuration file."""


def points_of(plugin: type[Plugin]) -> frozenset[str]:
    """Return the names of the extension points that a plugin class serves."""
    return frozenset(name for name, point in POINTS.items() if issubclass(plugin, point))
