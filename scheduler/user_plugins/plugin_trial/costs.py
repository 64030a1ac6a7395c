"""Measures how long a plugin's methods take in a large cluster."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, ScorePlugin
from scheduler.user_plugins.plugin_trial.trial_cluster import World
from scheduler.user_plugins.plugin_trial.trial_messages import Cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cache.columns import NodesView
    from scheduler.user_plugins.plugin_trial.conformance import Subject

CALLS: Final = 200
MAX_S: Final = 2.0
"""The longest time for which one method is measured: a few calls of a slow method suffice."""


def costs_of(subject: Subject, num_nodes: int) -> Iterator[Cost]:
    """Measure each method for all nodes; a pod is added to a node between two calls.

    Raises
    ------
    Exception
        Any exception of the plugin.
    """
    world = World.made_up(num_nodes, pods_per_node=2)
    plugin = subject.make(world)
    methods: dict[str, Callable[[CycleState, PodInfo, NodesView], object]] = {}
    if isinstance(plugin, FilterPlugin):
        methods["filter"] = plugin.filter
    if isinstance(plugin, ScorePlugin):
        methods["score"] = partial(_score, plugin)
    for point, method in methods.items():
        cache, snapshot = world.cache(), Snapshot()
        arriving = iter(range(len(world.pods)))
        times: list[float] = []
        while len(times) < CALLS and (not times or sum(times) < MAX_S):
            number = next(arriving, None)
            if number is not None and times:
                cache.remove_pod(PodInfo(world.pods[number]))
            cache.update_snapshot(snapshot)
            info = world.newcomers[len(times) % len(world.newcomers)]
            state, view = CycleState(), snapshot.all_nodes()
            began = perf_counter()
            method(state, info, view)
            times.append(perf_counter() - began)
        later = times[1:] or times
        yield Cost(
            subject.name,
            point,
            num_nodes,
            times[0],
            float(np.median(later)),
            float(np.percentile(later, 99)),
        )


def _score(plugin: ScorePlugin, state: CycleState, info: PodInfo, view: NodesView) -> object:
    return plugin.normalize(state, info, plugin.score(state, info, view))
