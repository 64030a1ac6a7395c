"""The Lease on a real API server, with berth's own rights."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING

import pytest

from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.leases import LeaseRecord, Leases
from scheduler.client.transport import Transport
from scheduler.leader_election import ElectionTimes, LeaderElector, Standing
from tests.controlplane.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.controlplane

PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/berth"
STAMP = "2026-01-31T23:59:59.000000Z"
RECORD = LeaseRecord("one", 15, STAMP, STAMP, 3)


@pytest.fixture
def play(fresh_control_plane) -> Callable[[Callable[[Leases], Awaitable[object]]], object]:
    kubeconfig = str(fresh_control_plane.berth_kubeconfig())

    def run(scene: Callable[[Leases], Awaitable[object]]) -> object:
        async def main() -> object:
            transport = Transport(await load_credentials(kubeconfig), user_agent="berth/test")
            try:
                async with asyncio.timeout(60):
                    return await scene(Leases(transport, NAMESPACE, "berth"))
            finally:
                await transport.close()

        return asyncio.run(main())

    return run


def test_a_lease_that_is_not_there_is_none(play):
    async def scene(leases: Leases) -> object:
        return await leases.get(timeout_s=10)

    assert play(scene) is None


def test_what_was_written_is_read(play):
    async def scene(leases: Leases) -> tuple[LeaseRecord, LeaseRecord | None]:
        made = await leases.create(RECORD, timeout_s=10)
        read = await leases.get(timeout_s=10)
        return made.record, read and read.record

    assert play(scene) == (RECORD, RECORD)


def test_only_one_of_two_writes_to_one_version_is_accepted(play):
    async def scene(leases: Leases) -> int | None:
        made = await leases.create(RECORD, timeout_s=10)
        await leases.update(made, LeaseRecord("two", 15, STAMP, STAMP, 4), timeout_s=10)
        with pytest.raises(ApiError) as caught:
            await leases.update(made, LeaseRecord("three", 15, STAMP, STAMP, 4), timeout_s=10)
        return caught.value.status

    assert play(scene) == 409


def test_a_second_lease_is_not_made(play):
    async def scene(leases: Leases) -> int | None:
        await leases.create(RECORD, timeout_s=10)
        with pytest.raises(ApiError) as caught:
            await leases.create(RECORD, timeout_s=10)
        return caught.value.status

    assert play(scene) == 409


def test_a_lease_that_was_deleted_cannot_be_updated(play, fresh_control_plane):
    async def scene(leases: Leases) -> int | None:
        made = await leases.create(RECORD, timeout_s=10)
        await asyncio.to_thread(fresh_control_plane.call, "DELETE", PATH)
        with pytest.raises(ApiError) as caught:
            await leases.update(made, RECORD, timeout_s=10)
        return caught.value.status

    assert play(scene) in (404, 409)


def test_what_others_wrote_beside_the_record_stays(play, fresh_control_plane):
    changes = {
        "metadata": {"labels": {"team": "storage"}},
        "spec": {"strategy": "OldestEmulationVersion"},
    }

    async def scene(leases: Leases) -> None:
        await leases.create(RECORD, timeout_s=10)
        await asyncio.to_thread(
            fresh_control_plane.call,
            "PATCH",
            PATH,
            changes,
            content_type="application/merge-patch+json",
        )
        seen = await leases.get(timeout_s=10)
        assert seen is not None
        await leases.update(seen, LeaseRecord("two", 15, STAMP, STAMP, 4), timeout_s=10)

    play(scene)
    lease = fresh_control_plane.call("GET", PATH)
    assert lease["metadata"]["labels"] == {"team": "storage"}
    assert lease["spec"]["holderIdentity"] == "two"


def test_the_certificate_of_the_holder_is_published_until_another_holds_it(
    fresh_control_plane, play
):
    changes = {"metadata": {"annotations": {"team": "storage"}}}

    async def scene(leases: Leases) -> tuple[str, str, str]:
        first = Leases(leases._transport, NAMESPACE, "berth", lambda: "of one")
        made = await first.create(RECORD, timeout_s=10)
        await asyncio.to_thread(
            fresh_control_plane.call,
            "PATCH",
            PATH,
            changes,
            content_type="application/merge-patch+json",
        )
        seen = await leases.get(timeout_s=10)
        assert seen is not None
        renewed = await first.update(seen, RECORD, timeout_s=10)
        other = LeaseRecord("two", 15, STAMP, STAMP, 4)
        taken = await leases.update(renewed, other, timeout_s=10)
        return made.certificate, renewed.certificate, taken.certificate

    assert play(scene) == ("of one", "of one", "")
    lease = fresh_control_plane.call("GET", PATH)
    assert lease["metadata"]["annotations"] == {"team": "storage"}


def test_clocks_that_are_centuries_apart_agree_on_one_leader(play):
    times = ElectionTimes(lease_s=4.0, renew_s=3.0, retry_s=0.2)

    async def scene(leases: Leases) -> tuple[Standing, Standing]:
        behind = LeaderElector(
            leases, "behind", times, random.Random(1), wall_clock=lambda: 1_000_000.0
        )
        ahead = LeaderElector(
            leases, "ahead", times, random.Random(2), wall_clock=lambda: 7_000_000_000.0
        )
        await behind.acquire()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * times.lease_s), asyncio.TaskGroup() as group:
                group.create_task(behind.keep())
                group.create_task(ahead.acquire())
        return behind.tenure.standing, ahead.tenure.standing

    assert play(scene) == (Standing.LEADING, Standing.STANDBY)
