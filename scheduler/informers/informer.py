"""Provide one resource to the rest of the scheduler: a store to read, and handlers to call.

*Concurrency*: loop-confined, but for the reading methods and properties, which any thread may use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
import structlog

from scheduler.informers.reflector import Reflector
from scheduler.informers.store import BATCH_SIZE, Delta, DeltaKind
from scheduler.informers.watch_events import ObjectKind, T

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scheduler.client.transport import Transport
    from scheduler.informers.reflector_options import ReflectorOptions
    from scheduler.informers.reflector_statistics import ReflectorStatistics

    Handler: TypeAlias = Callable[[Sequence[Delta[T]]], None]


class Informer(Reflector[T]):
    """One resource: its reflector, its store and its handlers.

    Handlers are called on the loop, one after the other in the order of registration, with the
    deltas of one chunk of the watch (or of one part of a list), in order, right after the store
    has taken them in. They must not wait. What a handler raises is logged and counted and stops
    nothing.

    Parameters
    ----------
    transport, kind, transform, options, on_restore
        See :class:`~scheduler.informers.reflector.Reflector`.
    """

    def __init__(
        self,
        transport: Transport,
        kind: ObjectKind[T],
        *,
        transform: Callable[[T], T] | None = None,
        options: ReflectorOptions,
        on_restore: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(
            transport, kind, transform=transform, options=options, on_restore=on_restore
        )
        self.transform = transform
        self._handlers: list[Handler[T]] = []
        self._log = structlog.stdlib.get_logger(__name__, resource=kind.name)

    # --- handlers -----------------------------------------------------------------------------

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler` with each batch of deltas from now on.

        What the store already holds is delivered at once, as additions. A handler that raises
        loses the batch: one that must not lose the other deltas contains its own exceptions, or
        is registered by `add_delta_handler`.
        """
        held = [Delta(DeltaKind.ADDED, None, obj) for obj in self._store.objects()]
        for start in range(0, len(held), BATCH_SIZE):
            self._call(handler, held[start : start + BATCH_SIZE])
        self._handlers.append(handler)

    def add_delta_handler(self, handler: Callable[[Delta[T]], None]) -> None:
        """Call `handler` with each delta from now on; one that it raises for costs that delta."""

        def each(deltas: Sequence[Delta[T]]) -> None:
            for delta in deltas:
                try:
                    handler(delta)
                except Exception:  # noqa: BLE001 - a handler may raise anything
                    self._handler_failed(handler, delta)

        self.add_handler(each)

    def _deliver(self, deltas: Sequence[Delta[T]]) -> None:
        self._statistics.deltas += len(deltas)
        for handler in self._handlers:
            self._call(handler, deltas)

    def _call(self, handler: Handler[T], deltas: Sequence[Delta[T]]) -> None:
        try:
            handler(deltas)
        except Exception:  # noqa: BLE001 - a handler may raise anything
            self._handler_failed(handler, deltas[0])

    def _handler_failed(self, handler: object, delta: Delta[T]) -> None:
        self._statistics.handler_failures += 1
        obj = delta.new if delta.new is not None else delta.old
        self._log.exception(
            "handler failed",
            handler=getattr(handler, "__qualname__", type(handler).__name__),
            delta=delta.kind.value,
            name=obj.metadata.name if obj is not None else None,
            uid=obj.metadata.uid if obj is not None else None,
        )

    # --- reading ------------------------------------------------------------------------------

    def list(self, namespace: str | None = None) -> Sequence[T]:
        """Return all objects, or those of one namespace, in no particular order."""
        return self._store.objects(namespace)

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that have objects; cluster-scoped ones are in an empty one."""
        return self._store.namespaces()

    def get(self, namespace: str, name: str) -> T | None:
        """Return the object of that name; `namespace` is empty for cluster-scoped ones."""
        return self._store.get(namespace, name)

    def get_by_uid(self, uid: str) -> T | None:
        """Return the object with that UID."""
        return self._store.get_by_uid(uid)

    def statistics(self) -> ReflectorStatistics:
        """Return a copy of the counts."""
        return msgspec.structs.replace(self._statistics)

    def forget_all(self) -> None:
        """Report all objects as deleted: whoever asks for them has nobody to ask any more."""
        for deltas in self._store.replace_in_batches(()):
            if deltas:
                self._deliver(deltas)

    def restored(self) -> None:
        """Have this informer, and all others, list anew: somebody has found out that etcd was."""
        self.expect_restore()
        if self._on_restore is not None:
            self._on_restore()
