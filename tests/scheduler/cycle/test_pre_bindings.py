from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plugins.framework.status import SUCCESS, Code, Status
from scheduler.cycle.pre_bindings import PreBindings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def scene(act: Callable[[PreBindings], Awaitable[Status]]) -> Status:
    async def play() -> Status:
        pre_bindings = PreBindings(asyncio.get_running_loop())
        status = await act(pre_bindings)
        assert len(pre_bindings._tasks) == 0
        return status

    return asyncio.run(play())


async def done() -> Status:
    return SUCCESS


async def never_done() -> Status:
    await asyncio.Event().wait()
    return SUCCESS


def test_a_pre_bind_says_what_came_of_it() -> None:
    assert scene(lambda pre_bindings: pre_bindings.run("u", done())).is_success


def test_a_pod_whose_pre_bind_is_at_work_can_be_turned_back() -> None:
    async def act(pre_bindings: PreBindings) -> Status:
        running = asyncio.ensure_future(pre_bindings.run("u", never_done()))
        await asyncio.sleep(0)
        assert pre_bindings.cancel("u", "preempted by P")
        assert pre_bindings.cancel("u", "preempted by Q")
        return await running

    assert scene(act) == Status(Code.ERROR, ("preempted by P",))


def test_a_pod_is_turned_back_although_its_pre_bind_was_faster() -> None:
    async def act(pre_bindings: PreBindings) -> Status:
        async def cancelled_at_the_end() -> Status:
            assert pre_bindings.cancel("u", "preempted")
            return SUCCESS

        return await pre_bindings.run("u", cancelled_at_the_end())

    assert scene(act) == Status(Code.ERROR, ("preempted",))


def test_all_that_are_at_work_can_be_turned_back() -> None:
    verdict = Status(Code.ERROR, ("told to stop",))

    async def play() -> list[Status]:
        pre_bindings = PreBindings(asyncio.get_running_loop())
        running = [asyncio.ensure_future(pre_bindings.run(u, never_done())) for u in "abc"]
        await asyncio.sleep(0)
        assert pre_bindings.cancel("b", "preempted")
        pre_bindings.cancel_all(verdict)
        return await asyncio.gather(*running)

    assert asyncio.run(play()) == [verdict, Status(Code.ERROR, ("preempted",)), verdict]


def test_a_pod_whose_binding_has_begun_is_not_turned_back() -> None:
    async def act(pre_bindings: PreBindings) -> Status:
        status = await pre_bindings.run("u", done())
        assert not pre_bindings.cancel("u", "preempted")
        return status

    assert scene(act).is_success
