"""ResourceClaims as the API has them, overlaid with what our own writes returned.

A write returns the object that it made, and the watch brings that object some time later. Until
then the returned object is what is known of the claim. An allocation that is not written yet is
*in flight*: its devices are in use, while the claim is shown as the API has it.

*Source*: kube-scheduler 1.36, pkg/scheduler/util/assumecache/assume_cache.go, and
pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go (claimTracker).
"""

from __future__ import annotations

import threading
from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from cache.allocated_devices import (
    NO_USE,
    AllocatedDevices,
    claim_user,
    device_use,
)
from cache.resource_versions import INCOMPARABLE, parse_resource_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.allocated_devices import AllocatedState, ClaimUser, DeviceUse
    from cache.device_objects import DeviceId, ResourceClaim
    from cache.locks import MakeLock

ClaimKey: TypeAlias = "tuple[str, str]"
"""Namespace and name of a claim."""

ClaimListener: TypeAlias = "Callable[[ResourceClaim | None, ResourceClaim | None], object]"
"""Receives what was shown of a claim before and after a change; None where there is no claim."""


class ClaimCache:
    """The latest view of all claims, and the devices that they use.

    Notes
    -----
    *Concurrency*: thread-safe. Listeners are called without the lock, by one thread at a time and
    in the order of the changes: on the thread that made a change or, while another thread is
    calling listeners, on that one.

    Invariant: an object that a write returned is shown only while it is newer than the API's.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._api: dict[ClaimKey, ResourceClaim] = {}
        self._written: dict[ClaimKey, ResourceClaim] = {}
        self._in_flight: dict[str, ResourceClaim] = {}
        self._by_owner: dict[str, dict[ClaimKey, None]] = {}
        self._all: Mapping[ClaimKey, ResourceClaim] | None = None
        self._uses: dict[ClaimUser, DeviceUse] = {}
        self._used = AllocatedDevices()
        self._listeners: tuple[ClaimListener, ...] = ()
        self._by_key: dict[ClaimKey, list[Callable[[], None]]] = {}
        self._events: deque[tuple[ResourceClaim | None, ResourceClaim | None]] = deque()
        self._is_delivering = False

    # --- reading ------------------------------------------------------------------------------

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the latest view of a claim: what a write returned, else the API's version."""
        with self._lock:
            return self._latest_locked((namespace, name))

    def api(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the version of a claim that the watch brought last, or None."""
        return self._api.get((namespace, name))

    def by_owner(self, uid: str) -> tuple[ResourceClaim, ...]:
        """Return the latest view of the claims that an object with this UID owns."""
        with self._lock:
            keys = self._by_owner.get(uid, {})
            latest = map(self._latest_locked, keys)
            return tuple(claim for claim in latest if claim is not None)

    def all(self) -> Mapping[ClaimKey, ResourceClaim]:
        """Return the latest view of all claims; the mapping does not change later.

        *Cost*: proportional to the claims after one of them changed, else constant.
        """
        with self._lock:
            if self._all is None:
                self._all = MappingProxyType({**self._api, **self._written})
            return self._all

    def allocated(self) -> AllocatedState:
        """Return the devices in use, those of allocations in flight included.

        *Cost*: see :meth:`cache.allocated_devices.AllocatedDevices.state`.
        """
        with self._lock:
            return self._used.state()

    def device_changes(self, since: int) -> tuple[int, frozenset[DeviceId] | None]:
        """Return the version of :meth:`allocated`, and the devices taken or freed after ``since``.

        The devices are None when ``since`` is too long ago.
        """
        with self._lock:
            return self._used.journal.version, self._used.journal.since(since)

    # --- what the watch says ------------------------------------------------------------------

    def changed(
        self, old: ResourceClaim | None, new: ResourceClaim | None, *, restored: bool = False
    ) -> None:
        """Store a claim from the watch; ``new`` is None for a deleted one.

        It is shown unless a write returned a newer version. A version older than the one that the
        watch brought before is ignored.

        Parameters
        ----------
        restored
            Whether the API has gone back in time, as it does when etcd is restored: ``new`` is
            taken over whatever its version, and what a write returned is dropped.
        """
        subject = new if new is not None else old
        if subject is None:
            return
        key = _key(subject)
        with self._lock:
            shown, known = self._latest_locked(key), self._api.get(key)
            if new is None:
                self._api.pop(key, None)
                self._written.pop(key, None)
            elif known is not None and not restored and _is_older(new, known):
                return
            else:
                self._api[key] = new
                written = self._written.get(key)
                if written is not None and (restored or not _is_older(new, written)):
                    del self._written[key]
            self._shown_locked(key, shown)
            # Who waits for the watch to bring a write is not told by what is shown.
            waiting = tuple(self._by_key.get(key, ())) if shown == new else ()
        self._deliver()
        for wake in waiting:
            wake()

    # --- what we write ------------------------------------------------------------------------

    def stored(self, claim: ResourceClaim) -> bool:
        """Show what a write returned until the watch brings that version or a newer one.

        Returns
        -------
        Whether the claim is shown, or the watch has brought this very version. Not so when the
        claim is gone, or a newer version of it is known.
        """
        key = _key(claim)
        with self._lock:
            shown, known = self._latest_locked(key), self._api.get(key)
            if shown is None or known is None or _is_older(claim, shown):
                return False
            if not _is_same_version(claim, known):
                self._written[key] = claim
            self._shown_locked(key, shown)
        self._deliver()
        return True

    def restore(self, namespace: str, name: str) -> None:
        """Show the API's version of a claim again, unless a write is known to have made a newer.

        # Differs: kube-scheduler goes back to the API's version in any case. Until the watch brings
        the newer one, it takes the devices that are allocated there for free.
        """
        key = namespace, name
        with self._lock:
            shown, written, known = (
                self._latest_locked(key),
                self._written.get(key),
                self._api.get(key),
            )
            if written is None or known is None or _is_older(known, written):
                return
            del self._written[key]
            self._shown_locked(key, shown)
        self._deliver()

    # --- what is in flight --------------------------------------------------------------------

    def begin_flight(self, claim: ResourceClaim) -> None:
        """Count the devices of an allocation that is going to be written as used.

        A second flight of a claim has no effect: the first one's allocation counts.

        Parameters
        ----------
        claim
            With the allocation, and with a UID; it need not exist in the API.
        """
        with self._lock:
            if claim.metadata.uid not in self._in_flight:
                self._in_flight[claim.metadata.uid] = claim
                self._count_locked(claim_user(claim))

    def end_flight(self, uid: str) -> bool:
        """End the flight of a claim: by now its allocation is stored, or given up.

        An allocation that was given up frees devices. Listeners are called for that as if the claim
        had been deallocated.

        # Differs: in kube-scheduler nobody hears of these devices.

        Returns
        -------
        Whether the claim was in flight.
        """
        with self._lock:
            claim = self._in_flight.pop(uid, None)
            if claim is None:
                return False
            self._count_locked(claim_user(claim))
            # A claim that was created meanwhile may have the devices under another name.
            if not self._used.is_in_use(device_use(claim)):
                freed = replace(claim, status=replace(claim.status, allocation=None))
                self._events.append((claim, freed))
        self._deliver()
        return True

    def in_flight(self, uid: str) -> ResourceClaim | None:
        """Return a claim with the allocation that is going to be written, or None."""
        return self._in_flight.get(uid)

    # --- who listens --------------------------------------------------------------------------

    def subscribe(self, listener: ClaimListener) -> None:
        """Call ``listener`` after each change of what is shown, whatever its cause.

        Causes are the watch, :meth:`stored`, :meth:`restore`, and :meth:`end_flight` if it frees
        devices. A listener must not raise.
        """
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def listen(self, namespace: str, name: str, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change of one claim, as it is shown or as the API has it."""
        with self._lock:
            self._by_key.setdefault((namespace, name), []).append(listener)

    def unlisten(self, namespace: str, name: str, listener: Callable[[], None]) -> None:
        """Undo one :meth:`listen`; without one this has no effect."""
        key = namespace, name
        with self._lock:
            listeners = self._by_key.get(key, [])
            if listener in listeners:
                listeners.remove(listener)
            if not listeners:
                self._by_key.pop(key, None)

    def _deliver(self) -> None:
        """Call the listeners for all changes that they have not heard of."""
        while True:
            with self._lock:
                if self._is_delivering or not self._events:
                    return
                self._is_delivering = True
                old, new = self._events.popleft()
                subject = new if new is not None else old
                listeners = self._listeners
                waiting = () if subject is None else tuple(self._by_key.get(_key(subject), ()))
            try:
                for listener in listeners:
                    listener(old, new)
                for wake in waiting:
                    wake()
            finally:
                with self._lock:
                    self._is_delivering = False

    # --- books --------------------------------------------------------------------------------

    def _latest_locked(self, key: ClaimKey) -> ResourceClaim | None:
        return self._written.get(key) or self._api.get(key)

    def _shown_locked(self, key: ClaimKey, before: ResourceClaim | None) -> None:
        """Record that another object may be shown under a key from now on."""
        after = self._latest_locked(key)
        if before == after:
            return
        self._all = None
        self._events.append((before, after))
        self._index_locked(key, before, after)
        for user in dict.fromkeys(claim_user(each) for each in (before, after) if each is not None):
            self._count_locked(user)

    def _index_locked(
        self, key: ClaimKey, before: ResourceClaim | None, after: ResourceClaim | None
    ) -> None:
        old, new = _owners(before), _owners(after)
        for uid in old - new:
            held = self._by_owner[uid]
            del held[key]
            if not held:
                del self._by_owner[uid]
        for uid in new - old:
            self._by_owner.setdefault(uid, {})[key] = None

    def _count_locked(self, user: ClaimUser) -> None:
        """Count what a claim uses now: by what is shown of it, and by what is in flight."""
        use = NO_USE
        for claim in (
            self._latest_locked((user.namespace, user.name)),
            self._in_flight.get(user.uid),
        ):
            if claim is not None and claim_user(claim) == user:
                use = use.merged(device_use(claim))
        before = self._uses.pop(user, NO_USE)
        if use is not NO_USE:
            self._uses[user] = use
        self._used.replace(user, before, use)


def _key(claim: ResourceClaim) -> ClaimKey:
    return claim.metadata.namespace, claim.metadata.name


def _owners(claim: ResourceClaim | None) -> frozenset[str]:
    if claim is None:
        return frozenset()
    return frozenset(owner.uid for owner in claim.metadata.owner_references)


def _is_older(claim: ResourceClaim, than: ResourceClaim) -> bool:
    """Return whether a version is known to be older; one that is no number is never."""
    version = parse_resource_version(claim.metadata.resource_version)
    return version != INCOMPARABLE and version < parse_resource_version(
        than.metadata.resource_version
    )


def _is_same_version(claim: ResourceClaim, other: ResourceClaim) -> bool:
    version = claim.metadata.resource_version
    return bool(version) and version == other.metadata.resource_version
