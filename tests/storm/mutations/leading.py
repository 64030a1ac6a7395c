"""Berth without what keeps one replica from writing while another one leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scheduler.event_handlers.watches import Watches
from scheduler.leader_election.elector import LeaderElector
from scheduler.leader_election.leadership import Leadership
from scheduler.leader_election.rules import Step
from scheduler.leader_election.tenure import Standing, Tenure
from scheduler.queueing.scheduling_queue import SchedulingQueue
from tests.storm.mutations.registry import mutation

if TYPE_CHECKING:
    import asyncio


@mutation(Tenure, "grant_s", theme="elections")
def _nothing_is_fenced(real: Any) -> Any:
    """the fence before a write"""
    return lambda self, timeout_s: timeout_s


@mutation(Tenure, "check", theme="elections")
def _leadership_never_ends_by_the_clock(real: Any) -> Any:
    """the end of leadership at the renew deadline"""
    return lambda self: self._standing in (Standing.LEADING, Standing.CLOSING)


@mutation(LeaderElector, "_next_step", theme="elections")
def _leases_are_taken_at_once(real: Any) -> Any:
    """the wait for the end of another's lease"""

    def next_step(self: Any, *, holds: bool) -> Any:
        step = real(self, holds=holds)
        return Step.TAKE if step is Step.WAIT else step

    return next_step


@mutation(LeaderElector, "__init__", theme="elections")
def _elections_go_by_the_wall_clock(real: Any) -> Any:
    """the monotonic clock of the election"""

    def init(self: Any, *args: Any, clock: Any, wall_clock: Any) -> None:
        real(self, *args, clock=wall_clock, wall_clock=wall_clock)

    return init


@mutation(LeaderElector, "release", theme="nodes")
def _leases_are_kept_at_the_end(real: Any) -> Any:
    """the release of the lease by a leader that ends"""

    async def release(self: Any) -> bool:
        return False

    return release


@mutation(Leadership, "hold", theme="elections")
def _who_has_lost_the_lease_stays(real: Any) -> Any:
    """the end of a process that has lost the lease"""

    async def hold(self: Any, stop: asyncio.Event) -> bool:
        if not await real(self, stop):
            await stop.wait()
        return False

    return hold


@mutation(Watches, "wait_synced", theme="starts")
def _nothing_is_waited_for_at_the_start(real: Any) -> Any:
    """the wait for the first lists"""

    async def wait_synced(self: Any) -> None:
        pass

    return wait_synced


@mutation(SchedulingQueue, "close", theme="nodes")
def _pods_are_popped_till_the_end(real: Any) -> Any:
    """the end of popping when the process is to end"""
    return lambda self: None
