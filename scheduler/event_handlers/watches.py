"""Provide the watches that are needed for any profiles: an informer for each kind.

Pods and nodes go to the event handlers, all other kinds to the places in :mod:`scheduler.kinds`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import structlog
from msgspec.structs import replace

from cache.pod_templates import PodTemplates
from scheduler.informers import InformerFactory
from scheduler.kinds import NODES, POD_GROUPS, PODS, X_POD_GROUPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.pod_group_objects import GroupSource
    from scheduler.client.transport import Transport
    from scheduler.event_handlers.other_objects import OtherObjects
    from scheduler.event_handlers.pods_and_nodes import EventHandlers
    from scheduler.informers import Informer
    from scheduler.informers.reflector_options import ReflectorOptions
    from scheduler.kinds import WatchedKind
    from scheduler.process.vital import OnDeath

LATE_SYNC_S: Final = 30.0
"""How long the first list of a kind may hold up the start, if berth can do without it: a broken
conversion webhook must not keep pods from being scheduled that have nothing to do with it."""

NUMEROUS: Final = (PODS.name, NODES.name)
"""The resources of which every large cluster has many objects."""

log = structlog.get_logger(__name__)


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
    options
        How the informers read the API server.
    node_selector
        Which nodes there are; empty for all.

    Attributes
    ----------
    pods, nodes
        Theirs.
    of_decisions
        Those of what the decisions of a leader change: pods, claims and volumes.

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
        options: ReflectorOptions | None = None,
        node_selector: str = "",
    ) -> None:
        super().__init__(transport, options, on_death)
        templates = PodTemplates()
        self.pods = self.informer(PODS, transform=templates.share)
        self.pods.add_handler(handlers.on_pods)
        self.pods.add_delta_handler(lambda d: templates.pod_changed(d.old, d.new))
        self.nodes = self.informer(replace(NODES, label_selector=node_selector))
        self.nodes.add_handler(handlers.on_nodes)
        self._others = others
        self._late: dict[str, Informer[Any]] = {}
        self._late_kinds: dict[str, WatchedKind[Any]] = {}
        self.of_decisions: list[Informer[Any]] = [self.pods]
        for kind in kinds:
            if kind.goes_to is not None:
                informer = self.informer(kind)
                informer.add_delta_handler(others.handler(kind))
                if kind.is_assumed:
                    self.of_decisions.append(informer)

    def begin(self, kind: WatchedKind[Any]) -> None:
        """Watch a kind that is served from now on."""
        self._late_kinds[kind.name] = kind
        informer = self._late[kind.name] = self.informer(kind)
        informer.add_delta_handler(self._others.handler(kind))

    def pod_group_kind(self, source: GroupSource) -> WatchedKind[Any] | None:
        """Return the kind of the PodGroups of an API in the version that is watched, or None."""
        for kind in (POD_GROUPS, X_POD_GROUPS):
            if kind.group == source.value:
                return self._late_kinds.get(kind.name)
        return None

    async def end(self, kind: WatchedKind[Any]) -> None:
        """End a watch that was begun later, and report all its objects as deleted."""
        del self._late[kind.name], self._late_kinds[kind.name]
        await self.remove(kind.name)

    async def wait_synced(self) -> None:
        """Return once everything is known that decisions depend on.

        A kind whose watch was begun by :meth:`begin` is waited for only so long.
        """
        for informer in self.all:
            if informer.kind.name not in self._late:
                await informer.wait_synced()
        late = [each for each in self._late.values() if not each.has_synced]
        if not late:
            return
        waits = [asyncio.ensure_future(each.wait_synced()) for each in late]
        try:
            await asyncio.wait(waits, timeout=LATE_SYNC_S)
        finally:
            for wait in waits:
                wait.cancel()
        for each in late:
            if not each.has_synced:
                log.warning("first list is not complete", resource=each.kind.name)
