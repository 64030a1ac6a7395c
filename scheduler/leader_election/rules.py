"""Decide the next action on the Lease from what was observed of it; the elector carries it out.

A Lease is valid for its duration from the moment when *this* process first saw its record as it is.
The times in it are another machine's, and are not compared with anything.

*Source*: client-go tools/leaderelection, leaderelection.go, tryAcquireOrRenew (0.36).
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cache.value import Value

if TYPE_CHECKING:
    from scheduler.client.leases import Lease, LeaseRecord


class Step(enum.Enum):
    """What to do next."""

    CREATE = "create"
    """There is no Lease: make one, in our name."""

    TAKE = "take"
    """Write our name into it, as a new holder."""

    RENEW = "renew"
    """It is ours: write that we are still there."""

    WAIT = "wait"
    """Somebody else leads, or did a moment ago."""

    LOST = "lost"
    """We led, and somebody else holds it."""


class View(Value, frozen=True):
    """What this process has seen of the Lease.

    Attributes
    ----------
    lease
        As it was last read or written; None when there was none.
    record
        The last record seen. It outlives its Lease: who deletes a Lease does not stop its holder.
    since_s
        When that record was first seen, by this process's clock, or seen to be gone.
    looked_s
        When there was no Lease the last time.
    """

    lease: Lease | None = None
    record: LeaseRecord | None = None
    since_s: float = -math.inf
    looked_s: float = -math.inf

    def after(self, lease: Lease | None, now_s: float, blind_s: float) -> View:
        """Return the view once `lease` was seen at `now_s`.

        Parameters
        ----------
        blind_s
            For how long nobody needs to have looked at a Lease that is gone: after more than that
            it may have come back, been renewed and gone again, unseen.
        """
        if lease is None:
            # Its holder may have renewed it right before it was deleted, unseen.
            still = self.lease is None and now_s - self.looked_s <= blind_s
            return View(None, self.record, self.since_s if still else now_s, now_s)
        if lease.record == self.record:
            return replace(self, lease=lease)
        return View(lease, lease.record, now_s)

    def valid_until_s(self, own_lease_s: float) -> float:
        """Return until when the holder may be leading; minus infinity when nobody does.

        Parameters
        ----------
        own_lease_s
            The duration for a record that does not say.
        """
        if self.record is None or not self.record.holder:
            return -math.inf
        told = self.record.duration_s
        return self.since_s + (own_lease_s if told is None else told)


def next_step(view: View, identity: str, *, holds: bool, now_s: float, own_lease_s: float) -> Step:
    """Return what to do.

    Parameters
    ----------
    identity
        Our own name.
    holds
        Whether we are the leader as far as we know.

    Notes
    -----
    # Differs: client-go creates a Lease that is missing at once. Here whoever has seen its holder
    waits until that one's time is over: it goes on writing until it notices. (Whoever starts just
    then knows of no holder, and creates it. So does a standby that knows an earlier holder only,
    because the Lease of the last one was made and deleted between two of its looks.) And a leader
    whose name was taken out of the Lease steps down, where client-go's puts it back.
    """
    holder = view.lease.record.holder if view.lease is not None else None
    if holds:
        if holder is None:
            return Step.CREATE
        return Step.RENEW if holder == identity else Step.LOST
    if holder == identity:
        # A write of ours whose answer never came.
        return Step.RENEW
    if holder != "" and view.valid_until_s(own_lease_s) > now_s:
        return Step.WAIT
    return Step.CREATE if holder is None else Step.TAKE
