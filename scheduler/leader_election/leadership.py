"""Run an election for the app: wait, lead, detect the loss of the Lease, hand over."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from scheduler.client.credential_search import own_namespace
from scheduler.client.leases import Leases
from scheduler.leader_election.elector import LeaderElector
from scheduler.leader_election.tenure import ElectionTimes, Standing, boot_clock
from scheduler.process.stopping import done_before

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from scheduler.client.transport import Transport
    from scheduler.config import SchedulerConfig

_POLL_S: Final = 0.005

log = structlog.get_logger(__name__)


class Leadership:
    """The way of one process from standby to leader to its end.

    Parameters
    ----------
    elector
        The candidate.
    writes_in_flight
        How many writes behind the fence are under way.

    Notes
    -----
    *Concurrency*: loop-confined, but for :attr:`is_leading`.
    """

    def __init__(self, elector: LeaderElector, writes_in_flight: Callable[[], int]) -> None:
        self._elector = elector
        self._tenure = elector.tenure
        self._writes_in_flight = writes_in_flight
        self._renewing: asyncio.Task[str] | None = None

    @property
    def is_leading(self) -> bool:
        """Whether this process may schedule now. Any thread."""
        return self._tenure.is_leading

    @property
    def is_lost(self) -> bool:
        """Whether this process led and does so no more. Any thread."""
        return self._tenure.standing is Standing.LOST

    @property
    def version_to_know(self) -> str:
        """See :attr:`LeaderElector.version_to_know`."""
        return self._elector.version_to_know

    def grant_s(self, timeout_s: float) -> float:
        """Return how much of its timeout a write may have that starts now; 0 for none."""
        return self._tenure.grant_s(timeout_s)

    async def win(self, stop: asyncio.Event) -> bool:
        """Wait until this process leads, and renew from then on; False when told to stop first."""
        acquiring = asyncio.ensure_future(self._elector.acquire())
        if not await done_before(stop, acquiring, cancel=True):
            await self._elector.release()
            return False
        await acquiring
        self._renewing = asyncio.ensure_future(self._elector.keep())
        return True

    async def hold(self, stop: asyncio.Event) -> bool:
        """Wait until told to stop; return False when the leadership was lost instead."""
        if self._renewing is None:
            raise RuntimeError("hold comes after win")
        if not await done_before(stop, self._renewing, cancel=False):
            return self._tenure.check()
        log.error("leadership lost", why=self._renewing.result())
        return False

    async def hand_over(self, settle_s: float) -> None:
        """Write nothing more, wait for the writes under way, and give the lease back.

        When they do not end in `settle_s` seconds the lease is left to end by itself: the next
        leader shall not begin while they may still be carried out.
        """
        self._tenure.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settle_s):
                while self._writes_in_flight():  # noqa: ASYNC110 - counted by others, for speed
                    await asyncio.sleep(_POLL_S)
        await self.stop()
        if not self._tenure.check():
            return
        if self._writes_in_flight():
            log.warning("lease not released", writes_in_flight=self._writes_in_flight())
            return
        await self._elector.release()

    async def stop(self) -> None:
        """Renew no more."""
        self._tenure.close()
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)

    def lost_meanwhile(self) -> bool:
        """Tell whether this process led and its time has run out, and write nothing more if so.

        For a signal handler: takes no lock, logs nothing. Interrupting anything on the I/O thread
        it is safe.
        """
        self._tenure.check()
        return self._tenure.standing is Standing.LOST


class LeaseName(NamedTuple):
    """Where a Lease is."""

    namespace: str
    name: str


def lease_of(config: SchedulerConfig) -> LeaseName:
    """Return the Lease that a configuration names.

    # Differs: a file that names no namespace means the one that this process runs in, where its
    rights are; kube-scheduler's is kube-system then. So it is here outside of any pod.
    """
    election, namespace = config.leader_election, None
    if "leaderElection.resourceNamespace" not in config.given:
        namespace = own_namespace()
    return LeaseName(namespace or election.resource_namespace, election.resource_name)


def leadership_of(
    config: SchedulerConfig,
    identity: str,
    transport: Transport,
    writes_in_flight: Callable[[], int],
    rng: random.Random,
    certificate: Callable[[], str],
    *,
    clock: Callable[[], float] = boot_clock,
    wall_clock: Callable[[], float] = time.time,
) -> Leadership:
    """Return a candidate for the Lease that a configuration names; see :class:`Leadership`.

    Parameters
    ----------
    certificate
        Returns the certificate of this process's HTTPS server; see :class:`Leases`.
    """
    lease = lease_of(config)
    times = ElectionTimes.of(config.leader_election)
    leases = Leases(transport, lease.namespace, lease.name, certificate)
    elector = LeaderElector(leases, identity, times, rng, clock=clock, wall_clock=wall_clock)
    return Leadership(elector, writes_in_flight)
