"""Two policies held against each other over the pods of a dump, without a running scheduler.

Every pod is judged as if it were the only one that waits: one that runs is taken off its node and
put back afterwards. So this tells how two policies would decide from here, not where all pods would
be had one of them decided from the start.
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
"""The same question gets the same answer."""


class Replay:
    """Plays pods of a cluster through two policies.

    Parameters
    ----------
    cluster
        As it was when each pod is judged; as it was again afterwards.
    live, shadow
        The profiles of two configurations. A pod is judged by those that serve its schedulerName,
        by the first one where none does.
    names
        What the two configurations are called in the report.
    plugins
        Those that exist, by name.
    decisions
        Of more pods than that, so many are chosen at random.

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
        """Return a report for each profile of the shadow's that any pod asks for.

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
