"""Pods that share a claim: their reservations are written together, and none is lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from scheduler.api_writes.claim_patcher import MAX_RETRIES, ClaimWriteError
from scheduler.api_writes.claim_reservations import CONFLICT_TRIES, MAX_RESERVED
from scheduler.api_writes.claim_writer import ClaimWriter
from scheduler.client.errors import ApiError
from scheduler.kinds import RESOURCE_CLAIMS
from tests.builders import pod
from tests.device_builders import allocated, resource_claim
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.ports import FakeExecutor, fake_ports

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cache.device_objects import ResourceClaim
    from cache.objects import Pod

STAMP = "2025-06-15T15:06:40Z"
CONFLICT = ApiError(409, "Conflict", "the object has been modified")
BUSY = ApiError(503, "ServiceUnavailable", "busy", retry_after_s=1)
LOST = ApiError(None, "Disconnected", "no answer", ambiguous=True)
INVALID = ApiError(422, "Invalid", "not valid")

PODS = [pod(f"p{index}").build() for index in range(5)]
TAKEN = resource_claim("c").request("r", "gpu").allocated(allocated("gpu-0"), at=STAMP)


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


class Scene:
    """An allocated claim, and pods that were decided while it was as it is at first."""

    def __init__(self, users: Sequence[Pod] = (), *, knows_writes: bool = True) -> None:
        self.api = FakeObjectApi()
        raw = msgspec.to_builtins(TAKEN.reserved_for(*users).build())
        self.api.put(RESOURCE_CLAIMS, "default", "c", raw)
        self._knows_writes = knows_writes
        self.known: ResourceClaim | None = None
        self.decided: ResourceClaim | None = None
        self.waiting: list[str] = []
        self.writer: ClaimWriter

    def run(self, act: Callable[[], Awaitable[Any]]) -> Any:
        async def play() -> Any:
            ports = fake_ports(self.api, executor=FakeExecutor(no_wait))
            self.writer = ClaimWriter(
                ports,
                lambda claim: setattr(self, "known", claim),
                newest=lambda namespace, name: self.known if self._knows_writes else None,
                only_waits=self.waiting.append,
            )
            self.decided = await self.api.get_object(RESOURCE_CLAIMS, "default", "c")
            result = await act()
            await self.writer.settled("uid-c")
            return result

        return asyncio.run(play())

    async def join(self, each: Pod) -> ResourceClaim:
        assert self.decided is not None
        await self.writer.settled("uid-c")
        return await self.writer.reserve(self.decided, each, None)

    async def begun(self, patches: int) -> None:
        """Wait until so many patches have begun."""
        await self.until(lambda: len(self.api.patches) >= patches)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, which takes a few ticks."""
        for _ in range(100):
            if holds():
                return
            await asyncio.sleep(0)
        raise AssertionError("nothing happened")

    def all_at_once(self, pods: Sequence[Pod] = PODS) -> list[Any]:
        """Return the claim or the error that each pod gets."""
        ends: list[Any] = self.run(
            lambda: asyncio.gather(*map(self.join, pods), return_exceptions=True)
        )
        return ends

    @property
    def patches(self) -> list[list[str]]:
        """The names in ``reservedFor``, for each patch that adds some."""
        lists = [body["status"]["reservedFor"] for _, _, _, body in self.api.patches]
        return [[each["name"] for each in users] for users in lists if "name" in users[0]]

    def reserved(self) -> list[str]:
        status = self.api.raw(RESOURCE_CLAIMS, "default", "c")["status"]
        return [each["name"] for each in status.get("reservedFor", ())]

    def change(self, patch: Any) -> None:
        self.api.change(RESOURCE_CLAIMS, "default", "c", patch)


def names(pods: Sequence[Pod]) -> list[str]:
    return [each.metadata.name for each in pods]


def test_pods_that_come_together_cost_one_write() -> None:
    scene = Scene()
    claims = scene.all_at_once()
    assert scene.patches == [names(PODS)]
    assert all(claim == scene.known for claim in claims)


def test_pods_that_come_during_a_write_share_the_next_one() -> None:
    scene = Scene()

    async def act() -> None:
        first = asyncio.ensure_future(scene.join(PODS[0]))
        await scene.begun(1)
        await asyncio.gather(first, *map(scene.join, PODS[1:]))

    scene.run(act)
    assert scene.patches == [names(PODS[:1]), names(PODS)]


def test_a_pod_that_was_decided_before_the_last_write_meets_no_conflict() -> None:
    scene = Scene()

    async def act() -> None:
        for each in PODS:
            await scene.join(each)

    scene.run(act)
    assert len(scene.api.requests) == len(PODS)
    assert scene.reserved() == names(PODS)


def test_a_version_that_nobody_knows_of_costs_one_conflict() -> None:
    scene = Scene(knows_writes=False)

    async def act() -> None:
        scene.change({"metadata": {"labels": {"x": "y"}}})
        await asyncio.gather(*map(scene.join, PODS))

    scene.run(act)
    assert scene.patches == [names(PODS)] * 2
    assert scene.reserved() == names(PODS)


def test_conflicts_end_after_five_tries() -> None:
    scene = Scene()
    scene.api.faults.extend([CONFLICT] * 100)
    errors = scene.all_at_once()
    assert {str(each) for each in errors} == {
        "add reservation to claim default/c: the object has been modified"
    }
    assert len(scene.api.requests) == CONFLICT_TRIES


