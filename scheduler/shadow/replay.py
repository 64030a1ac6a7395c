"""Compares two policies on the pods of a dump, without a running scheduler.

Each pod is judged as if it were the only pending pod: a running pod is removed from its node and
added back afterwards. The result shows how two policies would decide in this state, not where all
pods would run if one of the policies had decided from the start.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cache.pod_info import PodInfo, is_terminal
from cache.snapshot import Snapshot
from scheduler.cycle.host_selection import HostSelector
from scheduler.offline.offline_framework import offline_framework
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.judgement import judge
from scheduler.shadow.comparison import CHOICE
from scheduler.shadow.report import ShadowReport
from scheduler.shadow.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.offline.cluster import Cluster
    from scheduler.runtime.framework_runner import FrameworkRunner

_SEED: Final = 1
"""A fixed seed, so that equal inputs give equal reports."""


class Replay:
    """Judges the pods of a cluster with two policies.

    Parameters
    ----------
    cluster
        The cluster in which pods are judged; it is unchanged after each judgement.
    live, shadow
        The profiles of two configurations. A pod is judged by the profiles with its schedulerName,
        or by the first ones if no profile has it.
    names
        The names of the two configurations in the report.
    plugins
        The available plugins by name.
    decisions
        The largest number of pods to judge; if there are more, they are chosen at random.

    Notes
    -----
    *Concurrency*: confined to its owner, as the cluster is.
    """

    def __init__(
        self,
        cluster: Cluster,
        live: Sequence[EffectiveProfile],
        shadow: Sequence[EffectiveProfile],
        names: tuple[str, str],
        plugins: Mapping[str, type[Plugin]],
        decisions: int,
    ) -> None:
        self._cluster = cluster
        self._profiles = live, shadow
        self._names = names
        self._plugins = plugins
        self._decisions = decisions
        self._snapshot = Snapshot()
        self._selector = HostSelector(_SEED)

    def run(self) -> list[ShadowReport]:
        """Return a report for each profile of the shadow that serves any pod.

        Raises
        ------
        ConfigError
            When a plugin's arguments cannot be used.

        *Cost*: two decisions over all nodes for each pod.
        """
        pods: dict[str, list[Pod]] = {}
        for key in sorted(self._cluster.pods):
            pod = self._cluster.pods[key]
            if not is_terminal(pod) and pod.metadata.deletion_timestamp is None:
                pods.setdefault(self._serving(pod), []).append(pod)
        return [self._play(name, listed) for name, listed in pods.items()]

    def _serving(self, pod: Pod) -> str:
        names = [profile.scheduler_name for profile in self._profiles[1]]
        wanted = pod.spec.scheduler_name
        return wanted if wanted in names else names[0]

    def _play(self, name: str, pods: list[Pod]) -> ShadowReport:
        live, shadow = (
            offline_framework(each, self._cluster, name, self._plugins) for each in self._profiles
        )
        if len(pods) > self._decisions:
            chosen = sorted(random.Random(_SEED).sample(range(len(pods)), self._decisions))
            pods = [pods[index] for index in chosen]
        old, new = self._names
        tally = Tally(ShadowReport(scheduler_name=name, live=old, shadow=new, wanted=len(pods)))
        for pod in pods:
            self._judge(tally, live, shadow, pod)
        return tally.report()

    def _judge(
        self, tally: Tally, live: FrameworkRunner, shadow: FrameworkRunner, pod: Pod
    ) -> None:
        cache, placed = self._cluster.cache, None
        if pod.spec.node_name:
            placed = PodInfo(pod)
            cache.remove_pod(placed)
            pod = replace(pod, spec=replace(pod.spec, node_name=""))
        cache.update_snapshot(self._snapshot)
        try:
            if len(self._snapshot):
                self._compare(tally, live, shadow, PodInfo(pod))
        finally:
            if placed is not None:
                cache.add_pod(placed)

    def _compare(
        self, tally: Tally, live: FrameworkRunner, shadow: FrameworkRunner, info: PodInfo
    ) -> None:
        try:
            ours = judge(live, self._snapshot, info, scored_from=CHOICE)
        except PluginError:
            tally.pass_over("failed")
            return
        try:
            theirs = judge(shadow, self._snapshot, info, scored_from=CHOICE)
        except PluginError as error:
            tally.fail(error.status.message)
            return
        best = ours.best_rows()
        chosen = int(best[self._selector.pick(len(best))]) if len(best) else None
        tally.compare(info.key, ours, theirs, chosen)
