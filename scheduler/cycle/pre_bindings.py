"""Pods whose PreBind is running, and the means to cancel it.

Until the binding itself begins, a pod can still be returned to the queue without any write: then a
more important pod need not evict it.

*Source*: pkg/scheduler/framework/runtime/pods_in_prebind_map.go and pkg/scheduler/schedule_one.go,
bindingCycle (1.36).
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from plugins.framework.status import Code, Status

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from cache.locks import MakeLock


class PreBindings:
    """Store all pods whose PreBind is running, by UID.

    Notes
    -----
    *Concurrency*: :meth:`run` on the I/O loop, the rest from any thread.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, make_lock: MakeLock = threading.Lock
    ) -> None:
        self._loop = loop
        self._lock = make_lock()
        self._tasks: dict[str, asyncio.Task[Status]] = {}
        self._verdicts: dict[str, Status] = {}

    async def run(self, uid: str, pre_bind: Coroutine[object, object, Status]) -> Status:
        """Run a pod's PreBind; the verdict on it if it is cancelled before its end."""
        task = self._loop.create_task(pre_bind)
        with self._lock:
            self._tasks[uid] = task
        try:
            await asyncio.wait((task,))
        finally:
            task.cancel()
            with self._lock:
                # From here on nobody can turn the pod back any more.
                del self._tasks[uid]
                verdict = self._verdicts.pop(uid, None)
        return await task if verdict is None else verdict

    def cancel(self, uid: str, reason: str) -> bool:
        """Turn a pod back if its PreBind is still at work; return whether it is turned back."""
        with self._lock:
            return self._cancel_locked(uid, Status(Code.ERROR, (reason,)))

    def cancel_all(self, verdict: Status) -> None:
        """Turn all pods back whose PreBind is still at work, with this verdict on each."""
        with self._lock:
            for uid in self._tasks:
                self._cancel_locked(uid, verdict)

    def _cancel_locked(self, uid: str, verdict: Status) -> bool:
        task = self._tasks.get(uid)
        if task is None:
            return False
        if uid not in self._verdicts:
            self._verdicts[uid] = verdict
            self._loop.call_soon_threadsafe(task.cancel)
        return True
