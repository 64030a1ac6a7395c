from __future__ import annotations

import asyncio
import functools
import threading
from typing import cast

import pytest

from plugins.registry import PLUGINS
from scheduler.config import default_config, running_profiles
from scheduler.process.thread_executor import ThreadExecutor
from scheduler.profiles.profile_swap import ProfileSwap
from scheduler.queueing import QueueState
from scheduler.runtime.profile_builder import build_framework
from tests.builders import pod
from tests.scheduler.parts import NoBinding, Parts


def on_loop(test):
    """Run a test on an event loop."""

    @functools.wraps(test)
    def run(*args, **named):
        return asyncio.run(test(*args, **named))

    return run


def framework(name: str):
    (profile,) = running_profiles(default_config(name))
    return build_framework(profile, 0, PLUGINS, cast("object", NoBinding()))


class Swapping:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.parts = Parts()
        self.pods = []
        self.swap = ProfileSwap(
            ThreadExecutor(loop),
            self.parts.profiles,
            self.parts.queue,
            self.parts.handlers,
            lambda: self.pods,
        )
        (self.berth,) = self.parts.profiles

    def state(self, made) -> QueueState:
        return self.parts.queue.state_of(made.metadata.uid)


@on_loop
async def test_the_new_profiles_are_there():
    swapping = Swapping(asyncio.get_running_loop())
    gpu = framework("gpu")
    swapping.swap([swapping.berth, gpu])
    assert swapping.parts.profiles.get("gpu") is gpu


@on_loop
async def test_pods_that_waited_for_the_profile_are_queued():
    swapping = Swapping(asyncio.get_running_loop())
    waiting = pod("a").scheduler("gpu").build()
    swapping.pods = [waiting]
    swapping.swap([swapping.berth, framework("gpu")])
    assert swapping.state(waiting) is QueueState.ACTIVE


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(pod("a").scheduler("gpu").on("n1"), id="bound"),
        pytest.param(pod("a").scheduler("other"), id="somebody else's"),
    ],
)
@on_loop
async def test_other_pods_are_not(made):
    swapping = Swapping(asyncio.get_running_loop())
    built = made.build()
    swapping.pods = [built]
    swapping.swap([swapping.berth, framework("gpu")])
    assert swapping.state(built) is QueueState.NOWHERE


@on_loop
async def test_a_pod_that_is_assumed_is_not_queued_again():
    swapping = Swapping(asyncio.get_running_loop())
    info = pod("a").scheduler("gpu").info()
    swapping.parts.cache.assume_pod(info, "n1")
    swapping.pods = [info.pod]
    swapping.swap([swapping.berth, framework("gpu")])
    assert swapping.state(info.pod) is QueueState.NOWHERE


@on_loop
async def test_pods_of_a_profile_that_goes_leave_the_queue():
    swapping = Swapping(asyncio.get_running_loop())
    waiting = pod("a").scheduler("gpu").build()
    swapping.pods = [waiting]
    swapping.swap([swapping.berth, framework("gpu")])
    swapping.swap([swapping.berth])
    assert swapping.state(waiting) is QueueState.NOWHERE


@on_loop
async def test_a_pod_of_a_profile_that_goes_and_comes_is_queued_again():
    swapping = Swapping(asyncio.get_running_loop())
    waiting = pod("a").scheduler("gpu").build()
    swapping.pods = [waiting]
    for frameworks in ([framework("gpu")], [], [framework("gpu")]):
        swapping.swap([swapping.berth, *frameworks])
    assert swapping.state(waiting) is QueueState.ACTIVE


@on_loop
async def test_another_thread_waits_until_it_has_happened():
    swapping = Swapping(asyncio.get_running_loop())
    gpu = framework("gpu")
    found = []

    def from_outside() -> None:
        swapping.swap([swapping.berth, gpu])
        found.append(swapping.parts.profiles.get("gpu"))

    await asyncio.to_thread(from_outside)
    assert found == [gpu]


def test_when_the_loop_has_ended_nothing_happens():
    loop = asyncio.new_event_loop()
    loop.close()
    swapping = Swapping(loop)
    thread = threading.Thread(target=swapping.swap, args=([framework("gpu")],))
    thread.start()
    thread.join(30)
    assert swapping.parts.profiles.names() == {"berth"}


@on_loop
async def test_no_profile_at_all_is_refused():
    swapping = Swapping(asyncio.get_running_loop())
    with pytest.raises(ValueError, match="at least one profile"):
        swapping.swap([])
    assert swapping.parts.profiles.names() == {"berth"}
