"""Acquire the Lease, renew it, and release it.

    acquire() -> keep() until it returns: the leadership is lost
              -> release(), once nothing is written any more

The same Lease fields as client-go's, so that `kubectl get lease` and other schedulers' tools read
them. Each request has a timeout of its own; none is waited for past the renew deadline.

*Source*: client-go tools/leaderelection, leaderelection.go (0.36); kube-scheduler 1.36,
cmd/kube-scheduler/app/server.go.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
import uuid
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from scheduler.client.errors import ApiError
from scheduler.client.leases import LeaseRecord, released
from scheduler.client.timestamps import api_micro_time
from scheduler.leader_election.rules import Step, View, next_step
from scheduler.leader_election.tenure import Standing, Tenure, boot_clock

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from scheduler.client.leases import Lease, Leases
    from scheduler.leader_election.tenure import ElectionTimes

LOOK_S: Final = 0.5
"""How often a standby looks at the Lease, at most `retry_s`. # Differs: client-go's looks every 2
to 4.4 s with its default times, and leaves a lease that was given back lying for so long."""

_COMPLAINT_S: Final = 60.0
_MAX_HOSTNAME: Final = 80
_SHORTEST_S: Final = 0.001
_TRIES_AT_ONCE: Final = 3

_BLIND_SHARE: Final = 3
"""Part of the lease's duration for which a look at a Lease that is gone may fail to come."""

log = structlog.get_logger(__name__)


def own_identity() -> str:
    """Return a name for this start of this process: nobody had it before, nobody will.

    With a name that outlives the process, one that is started again would take itself for the
    leader that it was. Source: cmd/kube-scheduler/app/options/options.go, the same form.
    """
    return f"{socket.gethostname()[:_MAX_HOSTNAME]}_{uuid.uuid4()}"


