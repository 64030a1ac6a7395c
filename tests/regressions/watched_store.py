"""A store and the cluster behind it, as whoever looks for lost events sees an informer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from scheduler.informers import DeltaKind, EventType, ListedObject, MetadataPage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from scheduler.informers import Delta, Store
    from tests.regressions.cluster import Cluster


class WatchedStore:
    """The store of one resource, filled by a watch that has told all that it will ever tell.

    Notes
    -----
    *Concurrency*: confined to the loop.
    """

    def __init__(
        self,
        resource: str,
        store: Store[Any],
        cluster: Cluster,
        deliver: Callable[[Sequence[Delta[Any]]], None],
    ) -> None:
        self.kind = SimpleNamespace(name=resource)
        self._store = store
        self._cluster = cluster
        self._deliver = deliver

    @property
    def resource_version(self) -> str:
        """The version of the last change: bookmarks bring it."""
        return self._cluster.version

    def hear(self) -> bool:
        """Hand over what the watch tells; return whether there was anything."""
        events = self._cluster.take_events(self.kind.name)
        for event_type, obj in events:
            deltas: list[Delta[Any]] = []
            self._store.apply(event_type, obj, deltas)
            self._deliver(deltas)
        return bool(events)

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that have objects."""
        return self._store.namespaces()

    def staleness_s(self, now: float) -> float:
        """Return 0: it has told all that it will ever tell."""
        return 0.0

    def get(self, namespace: str, name: str) -> Any:
        """Return what the store has under a name."""
        return self._store.get(namespace, name)

    def list(self, namespace: str | None = None) -> Sequence[Any]:
        """Return what the store has, or has in a namespace."""
        return self._store.objects(namespace)

    def get_by_uid(self, uid: str) -> Any:
        """Return what the store has under a UID."""
        return self._store.get_by_uid(uid)

    async def metadata_pages(self) -> AsyncIterator[MetadataPage]:
        """Yield what the cluster has."""
        await asyncio.sleep(0)
        listed = tuple(
            ListedObject(
                each.metadata.name,
                each.metadata.uid,
                each.metadata.resource_version,
                getattr(each.metadata, "namespace", ""),
            )
            for each in self._cluster.objects(self.kind.name)
        )
        yield MetadataPage(self.resource_version, listed)

    async def reread(self, namespace: str, name: str, uid: str) -> Sequence[DeltaKind]:
        """Take in one object as the cluster has it."""
        await asyncio.sleep(0)
        deltas: list[Delta[Any]] = []
        there = [
            each for each in self._cluster.objects(self.kind.name) if each.metadata.name == name
        ]
        for each in there:
            self._store.apply(EventType.MODIFIED, each, deltas)
        if uid not in {each.metadata.uid for each in there}:
            self._store.discard(uid, deltas)
        self._deliver(deltas)
        return [delta.kind for delta in deltas]

    def restored(self) -> None:
        """Take in all that the cluster has, whatever the versions."""
        listed = self._cluster.objects(self.kind.name)
        for deltas in self._store.replace_in_batches(listed, rewind=True):
            if deltas:
                self._deliver(deltas)
