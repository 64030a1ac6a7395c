"""The reaper: settle assumed pods that the watch never confirmed, and flush queue timers.

It is separate from the cache, which does no I/O: the cache determines which pods are overdue, and
the reaper reads them from the API before it frees any resources.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from cache.pod_group_objects import group_key
from cache.pod_info import is_terminal, on_node, readable_info
from cache.resources import MalformedObjectError
from plugins.framework.cluster_events import ASSIGNED_POD_DELETE
from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from scheduler.metrics import Metrics
    from scheduler.process.ports import Executor
    from scheduler.runtime.known_pods import KnownPods

PERIOD_S: Final = 1.0
"""kube-scheduler's cleanAssumedPeriod."""

log = structlog.get_logger(__name__)


class Reaper:
    """Settle assumed pods that are overdue, and flush the queue's timers.

    Parameters
    ----------
    executor
        Runs the thread. Results are applied on its loop, on which the watches also update the
        cache.
    clock
        Seconds of a monotonic clock.
    get_pod
        Reads a pod from the API by namespace and name, and waits for the response; returns None
        when there is no such pod. Raises ApiError, and
        MalformedObjectError for a pod that cannot be decoded.

    Notes
    -----
    *Concurrency*: its own thread sends the requests; results are applied on the I/O loop. The
    cache and the queue have their own locks.
    """

    def __init__(
        self,
        executor: Executor,
        clock: Callable[[], float],
        pods: KnownPods,
        get_pod: Callable[[str, str], Pod | None],
        metrics: Metrics,
    ) -> None:
        self._cache = pods.cache
        self._queue = pods.queue
        self._groups = pods.groups
        self._get_pod = get_pod
        self._metrics = metrics
        self._clock = clock
        self._on_loop = executor.call_on_loop
        self.rounds = 0
        """Rounds done since the start."""
        self._stopped = executor.event()
        self._thread = executor.thread(self.run, "reaper")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join(timeout_s)

    def run(self) -> None:
        """Do a round every period until stopped. A round that fails is logged, not the last."""
        while not self._stopped.wait(PERIOD_S):
            try:
                self.round()
            except Exception:
                log.exception("a round of the reaper failed")

    def round(self) -> None:
        """Do one round."""
        self.rounds += 1
        self._metrics.fold()
        self._queue.flush_backoff()
        self._queue.flush_unschedulable_leftover()
        # However silent the watch is: the answer is the state in etcd, and its word counts.
        for info, node_name in self._cache.overdue(self._clock()):
            if self._stopped.is_set():
                return
            try:
                pod = self._get_pod(info.namespace, info.name)
            except (ApiError, MalformedObjectError) as error:
                log.warning("cannot settle an overdue pod yet", pod=info.key, error=str(error))
                continue
            self._on_loop(partial(self._settle, info, node_name, pod))

    def _settle(self, info: PodInfo, node_name: str, pod: Pod | None) -> None:
        """Apply the API's response, unless the watch has reported a change meanwhile.

        *Concurrency*: on the I/O loop, so that no event of the watch comes in between. A pod that
        is no longer assumed has been confirmed, deleted or undone since the question; the answer
        is older than that.
        """
        if self._cache.assumed_node(info.uid) != node_name:
            return
        if pod is not None and pod.metadata.uid == info.uid and not is_terminal(pod):
            live = readable_info(pod)
            if live.node_name:
                log.warning("overdue pod is bound after all", pod=info.key, node=live.node_name)
                self._cache.add_pod(live)
                self._metrics.expired("bound")
                return
        else:
            live = None
        if not self._cache.expire_assumed(self._clock(), only=frozenset({info.uid})):
            return
        key = group_key(info.pod)
        if key is not None:
            self._groups.forget(key, info.uid)
        outcome = "gone" if live is None else "requeued"
        log.warning("assumed pod expired", pod=info.key, node=node_name, outcome=outcome)
        self._metrics.expired(outcome)
        self._queue.move_all(ASSIGNED_POD_DELETE, on_node(info.pod, node_name), None)
        if live is not None:
            self._queue.add(live)
