"""Informers that are filled by hand, as their watches would fill them."""

from __future__ import annotations

from typing import Any

from scheduler.informers import Informer
from scheduler.informers.reflector_options import ReflectorOptions
from scheduler.informers.watch_events import EventType
from scheduler.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PODS


class Informed:
    """Informers of pods, nodes and claims."""

    def __init__(self) -> None:
        self.pods = self._informer(PODS)
        self.nodes = self._informer(NODES)
        self.claims = self._informer(PERSISTENT_VOLUME_CLAIMS)
        self._version = 0

    @property
    def all(self) -> list[Informer[Any]]:
        return [self.pods, self.nodes, self.claims]

    def put(self, informer: Informer[Any], obj: Any) -> None:
        self._apply(informer, EventType.MODIFIED, obj)

    def remove(self, informer: Informer[Any], obj: Any) -> None:
        self._apply(informer, EventType.DELETED, obj)

    def _apply(self, informer: Informer[Any], event: EventType, obj: Any) -> None:
        deltas: list[Any] = []
        informer._store.apply(event, obj, deltas)
        informer._deliver(deltas)

    def _informer(self, kind: Any) -> Informer[Any]:
        return Informer(None, kind, options=ReflectorOptions())  # type: ignore[arg-type]
