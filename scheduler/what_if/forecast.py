"""The forecast: what the cluster would look like after the changes that a question asks for.

    add and remove nodes, cordon those to drain
      -> pending pods (if asked) and successors of the pods of removed nodes
      -> drains, round by round -> drained nodes that are removed as well
      -> new groups and pods -> who would move by another configuration

Each step sees the cluster as the step before left it. Pods that wait are tried again, and the
successors of preempted pods as soon as they exist. All of them decide by the scheduler's own cycle,
one pod after another, with ties broken by the question's seed.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from cache.pod_group_objects import GroupKey, GroupSource
from plugins.registry import PLUGINS
from scheduler.config import ConfigError, parse_config, running_profiles
from scheduler.config.config_error import did_you_mean, item, shown
from scheduler.what_if.admission import Admission
from scheduler.what_if.budgets import BudgetLedger
from scheduler.what_if.changed_cluster import ChangedCluster
from scheduler.what_if.drain import Drain
from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.manifests import read_manifests
from scheduler.what_if.new_pods import place_groups, place_pods
from scheduler.what_if.placer import DEFAULT_CPU_S, Placer
from scheduler.what_if.policy_moves import policy_moves
from scheduler.what_if.question import QuestionError
from scheduler.what_if.queue_order import place_group
from scheduler.what_if.result import (
    DRAINED,
    GROUP,
    MAX_NAMES,
    PENDING,
    PREEMPTED,
    REMOVED,
    Forecast,
    NodeDrain,
)
from scheduler.what_if.tally import Tally, listed
from scheduler.what_if.waiting_pods import WaitingPods, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.offline.cluster import Cluster
    from scheduler.what_if.manifests import Manifests
    from scheduler.what_if.question import Question
    from scheduler.what_if.result import Part

_BETWEEN: Final = 0.5
"""How likely pods that wait come between two new ones, which their controller creates by and by."""


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

    *Cost*: one decision for each pod, some 0.25 ms; copies that only amounts decide about are
    counted, 50 000 of them on 5 000 nodes in 1.4 s.
    """
    question.check()
    if question.config is not None:
        profiles = _profiles_of(question.config, plugins)
    _check_nodes(cluster, question)
    found = read_manifests(question.objects, cluster)
    admission = Admission(cluster)
    found.pods = [replace(new, pod=admission.complete(new.pod)) for new in found.pods]
    changed = ChangedCluster(cluster, found.templates, admission)
    placer = Placer(changed, profiles, plugins, question.seed, cpu_s)
    for sentence in (*found.notes, *admission.unreadable):
        placer.note(sentence)
    if found.pods and (sentence := admission.not_considered()):
        placer.note(sentence)
    run = _Run(placer, question)
    run.change_nodes()
    run.drain()
    run.parts += place_groups(placer, found, question.replicas)
    run.place_new(found)
    run.place_group()
    run.place_preempted()
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
        self._random = Random(question.seed) if question.seed else None
        self._ledger = BudgetLedger(placer.cluster)
        self.parts: list[Part | Tally] = []
        self._drains: list[NodeDrain] = []
        self._preempted = Tally(PREEMPTED, "")
        self._waiting = WaitingPods(placer, self._ledger, self._preempted, self._random)

    def change_nodes(self) -> None:
        """Add nodes, remove nodes with their pods, and cordon those to drain.

        Then the pending pods are placed, if asked for, and the successors of removed ones.
        """
        for added in self._question.add:
            self._changed.add_nodes_like(added.like, added.count)
        for name in self._question.drain:
            self._changed.cordon(name)
        if self._question.pending:
            self.parts.append(pending := Tally(PENDING, ""))
            self._waiting.add(self._placer.pending_pods(), pending)
        self._remove([name for name in self._question.remove if name not in self._question.drain])

    def _remove(self, names: list[str]) -> None:
        """Remove nodes; controllers replace the pods that they manage."""
        pods = self._changed.pods_on(frozenset(names))
        lost = [pod for name in names for pod in pods[name]]
        unmanaged = sum(drain_kind(pod) is DrainKind.UNMANAGED for pod in lost)
        if unmanaged:
            self._placer.note(
                f"{unmanaged} pods of removed nodes have no controller: nobody replaces them."
            )
        for pod in lost:
            self._ledger.lose(pod)
        if names:
            self.parts.append(removed := Tally(REMOVED, listed(names)))
            self._waiting.replace(lost, removed)
        for name in names:
            self._changed.remove_node(name)
        self._waiting.place()

    def drain(self) -> None:
        """Drain the nodes of the question, and remove those of them that are to be removed."""
        names = self._question.drain
        if not names:
            return
        self.parts.append(tally := Tally(DRAINED, listed(names)))
        drain = Drain(self._placer, self._ledger, self._waiting, tally, self._random)
        self._drains += [drain.drain(name) for name in names]
        self._remove([name for name in self._question.remove if name in names])

    def place_new(self, found: Manifests) -> None:
        """Place the new pods of a question; with a seed, others that wait come between them."""
        random = self._random

        def between() -> None:
            if random is not None and random.random() < _BETWEEN:
                self._waiting.place()

        self.parts += place_pods(self._placer, found.pods, self._question.replicas, between)

    def place_group(self) -> None:
        """Place the group of the cluster that the question names."""
        if not self._question.podgroup:
            return
        for key in self._group_keys():
            tally = Tally(GROUP, str(key))
            for pod, outcome in place_group(self._placer, key):
                tally.count(key_of(pod), outcome)
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
        self._waiting.place()
        self._waiting.end()
        if self._preempted.total:
            self.parts.append(self._preempted)

    def result(self) -> Forecast:
        """Return the forecast."""
        record = self._placer.record
        left_out = len(record.preempted) - MAX_NAMES
        if left_out > 0:
            self._placer.note(f"{left_out} more pods would be preempted.")
        found = Forecast.of(
            tuple(part.part() if isinstance(part, Tally) else part for part in self.parts),
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
        return msgspec.structs.replace(found, nodes=nodes, placed=sum(nodes.values()))
