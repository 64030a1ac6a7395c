"""The forecast: what the cluster would look like after the changes that a question asks for.

    add and remove nodes, cordon those to drain
      -> pending pods (if asked) -> successors of the pods of removed nodes
      -> drains, round by round -> new pods and groups -> successors of preempted pods
      -> drained nodes that are removed as well -> who would move by another configuration

Each step sees the cluster as the step before left it. All of them decide by the scheduler's own
cycle, one pod after another, with ties broken by the question's seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cache.pod_group_objects import GroupKey, GroupSource
from plugins.registry import PLUGINS
from scheduler.config import ConfigError, parse_config, running_profiles
from scheduler.config.config_error import did_you_mean, item, shown
from scheduler.what_if.budgets import BudgetLedger
from scheduler.what_if.changed_cluster import ChangedCluster
from scheduler.what_if.drain import Drain, Successors
from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.manifests import read_manifests
from scheduler.what_if.new_pods import place_groups, place_pods
from scheduler.what_if.placer import DEFAULT_CPU_S, Placer
from scheduler.what_if.policy_moves import policy_moves
from scheduler.what_if.question import QuestionError
from scheduler.what_if.queue import place_all, place_group
from scheduler.what_if.result import (
    GROUP,
    MAX_NAMES,
    PENDING,
    PREEMPTED,
    REMOVED,
    Forecast,
    NodeDrain,
)
from scheduler.what_if.tally import Tally, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.offline.cluster import Cluster
    from scheduler.what_if.question import Question
    from scheduler.what_if.result import Part


def forecast(
    cluster: Cluster,
    profiles: Sequence[EffectiveProfile],
    question: Question,
    plugins: Mapping[str, type[Plugin]] = PLUGINS,
    cpu_s: float = DEFAULT_CPU_S,
) -> Forecast:
    """Return what would become of a cluster.

    Parameters
    ----------
    cluster
        It is changed: whoever needs it afterwards passes a copy, or asks in a forked process.
    profiles
        The profiles in force; the configuration of the question goes before them.
    plugins
        The available plugins by name.
    cpu_s
        CPU seconds of this thread. What is not decided by then is counted as undecided.

    Raises
    ------
    QuestionError
        When a value of the question cannot be used; names its path.
    ConfigError
        When a plugin's arguments cannot be used.

    *Cost*: one decision for each pod; 50 000 replicas on 5 000 nodes take some 10 s.
    """
    question.check()
    if question.config is not None:
        profiles = _profiles_of(question.config, plugins)
    _check_nodes(cluster, question)
    found = read_manifests(question.objects, cluster)
    placer = Placer(
        ChangedCluster(cluster, found.templates), profiles, plugins, question.seed, cpu_s
    )
    for sentence in found.notes:
        placer.note(sentence)
    run = _Run(placer, question)
    run.change_nodes()
    run.place_pending()
    run.drain()
    run.parts += place_groups(placer, found, question.replicas)
    run.parts += place_pods(placer, found.pods, question.replicas)
    run.place_group()
    run.place_preempted()
    run.remove_drained()
    if question.config is not None:
        run.parts.append(policy_moves(placer))
    return run.result()


def _profiles_of(text: str, plugins: Mapping[str, type[Plugin]]) -> tuple[EffectiveProfile, ...]:
    try:
        return running_profiles(parse_config(text, "", plugins), plugins)
    except ConfigError as error:
        mistake = error.mistakes[0]
        path = f"config.{mistake.path}" if mistake.path else "config"
        raise QuestionError(path, mistake.why) from error


def _check_nodes(cluster: Cluster, question: Question) -> None:
    for field, names in (
        ("drain", question.drain),
        ("remove", question.remove),
        ("add", tuple(each.like for each in question.add)),
    ):
        for index, name in enumerate(names):
            if name not in cluster.nodes:
                path = item(field, index) + (".like" if field == "add" else "")
                near = did_you_mean(name, cluster.nodes)
                known = len(cluster.nodes)
                raise QuestionError(path, f"there is no node {shown(name)} among {known}{near}")


class _Run:
    """One forecast in the making: see the module for the order of the steps."""

    def __init__(self, placer: Placer, question: Question) -> None:
        self._placer = placer
        self._changed = placer.changed
        self._question = question
        self._ledger = BudgetLedger(placer.cluster.known.disruption_budgets)
        self.parts: list[Part] = []
        self._drains: list[NodeDrain] = []
        self._removed = Tally(REMOVED, listed(self._removed_at_once()))
        self._successors = Successors(placer, self._ledger, self._removed)

    def _removed_at_once(self) -> list[str]:
        """Return the nodes that go without a drain."""
        return [name for name in self._question.remove if name not in self._question.drain]

    def change_nodes(self) -> None:
        """Add nodes, remove nodes with their pods, and cordon those to drain."""
        for added in self._question.add:
            self._changed.add_nodes_like(added.like, added.count)
        for name in self._question.drain:
            self._changed.cordon(name)
        names = self._removed_at_once()
        pods = self._changed.pods_on(frozenset(names))
        for name in names:
            self._lose(pods[name])
            self._changed.remove_node(name)

    def _lose(self, pods: Sequence[Pod]) -> None:
        """Delete the pods of a node that is gone; controllers replace those that they manage."""
        unmanaged = sum(drain_kind(pod) is DrainKind.UNMANAGED for pod in pods)
        if unmanaged:
            self._placer.note(
                f"{unmanaged} pods of removed nodes have no controller: nobody replaces them."
            )
        for pod in pods:
            self._ledger.lose(pod)
        self._successors.replace(pods)

    def place_pending(self) -> None:
        """Place the pending pods if asked for, then the successors of pods of removed nodes."""
        if self._question.pending:
            tally = Tally(PENDING, "")
            self._place(self._placer.pending_pods(), tally)
            self.parts.append(tally.part())
        if self._removed_at_once():
            self._successors.place()
            self._successors.end()
            self.parts.append(self._removed.part())

    def drain(self) -> None:
        """Drain the nodes of the question."""
        if self._question.drain:
            drain = Drain(self._placer, self._ledger, self._question.seed)
            part, self._drains[:] = drain.run(self._question.drain)
            self.parts.append(part)

    def place_group(self) -> None:
        """Place the group of the cluster that the question names."""
        if not self._question.podgroup:
            return
        for key in self._group_keys():
            tally = Tally(GROUP, str(key))
            for pod, outcome in place_group(self._placer, key):
                tally.count(f"{pod.metadata.namespace}/{pod.metadata.name}", outcome)
            part = tally.part()
            if not (part.placed or part.refused or part.undecided):
                self._placer.note(f"No member of the pod group {key} waits for a node.")
            self.parts.append(part)

    def _group_keys(self) -> list[GroupKey]:
        namespace, _, name = self._question.podgroup.rpartition("/")
        namespace = namespace or "default"
        groups = self._placer.cluster.known.pod_groups
        keys = [GroupKey(namespace, name, source) for source in GroupSource]
        known = [key for key in keys if groups.report(key) is not None]
        if not known:
            all_keys = groups.keys()
            names = {key.name for key in all_keys if key.namespace == namespace}
            why = f"there is no pod group {namespace}/{name}{did_you_mean(name, names)}"
            raise QuestionError("podgroup", why)
        return known

    def place_preempted(self) -> None:
        """Place what replaces the pods that were evicted for more important ones."""
        record = self._placer.record
        if not record.successors:
            return
        tally = Tally(PREEMPTED, "")
        while record.successors:
            successors, record.successors = record.successors, []
            alive = self._placer.cluster.pods
            self._place((pod for pod in successors if alive.get(_key(pod)) is pod), tally)
        self.parts.append(tally.part())

    def remove_drained(self) -> None:
        """Remove the nodes that were drained first; pods that are left there are lost."""
        names = [name for name in self._question.remove if name in self._question.drain]
        pods = self._changed.pods_on(frozenset(names))
        for name in names:
            for pod in pods[name]:
                self._changed.delete(pod)
            self._changed.remove_node(name)

    def _place(self, pods: Iterable[Pod], tally: Tally) -> None:
        for pod, outcome in place_all(self._placer, pods):
            tally.count(_key(pod), outcome)

    def result(self) -> Forecast:
        """Return the forecast."""
        record = self._placer.record
        left_out = len(record.preempted) - MAX_NAMES
        if left_out > 0:
            self._placer.note(f"{left_out} more pods would be preempted.")
        found = Forecast.of(
            tuple(self.parts),
            tuple(self._drains),
            self._ledger.uses(),
            tuple(record.preempted[:MAX_NAMES]),
            tuple(record.notes),
        )
        # Who was placed and then preempted counts once: as the successor.
        nodes = dict(found.nodes)
        for name in record.displaced:
            nodes[name] = nodes.get(name, 0) - 1
        nodes = {name: count for name, count in nodes.items() if count > 0}
        return replace(found, nodes=nodes, placed=sum(nodes.values()))


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
