"""Drains nodes as ``kubectl drain`` does, with the successors of the evicted pods placed.

    cordon all nodes -> one node after the other:
        evict what the budgets allow -> place the successors -> their budgets allow more -> again

*Source*: k8s.io/kubectl pkg/cmd/drain and pkg/drain (0.36).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.queue import place_all
from scheduler.what_if.result import DRAINED, MAX_NAMES, Blocked, NodeDrain
from scheduler.what_if.tally import Tally, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cache.objects import Pod
    from scheduler.what_if.budgets import BudgetLedger
    from scheduler.what_if.placer import Outcome, Placer
    from scheduler.what_if.result import Part

OUT_OF_TIME: Final = "the time for this question is used up"


@dataclass(slots=True)
class _Successor:
    """A pod that replaces an evicted one."""

    pod: Pod
    of: Pod
    outcome: Outcome | None = None


class Successors:
    """The pods that controllers create in place of others, and where they go.

    Parameters
    ----------
    placer
        Places them.
    ledger
        Is told which of them run.
    tally
        Counts them at the end.
    is_one_by_one
        Whether each is placed as it comes, and not in the order of a queue in which all wait.
    """

    def __init__(
        self,
        placer: Placer,
        ledger: BudgetLedger,
        tally: Tally,
        *,
        is_one_by_one: bool = False,
    ) -> None:
        self._is_one_by_one = is_one_by_one
        self._placer = placer
        self._ledger = ledger
        self._tally = tally
        self._waiting: dict[str, _Successor] = {}

    def replace(self, pods: Iterable[Pod]) -> None:
        """Delete pods; those that a controller manages get a successor, which waits."""
        changed = self._placer.changed
        for pod in pods:
            changed.delete(pod)
            if drain_kind(pod) is DrainKind.MANAGED:
                successor = changed.create(pod)
                self._waiting[successor.metadata.uid] = _Successor(successor, pod)

    def place(self, *, again: bool = False) -> None:
        """Try those that were not tried yet; ``again``: those that were refused as well."""
        waiting = [each.pod for each in self._waiting.values() if again or each.outcome is None]
        batches = [[pod] for pod in waiting] if self._is_one_by_one else [waiting]
        placed = chain.from_iterable(place_all(self._placer, batch) for batch in batches)
        for pod, outcome in placed:
            successor = self._waiting.get(pod.metadata.uid)
            if successor is None:
                continue  # another member of its group
            successor.outcome = outcome
            if outcome.node_name:
                del self._waiting[pod.metadata.uid]
                self._ledger.replaced(successor.of)
                self._count(successor, outcome)

    def end(self) -> None:
        """Count those that still wait."""
        for successor in self._waiting.values():
            if successor.outcome is not None:
                self._count(successor, successor.outcome)

    def _count(self, successor: _Successor, outcome: Outcome) -> None:
        of = successor.of
        key = f"{of.metadata.namespace}/{of.metadata.name}"
        self._tally.count(key, outcome, of.spec.node_name)


class Drain:
    """Drains nodes.

    Parameters
    ----------
    placer
        Places the successors.
    ledger
        Knows whom budgets let go.
    seed
        Decides in which order the pods of a node are evicted and their successors arrive, because
        kubectl evicts them at one time. 0 stands for the order of the queue.

    Notes
    -----
    *Cost*: one decision for each evicted pod, and one more for each refused one and each round.
    """

    def __init__(self, placer: Placer, ledger: BudgetLedger, seed: int) -> None:
        self._placer = placer
        self._ledger = ledger
        self._random = random.Random(seed) if seed else None
        self._tally = Tally(DRAINED, "")
        self._successors = Successors(placer, ledger, self._tally)

    def run(self, names: Sequence[str]) -> tuple[Part, tuple[NodeDrain, ...]]:
        """Drain cordoned nodes; return where their pods go, and what is left on each node."""
        self._tally = Tally(DRAINED, listed(names))
        self._successors = Successors(
            self._placer,
            self._ledger,
            self._tally,
            is_one_by_one=self._random is not None,
        )
        pods = self._placer.changed.pods_on(frozenset(names))
        drains = tuple(self._drain(name, pods[name]) for name in names)
        self._successors.end()
        return self._tally.part(), drains

    def _drain(self, name: str, pods: Sequence[Pod]) -> NodeDrain:
        kinds = [drain_kind(pod) for pod in pods]
        to_evict = [
            pod
            for pod, kind in zip(pods, kinds, strict=True)
            if kind in (DrainKind.MANAGED, DrainKind.UNMANAGED)
        ]
        for pod, kind in zip(pods, kinds, strict=True):
            if kind is DrainKind.LEAVING:
                self._placer.changed.delete(pod)
        if self._random is not None:
            self._random.shuffle(to_evict)
        left = self._evict(to_evict)
        self._successors.place(again=True)  # the terms of pods that left held others back
        unmanaged = [
            _key(pod)
            for pod in to_evict
            if drain_kind(pod) is DrainKind.UNMANAGED and pod.metadata.uid not in left
        ]
        blocked = tuple(
            Blocked(_key(pod), self._ledger.names(pod), why) for pod, why in left.values()
        )
        return NodeDrain(
            name,
            len(to_evict) - len(left),
            kinds.count(DrainKind.DAEMON_SET),
            kinds.count(DrainKind.MIRROR),
            tuple(unmanaged[:MAX_NAMES]),
            blocked[:MAX_NAMES],
        )

    def _evict(self, pods: list[Pod]) -> dict[str, tuple[Pod, str]]:
        """Evict pods round by round; return those that cannot be, by UID, with the reason."""
        held_back: set[str] = set()
        while pods:
            left: dict[str, tuple[Pod, str]] = {}
            for pod in pods:
                why = self._ledger.evict(pod)
                if why:
                    left[pod.metadata.uid] = pod, why
            evicted = [pod for pod in pods if pod.metadata.uid not in left]
            if not evicted:
                for pod, _ in left.values():
                    self._ledger.blocked(pod)
                return left
            if self._placer.is_out_of_time():
                return {pod.metadata.uid: (pod, OUT_OF_TIME) for pod in pods}
            for pod in evicted:
                if pod.metadata.uid in held_back:
                    self._ledger.waited(pod)
            held_back.update(left)
            self._successors.replace(evicted)
            self._successors.place()
            pods = [pod for pod, _ in left.values()]
        return {}


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
