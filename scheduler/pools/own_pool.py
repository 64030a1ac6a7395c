"""Put together what a process knows of its pool, for the other parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.value import Value
from plugins.framework.status import SUCCESS, Status
from scheduler.pools.ownership import Ownership
from scheduler.pools.refusals import Refusals
from scheduler.pools.topologies import TopologyGate

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.locks import MakeLock
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from scheduler.pools.options import PoolOptions


class OwnPool(Value, frozen=True):
    """The pool of this process.

    Attributes
    ----------
    ownership
        Decides which pods are its; None where it shares them with no other pool.
    refusals
        The pods that it has no room for.
    gate
        Refuses pods whose constraints reach across pools; None where there is one pool.
    """

    ownership: Ownership | None
    refusals: Refusals
    gate: TopologyGate | None

    @classmethod
    def of(cls, options: PoolOptions, clock: Callable[[], float], lock: MakeLock) -> OwnPool:
        """Return the pool of some options."""
        return cls(
            Ownership(options.name, options.pools) if options.pools else None,
            Refusals(clock, lock),
            None if options.has_all_nodes else TopologyGate(options),
        )

    def counts(self) -> dict[str, float]:
        """Return how many pods are remembered, by why."""
        known = {} if self.ownership is None else self.ownership.counts
        return {"refused": float(len(self.refusals)), **{k: float(v) for k, v in known.items()}}

    def gated(self, pre_enqueue: Callable[[Pod], Status]) -> Callable[[Pod], Status]:
        """Return what asks the gate before the plugins of the profile."""
        gate = self.gate
        if gate is None:
            return pre_enqueue

        def check(pod: Pod) -> Status:
            status = gate.check(pod)
            return pre_enqueue(pod) if status is SUCCESS else status

        return check

    def is_given_away(self, pod: Pod | None) -> bool:
        """Return whether a pod that may have several owners is another pool's now."""
        ownership = self.ownership
        if ownership is None or pod is None or not ownership.is_shared(pod):
            return False
        return not ownership.owns(pod)

    def still_owns(self, live_pod: Callable[[str, str], Pod | None], info: PodInfo) -> bool:
        """Return whether a pod is not another pool's, as far as the watch has shown."""
        return self.ownership is None or not self.is_given_away(_same(live_pod, info))

    def version(self, live_pod: Callable[[str, str], Pod | None], info: PodInfo) -> str:
        """Return the version of a pod that its binding depends on; empty for any."""
        ownership = self.ownership
        if ownership is None or not ownership.is_shared(info.pod):
            return ""
        pod = _same(live_pod, info)
        return (info.pod if pod is None else pod).metadata.resource_version


def _same(live_pod: Callable[[str, str], Pod | None], info: PodInfo) -> Pod | None:
    """Return the newest version of a pod, None if the watch shows none or another one."""
    pod = live_pod(info.namespace, info.name)
    return pod if pod is not None and pod.metadata.uid == info.uid else None
