"""Drains nodes as ``kubectl drain`` does, with the successors of the evicted pods placed.

    cordon all nodes -> one node after the other:
        evict what the budgets allow -> place all that wait -> the budgets may allow more -> again

*Source*: k8s.io/kubectl pkg/cmd/drain and pkg/drain (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.what_if.kinds_of_pods import DrainKind, drain_kind
from scheduler.what_if.result import MAX_NAMES, Blocked, NodeDrain
from scheduler.what_if.waiting_pods import chunks, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from cache.objects import Pod
    from scheduler.what_if.budgets import BudgetLedger
    from scheduler.what_if.placer import Placer
    from scheduler.what_if.tally import Tally
    from scheduler.what_if.waiting_pods import WaitingPods

OUT_OF_TIME: Final = "the time for this question is used up"


class Drain:
    """Drains nodes that are cordoned.

    Parameters
    ----------
    placer
        Knows the cluster and the time.
    ledger
        Knows whom budgets let go.
    waiting
        Places the successors, and all others that wait.
    tally
        Counts the successors.
    random
        Decides in which order the pods of a node are evicted, because kubectl evicts them at one
        time. None for all at once.

    Notes
    -----
    *Cost*: one decision for each evicted pod, and one more for each refused one and each round.
    """

    def __init__(
        self,
        placer: Placer,
        ledger: BudgetLedger,
        waiting: WaitingPods,
        tally: Tally,
        random: Random | None,
    ) -> None:
        self._placer = placer
        self._ledger = ledger
        self._waiting = waiting
        self._tally = tally
        self._random = random

    def drain(self, name: str) -> NodeDrain:
        """Drain a node; return what was evicted, and what is left on it."""
        pods = self._placer.changed.pods_on(frozenset((name,)))[name]
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
        unmanaged = [
            key_of(pod)
            for pod in to_evict
            if drain_kind(pod) is DrainKind.UNMANAGED and pod.metadata.uid not in left
        ]
        blocked = tuple(
            Blocked(key_of(pod), self._ledger.names(pod), why) for pod, why in left.values()
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
            if self._placer.is_out_of_time():
                return {pod.metadata.uid: (pod, OUT_OF_TIME) for pod in pods}
            left: dict[str, tuple[Pod, str]] = {}
            was_placed = False
            for batch in self._at_one_time(pods):
                refused = self._evict_at_once(batch, held_back)
                left.update(refused)
                was_placed = self._waiting.place() or was_placed
            if len(left) == len(pods) and not was_placed:
                for pod, _ in left.values():
                    self._ledger.blocked(pod)
                return left
            held_back.update(left)
            pods = [pod for pod, _ in left.values()]
        return {}

    def _at_one_time(self, pods: list[Pod]) -> list[list[Pod]]:
        """Return the pods that are evicted before the successors of others run."""
        return [pods] if self._random is None else chunks(pods, self._random)

    def _evict_at_once(
        self, pods: Sequence[Pod], held_back: set[str]
    ) -> dict[str, tuple[Pod, str]]:
        left: dict[str, tuple[Pod, str]] = {}
        gone = []
        for pod in pods:
            why = self._ledger.evict(pod)
            if why:
                left[pod.metadata.uid] = pod, why
                continue
            gone.append(pod)
            if pod.metadata.uid in held_back:
                self._ledger.waited(pod)
        self._waiting.replace(gone, self._tally)
        return left
