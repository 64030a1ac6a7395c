"""Apply changes of all kinds except pods and nodes to the known cluster and the queue.

*Source*: pkg/scheduler/eventhandlers.go, addAllEventHandlers (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from cache.quantity import QuantityError
from plugins.framework.cluster_events import Action, ClusterEvent
from scheduler.kinds import WATCHED

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.known import Known
    from plugins.framework.cluster_events import Resource
    from scheduler.informers import Delta
    from scheduler.kinds import WatchedKind
    from scheduler.metrics import Metrics
    from scheduler.queueing import SchedulingQueue

log = structlog.get_logger(__name__)


class OtherObjects:
    """Takes over the changes of all kinds but pods and nodes, as :mod:`scheduler.kinds` says.

    Notes
    -----
    *Concurrency*: handlers are called from the I/O loop, one change after another.
    """

    def __init__(self, known: Known, queue: SchedulingQueue, metrics: Metrics) -> None:
        self._known = known
        self._queue = queue
        self._metrics = metrics
        self._warned: set[str] = set()
        for kind in WATCHED:
            wake = self._wake(kind.event)
            if kind.announced_by is not None and wake is not None:
                kind.announced_by(known)(wake)

    def handler(self, kind: WatchedKind[Any]) -> Callable[[Delta[Any]], None]:
        """Return what takes over one change of a kind, but none that leaves an object unreadable.

        Raises
        ------
        ValueError
            When the kind is that of pods or nodes.
        """
        if kind.goes_to is None:
            raise ValueError(f"{kind.name} are for EventHandlers")
        take = kind.goes_to(self._known)
        wake = self._wake(kind.event) if kind.announced_by is None else None

        def on_delta(delta: Delta[Any]) -> None:
            old, new = delta.old, delta.new
            if new is not None and not self._is_readable(kind, new):
                return
            problem = getattr(new, "problem", "") if kind.unreadable is not None else ""
            if problem:
                self._tell_unreadable(kind, new, problem)
            if kind.is_assumed and delta.restored:
                take(old, new, restored=True)
            else:
                take(old, new)
            if wake is not None:
                wake(old, new)

        return on_delta

    def _wake(self, resource: Resource | None) -> Callable[[Any, Any], None] | None:
        """Return what wakes the pods that wait for a change of a resource; None if none do."""
        if resource is None:
            return None
        added = ClusterEvent(resource, Action.ADD, f"{resource.value}Add")
        updated = ClusterEvent(resource, Action.UPDATE, f"{resource.value}Update")
        deleted = ClusterEvent(resource, Action.DELETE, f"{resource.value}Delete")

        def wake(old: Any, new: Any) -> None:
            event = added if old is None else deleted if new is None else updated
            self._queue.move_all(event, old, new)

        return wake

    def _tell_unreadable(self, kind: WatchedKind[Any], changed: Any, problem: str) -> None:
        """Count an object whose place a stand-in takes; one warning for each kind names one."""
        self._metrics.malformed(kind.name)
        metadata = changed.metadata
        write = log.debug if kind.name in self._warned else log.warning
        self._warned.add(kind.name)
        name = f"{metadata.namespace}/{metadata.name}"
        write("object cannot be decoded", resource=kind.name, object=name, error=problem)

    def _is_readable(self, kind: WatchedKind[Any], changed: Any) -> bool:
        """Tell whether all amounts that scheduling compares are amounts."""
        try:
            kind.check_amounts(changed)
        except QuantityError as error:
            self._metrics.malformed(kind.name)
            log.warning(
                "object cannot be decoded, keeping the last readable version",
                resource=kind.name,
                namespace=changed.metadata.namespace,
                name=changed.metadata.name,
                error=str(error),
            )
            return False
        return True
