"""The pods that wait for a node during a question, as the queue of the scheduler has them.

Pending pods, the successors of evicted pods and those of preempted ones wait side by side. Whenever
something has changed, those that may fit now are tried again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.queue_order import place_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random

    from cache.objects import Pod
    from scheduler.what_if.budgets import BudgetLedger
    from scheduler.what_if.changed_cluster import Changes
    from scheduler.what_if.placer import Outcome, Placer
    from scheduler.what_if.tally import Tally


@dataclass(slots=True)
class _Waiting:
    """A pod that waits, the part that it counts in, and the pod that it replaces."""

    pod: Pod
    tally: Tally
    of: Pod | None = None
    outcome: Outcome | None = None


class WaitingPods:
    """Places pods as soon as they fit.

    Parameters
    ----------
    placer
        Decides about them.
    ledger
        Counts those that run.
    preempted
        Counts the successors of preempted pods.
    random
        Decides in which order pods arrive that are created at one time. None for the order of a
        queue in which all of them are.

    Notes
    -----
    *Cost*: one decision for each pod that may fit; a pod that is like one that was refused is not
    tried until something has changed.
    """

    def __init__(
        self, placer: Placer, ledger: BudgetLedger, preempted: Tally, random: Random | None
    ) -> None:
        self._placer = placer
        self._ledger = ledger
        self._preempted = preempted
        self._random = random
        self._waiting: dict[str, _Waiting] = {}
        self._tried: Changes | None = None

    def add(self, pods: Iterable[Pod], tally: Tally) -> None:
        """Let pods of the cluster wait."""
        for pod in pods:
            self._waiting[pod.metadata.uid] = _Waiting(pod, tally)

    def replace(self, pods: Iterable[Pod], tally: Tally) -> None:
        """Delete pods; those that a controller manages get a successor, which waits."""
        changed = self._placer.changed
        for pod in pods:
            self._waiting.pop(pod.metadata.uid, None)
            if drain_kind(pod) is not DrainKind.MANAGED:
                changed.delete(pod)
                continue
            successor, why = changed.replace(pod)
            if successor is None:
                tally.refuse(key_of(pod), why)
            else:
                self._waiting[successor.metadata.uid] = _Waiting(successor, tally, pod)

    def place(self) -> bool:
        """Try all that may fit until nothing changes any more; return whether any pod was placed.

        *Cost*: nothing where neither the cluster nor the waiting pods have changed.
        """
        was_placed = False
        while True:
            self._take_over_preempted()
            new = [each.pod for each in self._waiting.values() if each.outcome is None]
            changes = self._placer.changed.changes
            if not self._waiting or (not new and self._tried == changes):
                return was_placed
            before = changes.bound
            for batch in self._batches(new):
                self._try(batch)
                self._take_over_preempted()
            again = self._refused(changes)
            self._tried = replace(changes)
            self._try(again)
            was_placed = was_placed or changes.bound != before

    def end(self) -> None:
        """Count those that still wait."""
        for each in self._waiting.values():
            if each.outcome is not None:
                _count(each, each.outcome)
        self._waiting.clear()

    def _refused(self, changes: Changes) -> list[Pod]:
        """Return the pods to be tried again: those of groups only if something has left."""
        groups = self._placer.cluster.known.pod_groups
        has_left = self._tried is None or self._tried.left != changes.left
        return [
            each.pod
            for each in self._waiting.values()
            if each.outcome is not None
            and (has_left or not groups.has_any or groups.key_of(each.pod) is None)
        ]

    def _batches(self, pods: list[Pod]) -> list[list[Pod]]:
        """Return the pods that are in the queue together."""
        if self._random is None or len(pods) < 2:
            return [pods] if pods else []
        self._random.shuffle(pods)
        return chunks(pods, self._random)

    def _try(self, pods: Sequence[Pod]) -> None:
        for pod, outcome in place_all(self._placer, pods):
            each = self._waiting.get(pod.metadata.uid)
            if each is None:
                continue  # another member of its group
            each.outcome = outcome
            if outcome.node_name:
                del self._waiting[pod.metadata.uid]
                self._ledger.runs(self._placer.cluster.pods[key_of(pod)])
                _count(each, outcome)

    def _take_over_preempted(self) -> None:
        """Count the pods that were preempted, and let their successors wait."""
        victims, self._placer.record.victims = self._placer.record.victims, []
        for victim, successor in victims:
            self._ledger.lose(victim)
            self._waiting.pop(victim.metadata.uid, None)
            if successor is not None:
                waiting = _Waiting(successor, self._preempted)
                self._waiting[successor.metadata.uid] = waiting


def chunks(pods: list[Pod], random: Random) -> list[list[Pod]]:
    """Return pods in chunks of random sizes: all at once, one by one, or anything between."""
    size = random.choice((1, 1, 2, len(pods)))
    return [pods[start : start + size] for start in range(0, len(pods), size)]


def key_of(pod: Pod) -> str:
    """Return ``namespace/name``."""
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _count(each: _Waiting, outcome: Outcome) -> None:
    of = each.of
    if of is None:
        each.tally.count(key_of(each.pod), outcome)
    else:
        each.tally.count(key_of(of), outcome, of.spec.node_name)
