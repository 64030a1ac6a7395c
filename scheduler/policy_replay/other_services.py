"""The services of plugins in the cluster of the other policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.framework.status import SUCCESS
from scheduler.journal.replayed_services import ReplayedServices
from scheduler.offline.offline_framework import NoPreemption

if TYPE_CHECKING:
    from collections.abc import Collection

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.status import Status
    from plugins.framework.victims import Victims
    from scheduler.policy_replay.other_world import OtherWorld


class OtherServices(ReplayedServices):
    """The services of the other policy's plugins.

    Attributes
    ----------
    trying
        The pod that is decided about.
    """

    def __init__(self, world: OtherWorld) -> None:
        super().__init__(world)
        self._world = world
        self.chosen = ChosenVictims(world, self)
        self.preemption = self.chosen
        self.trying: PodInfo | None = None

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod that is decided about; plugins ask for no other one.

        In the version that was returned then, unless what it says of a nomination is not so here.
        """
        info = self.trying
        if info is None or (info.namespace, info.name) != (namespace, name):
            return None
        read = self.answers.next("pod")
        fate = self._world.fates.get(info.uid)
        if read is None or fate is None or fate.nominated != fate.nominated_then:
            return info.pod
        found: Pod | None = self._world.decoder.object(read[2])
        return found


class ChosenVictims(NoPreemption):
    """Keeps the victims that a plugin has chosen, and evicts nobody.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(self, world: OtherWorld, services: OtherServices) -> None:
        self._world = world
        self._services = services
        self._chosen: tuple[str, Victims] | None = None

    def leaving(self) -> Collection[str]:
        """Return the UIDs of chosen victims that are not shown to be leaving yet."""
        leaving, read = self._world.leaving, self._services.answers.next("leaving")
        if read is not None:  # those that are not in it any more could not be evicted then
            for uid in leaving.keys() - set(read[0]):
                del leaving[uid]
        return tuple(leaving)

    def start(self, info: PodInfo, node_name: str, victims: Victims, plugin: str) -> Status:
        """Keep the victims; return success."""
        self._chosen = node_name, victims
        return SUCCESS

    def take(self) -> tuple[str, Victims] | None:
        """Return the node and the victims of the last decision, once."""
        chosen, self._chosen = self._chosen, None
        return chosen
