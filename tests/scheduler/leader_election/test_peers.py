from __future__ import annotations

import asyncio

import pytest

from scheduler.client.errors import ApiError
from scheduler.client.leases import Lease, LeaseRecord
from scheduler.leader_election.peers import Peers
from tests.fakes.clock import FakeClock


class OneLease:
    """A Lease that a test writes."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.fails = False
        self.writes = 0

    def renew(self, holder: str = "someone") -> None:
        self.writes += 1
        self.lease = Lease(LeaseRecord(holder, 15, "", str(self.writes)), {})

    async def get(self, *, timeout_s: float) -> Lease | None:
        if self.fails:
            raise ApiError(403, "Forbidden", "no")
        return self.lease


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def lease() -> OneLease:
    return OneLease()


@pytest.fixture
def peers(lease, clock) -> Peers:
    return Peers({"b": lease}, clock)


def look(peers: Peers) -> tuple[set[str], float]:
    asyncio.run(peers.look())
    return set(peers.live()), peers.dead_for_s("b")


def test_a_leader_is_live_while_it_renews(peers, lease, clock):
    for _ in range(3):
        lease.renew()
        assert look(peers) == ({"b"}, 0)
        clock.advance(10)
    assert look(peers) == ({"b"}, 0)
    clock.advance(10)
    assert look(peers) == (set(), 0)
    clock.advance(60)
    assert look(peers) == (set(), 60)
    lease.renew()
    assert look(peers) == ({"b"}, 0)


def test_a_lease_that_was_given_back_has_no_leader(peers, lease, clock):
    lease.renew(holder="")
    assert look(peers) == (set(), 0)


def test_a_lease_that_is_not_there_has_no_leader(peers, clock):
    assert look(peers) == (set(), 0)
    clock.advance(60)
    assert look(peers) == (set(), 60)


def test_a_lease_that_cannot_be_read_says_nothing(peers, lease, clock):
    lease.fails = True
    assert look(peers) == (set(), 0)
    clock.advance(60)
    assert look(peers) == (set(), 0)
    lease.fails = False
    lease.renew()
    look(peers)
    lease.fails = True
    clock.advance(60)
    assert look(peers) == ({"b"}, 0)
