"""Pods that a Permit plugin holds between their decision and their binding.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go (1.36).
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from plugins.framework.status import SUCCESS, Status, unschedulable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.pod_info import PodInfo


class WaitingPod:
    """One held pod.

    Parameters
    ----------
    info
        The pod.
    timeouts_s
        For each plugin that holds it, how long it may.
    loop
        The I/O loop, on which :meth:`wait` runs.

    Notes
    -----
    *Concurrency*: ``allow`` and ``reject`` may be called from any thread, ``wait`` once, on the
    loop. The first verdict stands.
    """

    def __init__(
        self, info: PodInfo, timeouts_s: Mapping[str, float], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.info = info
        self._timeouts_s = dict(timeouts_s)
        self._pending = set(timeouts_s)
        self._loop = loop
        self._lock = threading.Lock()
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
        """Send the pod back; return whether this was the verdict that counted."""
        with self._lock:
            if self._verdict is not None:
                return False
            self._verdict = unschedulable(reason).by(plugin)
        self._loop.call_soon_threadsafe(self._decided.set)
        return True

    async def wait(self) -> Status:
        """Wait for the verdict. The plugin whose time runs out first rejects the pod."""
        timeouts = sorted((timeout, plugin) for plugin, timeout in self._timeouts_s.items())
        elapsed_s = 0.0
        for timeout_s, plugin in timeouts:
            try:
                await asyncio.wait_for(self._decided.wait(), max(timeout_s - elapsed_s, 0.0))
            except TimeoutError:
                elapsed_s = max(timeout_s, elapsed_s)
                if plugin in self.pending_plugins():
                    self.reject(plugin, f"timeout after {timeout_s:g}s waiting for {plugin}")
                    break
            else:
                break
        await self._decided.wait()
        with self._lock:
            return SUCCESS if self._verdict is None else self._verdict


class WaitingPods:
    """All held pods by UID. *Concurrency*: thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        with self._lock:
            return len(self._pods)

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
