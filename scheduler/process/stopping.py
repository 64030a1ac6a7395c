"""Wait for something that may take long, unless the process is stopped first."""

from __future__ import annotations

import asyncio
from typing import Any


async def done_before(stop: asyncio.Event, task: asyncio.Future[Any], *, cancel: bool) -> bool:
    """Wait for a task or for `stop`, and return whether the task was done.

    Parameters
    ----------
    cancel
        Whether a task that is not done is cancelled, and its end waited for.

    Notes
    -----
    *Concurrency*: loop-confined.
    """
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        stopped.cancel()
        if cancel and not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
