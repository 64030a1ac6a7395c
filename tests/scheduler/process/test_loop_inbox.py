from __future__ import annotations

import asyncio
import threading

from scheduler.process.loop_inbox import LoopInbox


def test_values_from_a_thread_arrive_in_order():
    async def scene():
        loop = asyncio.get_running_loop()
        received: list[int] = []
        done = asyncio.Event()

        def receive(value: int) -> None:
            received.append(value)
            if value == 9_999:
                done.set()

        inbox: LoopInbox[int] = LoopInbox(loop, receive)
        thread = threading.Thread(target=lambda: [inbox.put(i) for i in range(10_000)])
        thread.start()
        await asyncio.wait_for(done.wait(), 30)
        thread.join()
        return received

    assert asyncio.run(scene()) == list(range(10_000))


def test_a_closed_loop_drops_values():
    loop = asyncio.new_event_loop()
    inbox: LoopInbox[int] = LoopInbox(loop, lambda value: None)
    loop.close()
    inbox.put(1)
    assert not inbox._values