def test_a_reservation_that_others_have_made_is_kept() -> None:
    other = pod("other").build()
    scene = Scene([other])
    scene.all_at_once()
    assert scene.reserved() == ["other", *names(PODS)]


def test_one_that_is_refused_does_not_fail_the_others() -> None:
    scene = Scene()
    scene.api.faults.extend([INVALID, None, None, INVALID])
    ends = scene.all_at_once()
    assert [isinstance(each, ClaimWriteError) for each in ends] == [False] * 2 + [True] + [
        False
    ] * 2
    assert scene.reserved() == names([*PODS[:2], *PODS[3:]])


def test_a_server_that_does_not_answer_is_not_asked_for_each_pod() -> None:
    scene = Scene()
    scene.api.faults.extend([BUSY] * 100)
    errors = scene.all_at_once()
    assert {str(each) for each in errors} == {"add reservation to claim default/c: busy"}
    assert len(scene.api.requests) == MAX_RETRIES + 1


@pytest.mark.parametrize("is_done", [True, False])
def test_a_lost_answer_is_settled_for_all(is_done: bool) -> None:
    scene = Scene()
    scene.api.faults.append((LOST, True) if is_done else LOST)
    ends = scene.all_at_once()
    assert scene.reserved() == names(PODS)
    assert not any(isinstance(each, Exception) for each in ends)
    assert len(scene.api.requests) == (1 if is_done else 2)


def uids(pods: Sequence[Pod]) -> list[str]:
    return [each.metadata.uid for each in pods]


def test_pods_let_others_go_ahead_while_a_write_pauses() -> None:
    scene = Scene()
    scene.api.faults.append(BUSY)
    scene.all_at_once()
    assert scene.waiting == uids(PODS)


def test_a_pod_that_comes_while_a_write_pauses_lets_others_go_ahead() -> None:
    scene = Scene()
    scene.api.faults.append(BUSY)

    async def act() -> None:
        first = asyncio.ensure_future(scene.join(PODS[0]))
        await scene.until(lambda: bool(scene.waiting))
        await asyncio.gather(first, scene.join(PODS[1]))

    scene.run(act)
    assert scene.waiting == uids(PODS[:2])


def test_a_pod_that_comes_while_all_goes_well_waits_its_turn() -> None:
    scene = Scene()
    scene.all_at_once()
    assert scene.waiting == []


def test_as_many_are_written_as_the_limit_allows() -> None:
    full = [pod(f"full-{index}").build() for index in range(MAX_RESERVED - 2)]
    scene = Scene(full)
    scene.known = None
    scene.api.faults.extend([None, INVALID, INVALID, INVALID])
    ends = scene.all_at_once()
    assert [isinstance(each, ClaimWriteError) for each in ends] == [False] * 2 + [True] * 3
    assert len(scene.reserved()) == MAX_RESERVED


def test_a_claim_that_was_allocated_anew_is_not_reserved() -> None:
    scene = Scene()

    async def act() -> list[Any]:
        new = TAKEN.allocated(allocated("gpu-1"), at=STAMP).build()
        allocation = msgspec.to_builtins(new.status.allocation)
        scene.change({"status": {"allocation": allocation}})
        return await asyncio.gather(*map(scene.join, PODS), return_exceptions=True)

    errors = scene.run(act)
    assert {str(each) for each in errors} == {
        "claim default/c got deallocated elsewhere in the meantime"
    }
    assert scene.reserved() == []


# --- bindings that are cancelled --------------------------------------------------------------


async def cancelled(scene: Scene, *, after_patches: int, ticks: int = 0) -> bool:
    """Let two pods join, and cancel the second some ticks after so many patches were begun.

    Return whether it was cancelled before it had its reservation.
    """
    first, second = (asyncio.ensure_future(scene.join(each)) for each in PODS[:2])
    await asyncio.sleep(0)
    await scene.begun(after_patches)
    for _ in range(ticks):
        await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait((first, second))
    return second.cancelled()


def test_a_pod_that_is_cancelled_before_the_write_is_not_reserved() -> None:
    scene = Scene()
    scene.run(lambda: cancelled(scene, after_patches=0))
    assert scene.patches == [names(PODS[:1])]


@pytest.mark.parametrize("ticks", range(5))
def test_a_pod_that_is_cancelled_during_the_write_is_released(ticks: int) -> None:
    scene = Scene()
    was_cancelled = scene.run(lambda: cancelled(scene, after_patches=1, ticks=ticks))
    assert scene.patches[0] == names(PODS[:2])
    assert scene.reserved() == names(PODS[: 1 if was_cancelled else 2])


@pytest.mark.parametrize("ticks", range(5))
def test_a_pod_that_comes_again_after_it_was_cancelled_stays_reserved(ticks: int) -> None:
    scene = Scene()

    async def act() -> None:
        first, second = (asyncio.ensure_future(scene.join(each)) for each in PODS[:2])
        await scene.begun(1)
        for _ in range(ticks):
            await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        await asyncio.gather(scene.join(PODS[1]), first)

    scene.run(act)
    assert sorted(scene.reserved()) == names(PODS[:2])
