"""What a process knows: each store is what the cluster was at its version, the snapshot the cache.

Both are stronger than a look at rest: what is wrong for a moment only is seen, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cache.scheduler_cache import SchedulerCache, SnapshotUpdate
    from cache.snapshot import Snapshot
    from tests.storm.etcd import Change
    from tests.storm.replica import Replica
    from tests.storm.world import World


class KnowledgeChecks:
    """Checks of what replicas know."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._simulation = world.simulation
        self._gone: dict[str, int] = {}
        """Version at which an object was deleted, by UID."""
        self._versions: dict[tuple[str, str], int] = {}

    def deleted(self, change: Change) -> None:
        """Take in that an object is gone."""
        self._gone[change.stored.data["metadata"]["uid"]] = change.version

    def watch(self, replica: Replica) -> None:
        """Compare the snapshot with the cache after each update of it."""
        if self._simulation.interleave:
            return  # the cache may have changed before the comparison
        cache, real = replica.cache, replica.cache.update_snapshot

        def update_snapshot(snapshot: Snapshot) -> SnapshotUpdate:
            update = real(snapshot)
            self._is_copy(replica.name, cache, snapshot)
            return update

        cache.update_snapshot = update_snapshot  # type: ignore[method-assign]

    def _is_copy(self, name: str, cache: SchedulerCache, snapshot: Snapshot) -> None:
        """I4: a snapshot has all nodes of the cache, with the pods that are on them."""
        real = [item.info for item in cache._nodes.values() if item.info.node is not None]
        if len(real) != len(snapshot):
            self._simulation.broken("I4", f"{name}: a snapshot of {len(snapshot)} nodes")
        for info in real:
            copy = snapshot.get(info.name)
            if copy is None or copy.node is not info.node or copy.pods.keys() != info.pods.keys():
                self._simulation.broken("I4", f"{name}: the snapshot of {info.name} is old")

    def look(self, replica: Replica) -> None:
        """I10: versions never decrease. I4: a store is what the cluster was at its version."""
        is_lossy = replica.name in self._world.servers.lossy
        for informer in replica.informers():
            version = int(informer.resource_version or 0)
            key = (replica.name, informer.kind.name)
            if version < self._versions.get(key, 0):
                self._simulation.broken("I10", f"{key}: {self._versions[key]}, then {version}")
            self._versions[key] = version
            if version and not is_lossy:
                self._is_history(replica, informer, version)

    def _is_history(self, replica: Replica, informer: Any, version: int) -> None:
        for stored in self._world.servers.etcd.objects[informer.kind.resource].values():
            if stored.version <= version:
                metadata = stored.data["metadata"]
                known = informer.get_by_uid(metadata["uid"])
                if known is None or known.metadata.resource_version != metadata["resourceVersion"]:
                    what = "nothing" if known is None else known.metadata.resource_version
                    self._wrong(replica, informer, f"{what} of {metadata['name']}", stored.version)
        for obj in informer.list():
            gone = self._gone.get(obj.metadata.uid)
            if gone is not None and gone <= version:
                self._wrong(replica, informer, f"{obj.metadata.name}, which is gone", gone)

    def _wrong(self, replica: Replica, informer: Any, what: str, since: int) -> None:
        at = f"{informer.kind.name} at {informer.resource_version}"
        self._simulation.broken("I4", f"{replica.name}: {at} has {what} since {since}")
