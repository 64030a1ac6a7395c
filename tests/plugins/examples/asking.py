"""Plugins made from users' classes, and asked about clusters that are written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.authoring import adapt
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, ScorePlugin
from plugins.framework.node_metrics import MetricReading
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.interfaces import Plugin
    from tests.builders import NodeBuilder, PodBuilder


class Measured(RecordingHandle):
    """Lends one metric, whatever it is called; None where the last reading is too old."""

    def __init__(self, by_node: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self.node_metrics = self
        self._reading: MetricReading | None = None
        self._version = 0
        self.read(by_node)

    def read(self, by_node: Mapping[str, float] | None) -> None:
        self._version += 1
        self._reading = None if by_node is None else MetricReading(dict(by_node), self._version)

    def latest(self, name: str) -> MetricReading | None:
        return self._reading


class Asked:
    """One plugin in one cluster."""

    def __init__(
        self, cls: type, *nodes: NodeBuilder, handle: RecordingHandle | None = None, **args: Any
    ) -> None:
        kind = adapt(cls)
        assert kind.args_type is not None
        given = msgspec.convert(args, kind.args_type)
        self.plugin: Plugin = kind(given, handle or RecordingHandle())
        self._cache, self._snapshot = SchedulerCache(), Snapshot()
        for each in nodes:
            self._cache.add_node(each.build())

    def place(self, *pods: PodBuilder) -> None:
        """Let pods run; each names its node."""
        for each in pods:
            self._cache.add_pod(each.info())

    def take_away(self, *pods: PodBuilder) -> None:
        for each in pods:
            self._cache.remove_pod(each.info())

    def add(self, *nodes: NodeBuilder) -> None:
        for each in nodes:
            self._cache.add_node(each.build())

    def remove_node(self, name: str) -> None:
        self._cache.remove_node(name)

    def scores(self, pod: PodBuilder, *names: str) -> dict[str, int]:
        """Return normalised scores by node name: of the nodes with these names, or of all."""
        assert isinstance(self.plugin, ScorePlugin)
        self._cache.update_snapshot(self._snapshot)
        view = self._snapshot.all_nodes()
        if names:
            view = view.subset(np.array([view.row(name) for name in names], dtype=np.intp))
        state, info = CycleState(), PodInfo(pod.build())
        raw = self.plugin.score(state, info, view)
        final = self.plugin.normalize(state, info, raw)
        listed = [each.name for each in view.node_infos()]
        return dict(zip(listed, final.tolist(), strict=True))

    def refused(self, pod: PodBuilder) -> dict[str, str]:
        """Return the reason of each node that is refused."""
        assert isinstance(self.plugin, FilterPlugin)
        self._cache.update_snapshot(self._snapshot)
        view = self._snapshot.all_nodes()
        verdicts = self.plugin.filter(CycleState(), PodInfo(pod.build()), view)
        statuses = {each.name: verdicts.status_of(i) for i, each in enumerate(view.node_infos())}
        return {name: status.reasons[0] for name, status in statuses.items() if status.reasons}
