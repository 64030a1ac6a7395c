"""Waiting pods: a Permit plugin holds them between their decision and their binding.

*Source*: pkg/scheduler/framework/runtime/waiting_pods_map.go (1.36).
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

from plugins.framework.go_duration import GoDuration
from plugins.framework.status import SUCCESS, Code, Status, unschedulable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.locks import MakeLock
    from cache.pod_info import PodInfo


class WaitingPod:
    """One held pod. See :class:`plugins.framework.handle.WaitingPod`.

    Parameters
    ----------
    info
        The pod.
    node_name
        The node on which it is placed.
    timeouts_s
        For each plugin that holds it, the longest time to hold it, from now on; zero or less ends
        at once.
    loop
        The I/O loop, on which :meth:`wait` runs.
    clock
        Seconds of a monotonic clock.
    make_lock
        Creates its lock.

    Notes
    -----
    *Concurrency*: ``wait`` may be called once, on the loop, all others from any thread. The first
    verdict stands.
    """

    def __init__(
        self,
        info: PodInfo,
        node_name: str,
        timeouts_s: Mapping[str, float],
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float] = time.monotonic,
        make_lock: MakeLock = threading.Lock,
    ) -> None:
        self.info = info
        self.node_name = node_name
        self._timeouts_s = dict(timeouts_s)
        self._pending = set(timeouts_s)
        self._loop = loop
        self._clock = clock
        self._since_s = clock()
        self._lock = make_lock()
        self._verdict: Status | None = None
        self._decided = asyncio.Event()

    def pending_plugins(self) -> frozenset[str]:
        """Return the plugins that still hold the pod."""
        with self._lock:
            return frozenset(self._pending)

    def allow(self, plugin: str) -> None:
        """Take one plugin's hold away; the pod goes on once nobody holds it."""
        with self._lock:
            self._pending.discard(plugin)
            if self._pending or self._verdict is not None:
                return
            self._verdict = SUCCESS
        self._loop.call_soon_threadsafe(self._decided.set)

    def reject(self, plugin: str, reason: str) -> bool:
        """Send the pod back as unschedulable; return whether this was the verdict that counted."""
        return self.turn_back(unschedulable(reason).by(plugin))

    def preempt(self, plugin: str, reason: str) -> bool:
        """Send the pod back to be tried again after its backoff.

        No plugin counts as having refused it. Returns whether this was the verdict that counted.
        """
        why = f"waiting on permit for pod: {reason}"
        return self.turn_back(Status(Code.ERROR, (why,), plugin))

    def turn_back(self, verdict: Status) -> bool:
        """Send the pod back with a verdict; return whether this was the one that counted."""
        with self._lock:
            if self._verdict is not None:
                return False
            self._verdict = verdict
        self._loop.call_soon_threadsafe(self._decided.set)
        return True

    async def wait(self) -> Status:
        """Wait for the verdict. The plugin whose time runs out first rejects the pod."""
        for timeout_s, plugin in sorted((s, plugin) for plugin, s in self._timeouts_s.items()):
            left_s = self._since_s + timeout_s - self._clock()
            try:
                async with asyncio.timeout(max(left_s, 0.0)):
                    await self._decided.wait()
            except TimeoutError:
                if plugin in self.pending_plugins():
                    self.reject(plugin, _time_is_up(timeout_s, plugin))
                    break
            else:
                break
        await self._decided.wait()
        with self._lock:
            return SUCCESS if self._verdict is None else self._verdict


def _time_is_up(timeout_s: float, plugin: str) -> str:
    waited = GoDuration(round(timeout_s * 1e9))
    return f"rejected due to timeout after waiting {waited} at plugin {plugin}"


class WaitingPods:
    """Store all held pods by UID. *Concurrency*: thread-safe."""

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._pods: dict[str, WaitingPod] = {}

    def add(self, waiting: WaitingPod) -> None:
        """Hold a pod."""
        with self._lock:
            self._pods[waiting.info.uid] = waiting

    def remove(self, uid: str) -> None:
        """Let go of a pod, if it is held."""
        with self._lock:
            self._pods.pop(uid, None)

    def get(self, uid: str) -> WaitingPod | None:
        """Return a held pod, or None."""
        with self._lock:
            return self._pods.get(uid)

    def list(self) -> list[WaitingPod]:
        """Return all held pods."""
        with self._lock:
            return list(self._pods.values())
