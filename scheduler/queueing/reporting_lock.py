"""A lock that reports the events recorded under it after it is released.

Counters take locks of their own and log lines may wait for a disk; neither may block the
threads that wait for the queue.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog

from cache.value import MutableValue

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from cache.locks import MakeLock
    from cache.objects import Pod
    from plugins.framework.cluster_events import ClusterEvent

log = structlog.get_logger(__name__)


class _FailedHint(MutableValue):
    event: ClusterEvent
    pod: Pod
    error: Exception
    count: int


class ReportingLock:
    """A lock with an outbox; used in a ``with`` statement.

    Parameters
    ----------
    on_incoming
        Called after the lock is released, with the new state and the event of each pod.
    make_lock
        Creates the lock itself.

    Notes
    -----
    *Concurrency*: not reentrant. Only its holder reports.
    """

    def __init__(
        self,
        on_incoming: Callable[[str, str], None] | None,
        make_lock: MakeLock = threading.Lock,
    ) -> None:
        self.lock = make_lock()
        self._on_incoming = on_incoming
        self._incoming: list[tuple[str, str]] = []
        self._failed_hints: dict[str, _FailedHint] = {}

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        incoming, failed = self._incoming, self._failed_hints
        if incoming:
            self._incoming = []
        if failed:
            self._failed_hints = {}
        self.lock.release()
        if incoming and self._on_incoming is not None:
            for state, event in incoming:
                self._on_incoming(state, event)
        for plugin, one in failed.items():
            log.warning(
                "queueing hint failed; its pods are tried again",
                plugin=plugin,
                event_label=one.event.label,
                pod=f"{one.pod.metadata.namespace}/{one.pod.metadata.name}",
                pods=one.count,
                error=repr(one.error),
            )

    def report_incoming(self, state: str, event: str) -> None:
        """Report that a pod has another state, once the lock is free."""
        if self._on_incoming is not None:
            self._incoming.append((state, event))

    def report_failed_hint(
        self, plugin: str, event: ClusterEvent, pod: Pod, error: Exception
    ) -> None:
        """Report that a hint raised, once the lock is free: one line for each plugin."""
        known = self._failed_hints.get(plugin)
        if known is None:
            self._failed_hints[plugin] = _FailedHint(event, pod, error, 1)
        else:
            known.count += 1
