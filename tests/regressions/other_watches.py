"""The watches of everything but pods and nodes: what plugins know of the cluster besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scheduler.informers.store import Delta, Store
from tests.regressions.cluster import KINDS
from tests.regressions.watched_store import WatchedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scheduler.event_handlers.other_objects import OtherObjects
    from tests.regressions.cluster import Cluster


def watch_others(cluster: Cluster, others: OtherObjects) -> tuple[WatchedStore, ...]:
    """Return the watches of all kinds but pods and nodes."""
    return tuple(
        WatchedStore(kind.resource, Store(), cluster, _one_by_one(others.handler(kind)))
        for kind in KINDS
        if kind.goes_to is not None
    )


def _one_by_one(take: Callable[[Delta[Any]], None]) -> Callable[[Sequence[Delta[Any]]], None]:
    def on_deltas(deltas: Sequence[Delta[Any]]) -> None:
        for delta in deltas:
            take(delta)

    return on_deltas