class LeaderElector:
    """One candidate for one lease.

    Parameters
    ----------
    leases
        The Lease.
    identity
        Unique to this start of the process.
    times
        Periods of the election.
    rng
        Spreads the attempts of several standbys.
    clock
        Seconds that only grow.
    wall_clock
        Seconds since the epoch, for what people read.

    Notes
    -----
    *Concurrency*: one of :meth:`acquire`, :meth:`keep` and :meth:`release` at a time, on the loop.
    """

    def __init__(
        self,
        leases: Leases,
        identity: str,
        times: ElectionTimes,
        rng: random.Random,
        *,
        clock: Callable[[], float] = boot_clock,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.tenure = Tenure(times, clock)
        self._leases = leases
        self._identity = identity
        self._times = times
        self._rng = rng
        self._clock = clock
        self._wall_clock = wall_clock
        self._view = View()
        self._must_look = True
        """What is stored may be another version than the one seen last."""
        self._may_be_ours = False
        """A write of our name was sent."""
        self._stamps = -1
        self._leader: str | None = None
        self._complaint = ""
        self._complained_at_s = -math.inf
        self._has_seen_lease = False
        self.version_to_know = ""
        """The resourceVersion of the Lease by which all writes of the leaders before this one had
        ended; empty before this process leads, and where it has seen no Lease but its own."""

    # --- life ---------------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Return once this process leads. Whatever the API server does meanwhile is waited out."""
        log.info("waiting for the lease", lease=str(self._leases), identity=self._identity)
        while True:
            pause_s = await self._campaign()
            if self.tenure.standing is Standing.LEADING:
                record = self._view.record
                log.info(
                    "leading",
                    lease=str(self._leases),
                    identity=self._identity,
                    transitions=0 if record is None else record.transitions,
                )
                return
            await asyncio.sleep(pause_s)

    async def keep(self) -> str:
        """Renew the lease until it is lost; return why it was.

        Returns no later than the renew deadline, whatever the API server does.
        """
        why = "the lease could not be renewed in time"
        while True:
            begun_s = self._clock()
            other = await self._renew()
            if other is not None:
                self.tenure.lose()
                return other
            pause_s = begun_s + self._times.retry_s - self._clock()
            # Never past the deadline: the loss shall be noticed when it happens.
            await asyncio.sleep(min(max(pause_s, 0.0), max(self.tenure.left_s, 0.0)))
            if not self.tenure.check():
                return f"{why}: {self._complaint}" if self._complaint else why

    async def release(self) -> bool:
        """Give the lease back, so that a standby need not wait for its end.

        Only after `Tenure.close`, once no write is under way, or before this process has led: then
        a write of our name may have been carried out without an answer. Afterwards nothing is
        held, or the lease is left to end by itself.

        Returns
        -------
        Whether it was given back.
        """
        for _ in range(2):
            if not self.tenure.check() and self.tenure.standing is not Standing.STANDBY:
                return False
            if not self._may_be_ours:
                return False
            try:
                async with asyncio.timeout(self._request_s()):
                    if self._must_look:
                        self._saw(await self._leases.get(timeout_s=self._request_s()))
                    lease = self._view.lease
                    if lease is None or lease.record.holder != self._identity:
                        self.tenure.lose()
                        return False
                    self._must_look = True
                    record = released(lease.record, self._now())
                    await self._leases.update(lease, record, timeout_s=self._request_s())
            except (ApiError, TimeoutError) as error:
                log.warning("the lease could not be released", error=_told(error))
            else:
                self.tenure.released()
                log.info("lease released", lease=str(self._leases))
                return True
        return False

    # --- one attempt --------------------------------------------------------------------------

    async def _campaign(self) -> float:
        """Look at the lease, and take it if it may be taken; return how long to wait then."""
        try:
            async with asyncio.timeout(self._times.renew_s):
                self._saw(await self._leases.get(timeout_s=self._request_s()))
                step = self._next_step(holds=False)
                if step is not Step.WAIT:
                    before = self._view.lease
                    sent_s = await self._write(step)
                    self.version_to_know = self._last_word(before)
                    self.tenure.won(sent_s)
        except (ApiError, TimeoutError) as error:
            if isinstance(error, ApiError) and error.status == 409:
                return self._spread(self._look_s())  # another was faster
            self._complain("the lease cannot be had", error)
            return self._spread(self._times.retry_s)
        ends_in_s = self._view.valid_until_s(self._times.lease_s) - self._clock()
        # A hundredth of a second later than that, for clocks have a resolution.
        return min(self._look_s(), max(ends_in_s, 0.0) + 0.01)

    async def _renew(self) -> str | None:
        """Renew the lease, if that is possible now; return why it is lost, or None."""
        left_s = self.tenure.left_s
        if left_s <= 0:
            return None  # the caller checks
        try:
            async with asyncio.timeout(min(left_s, self._request_s() * 2)):
                for _ in range(_TRIES_AT_ONCE):
                    if self._must_look:
                        self._saw(await self._leases.get(timeout_s=self._request_s()))
                    step = self._next_step(holds=True)
                    if step is Step.LOST:
                        return f"the lease is held by {self._leader or 'nobody'}"
                    try:
                        self.tenure.renewed(await self._write(step))
                    except ApiError as error:
                        if error.status not in (404, 409):
                            raise
                        # Somebody wrote into it, deleted it or made it. Who, says the next look,
                        # and that must not wait: it may be another leader.
                        self._complaint = str(error)
                    else:
                        self._well()
                        return None
        except (ApiError, TimeoutError) as error:
            self._complain("the lease cannot be renewed", error)
        return None

    async def _write(self, step: Step) -> float:
        """Write our name into the Lease; return when that was sent."""
        lease = self._view.lease
        old = self._view.record
        now = self._now()
        record = LeaseRecord(self._identity, math.ceil(self._times.lease_s), now, now, 0)
        if old is not None and old.holder == self._identity:
            record = replace(record, acquire_time=old.acquire_time, transitions=old.transitions)
        elif lease is not None and old is not None:
            record = replace(record, transitions=old.transitions + 1)
        # Until there is an answer nobody knows which version is stored.
        self._must_look = self._may_be_ours = True
        sent_s = self._clock()
        timeout_s = self._request_s()
        if step is Step.CREATE or lease is None:
            written = await self._leases.create(record, timeout_s=timeout_s)
        else:
            written = await self._leases.update(lease, record, timeout_s=timeout_s)
        self._view = View(written, written.record, sent_s)
        self._leader = self._identity
        self._must_look = False
        return sent_s

    # --- small things -------------------------------------------------------------------------

    def _next_step(self, *, holds: bool) -> Step:
        return next_step(
            self._view,
            self._identity,
            holds=holds,
            now_s=self._clock(),
            own_lease_s=self._times.lease_s,
        )

    def _last_word(self, before: Lease | None) -> str:
        """Return the version from which on no leader before us writes; `before` is what we took."""
        if before is not None and not before.record.holder:
            return before.resource_version  # given back, with all writes settled
        ours = self._view.lease
        return ours.resource_version if ours is not None and self._has_seen_lease else ""

    def _saw(self, lease: Lease | None) -> None:
        self._has_seen_lease |= lease is not None
        self._view = self._view.after(lease, self._clock(), self._times.lease_s / _BLIND_SHARE)
        leader = "" if lease is None else lease.record.holder
        if leader != self._leader:
            self._leader = leader
            log.info("leader seen", lease=str(self._leases), leader=leader or None)

    def _request_s(self) -> float:
        """Return what one request may take: half the renew deadline, and never past it."""
        half_s = self._times.renew_s / 2
        if self.tenure.standing is Standing.STANDBY:
            return half_s
        return max(min(half_s, self.tenure.left_s), _SHORTEST_S)

    def _look_s(self) -> float:
        return min(LOOK_S, self._times.retry_s)

    def _spread(self, pause_s: float) -> float:
        return pause_s * (0.5 + 0.5 * self._rng.random())

    def _now(self) -> str:
        """Return the time for the record, in milliseconds and a counter.

        Others see a renewal by its being different, so it has to be, even where the wall clock
        stands still or goes back to a second in which it has been before.
        """
        self._stamps = (self._stamps + 1) % 1_000
        millis = int(self._wall_clock() * 1e3)
        return api_micro_time((millis * 1_000 + self._stamps + 0.5) / 1e6)

    def _well(self) -> None:
        if self._complaint:
            log.info("the lease is renewed again", lease=str(self._leases))
        self._complaint = ""

    def _complain(self, what: str, error: BaseException) -> None:
        """Log what goes wrong, the same thing once a minute."""
        why, now_s = _told(error), self._clock()
        if why != self._complaint or now_s - self._complained_at_s >= _COMPLAINT_S:
            self._complained_at_s = now_s
            log.warning(what, lease=str(self._leases), error=why)
        self._complaint = why


def _told(error: BaseException) -> str:
    return str(error) or "no answer in time"
