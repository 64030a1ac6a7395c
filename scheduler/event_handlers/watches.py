"""The watches that are needed whatever the profiles are: an informer for each kind.

Pods and nodes go to the event handlers, all other kinds where :mod:`scheduler.kinds` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cache.pod_templates import PodTemplates
from scheduler.informers import InformerFactory
from scheduler.kinds import NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.client.transport import Transport
    from scheduler.event_handlers.other_objects import OtherObjects
    from scheduler.event_handlers.pods_and_nodes import EventHandlers
    from scheduler.informers import Informer
    from scheduler.kinds import WatchedKind
    from scheduler.process.vital import OnDeath


class Watches:
    """The informers of all kinds that are needed whatever the profiles are.

    Parameters
    ----------
    kinds
        What is watched besides pods and nodes, which may be among them.
    handlers, others
        What receives the changes of pods and nodes, and of all other kinds.
    on_death
        Called with the name of an informer that ends without being stopped.

    Attributes
    ----------
    all
        Each of them once.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        transport: Transport,
        kinds: Sequence[WatchedKind[Any]],
        handlers: EventHandlers,
        others: OtherObjects,
        *,
        on_death: OnDeath,
    ) -> None:
        self._informers = informers = InformerFactory(transport, on_death=on_death)
        templates = PodTemplates()
        self.pods = informers.informer(PODS, transform=templates.share)
        self.pods.add_handler(handlers.on_pods)
        self.pods.add_delta_handler(lambda d: templates.pod_changed(d.old, d.new))
        self.nodes = informers.informer(NODES)
        self.nodes.add_handler(handlers.on_nodes)
        watched: list[Informer[Any]] = [self.pods, self.nodes]
        for kind in kinds:
            if kind.goes_to is not None:
                informer = informers.informer(kind)
                informer.add_delta_handler(others.handler(kind))
                watched.append(informer)
        self.all = tuple(watched)

    def start(self) -> None:
        """List and watch, from now on."""
        self._informers.start()

    async def stop(self) -> None:
        """End all watches."""
        await self._informers.stop()

    async def wait_synced(self) -> None:
        """Return once the first list of each kind has been taken in."""
        await self._informers.wait_synced()
