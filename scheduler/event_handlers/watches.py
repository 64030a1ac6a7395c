"""Provide the watches that are needed for any profiles: an informer for each kind.

Pods and nodes go to the event handlers, all other kinds to the places in :mod:`scheduler.kinds`.
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
    from scheduler.kinds import WatchedKind
    from scheduler.process.vital import OnDeath


class Watches(InformerFactory):
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
    pods, nodes
        Theirs.

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
        super().__init__(transport, on_death=on_death)
        templates = PodTemplates()
        self.pods = self.informer(PODS, transform=templates.share)
        self.pods.add_handler(handlers.on_pods)
        self.pods.add_delta_handler(lambda d: templates.pod_changed(d.old, d.new))
        self.nodes = self.informer(NODES)
        self.nodes.add_handler(handlers.on_nodes)
        for kind in kinds:
            if kind.goes_to is not None:
                self.informer(kind).add_delta_handler(others.handler(kind))
