"""Devices that are in two claims at one time, found by walking all versions of all claims."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.devices.histories import ClaimVersion, Device


@dataclass(slots=True)
class Overlap:
    """A device in two claims.

    Attributes
    ----------
    first, second
        UIDs of the claims, the one that had the device first, first.
    first_since, since, until
        The resourceVersions at which the first claim got the device, at which the second got it
        too, and at which one of them lost it (infinity: never).
    ended_by
        UID of the claim that lost it; empty while none has.
    """

    device: Device
    first: str
    second: str
    first_since: int
    since: int
    until: float = math.inf
    ended_by: str = ""


def find_overlaps(versions: Iterable[ClaimVersion]) -> list[Overlap]:
    """Return each device that was in two claims, with the versions between which it was so.

    Parameters
    ----------
    versions
        Of all claims, in their order.
    """
    holders: dict[Device, dict[str, int]] = {}
    held: dict[str, frozenset[Device]] = {}
    found: list[Overlap] = []
    lasting: dict[Device, list[Overlap]] = {}
    for each in versions:
        before = held.get(each.uid, frozenset())
        after = frozenset(each.devices)
        held[each.uid] = after
        for device in before - after:
            del holders[device][each.uid]
            for overlap in lasting.get(device, ()):
                if each.uid in (overlap.first, overlap.second):
                    overlap.until, overlap.ended_by = each.version, each.uid
            lasting[device] = [x for x in lasting.get(device, ()) if math.isinf(x.until)]
        for device in after - before:
            others = holders.setdefault(device, {})
            for uid, since in others.items():
                overlap = Overlap(device, uid, each.uid, since, each.version)
                found.append(overlap)
                lasting.setdefault(device, []).append(overlap)
            others[each.uid] = each.version
    return found


def forgotten(versions: Iterable[ClaimVersion]) -> set[tuple[str, Device]]:
    """Return each claim and device that were allocated because a plain set of devices had lost it.

    kube-scheduler keeps the allocated devices in a set: when the first of two claims with the same
    device is deallocated, the set takes the device for free, although the other claim has it.

    *Source*: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go (1.36).
    """
    known: set[Device] = set()
    holders: dict[Device, set[str]] = {}
    held: dict[str, frozenset[Device]] = {}
    found = set()
    for each in versions:
        before, after = held.get(each.uid, frozenset()), frozenset(each.devices)
        held[each.uid] = after
        for device in before - after:
            known.discard(device)
            holders[device].discard(each.uid)
        for device in after - before:
            if holders.setdefault(device, set()) and device not in known:
                found.add((each.uid, device))
            known.add(device)
            holders[device].add(each.uid)
    return found


def most_held(versions: Sequence[ClaimVersion]) -> int:
    """Return the largest number of devices that were in use at one time."""
    held: dict[str, int] = {}
    total = most = 0
    for each in versions:
        total += len(each.devices) - held.get(each.uid, 0)
        held[each.uid] = len(each.devices)
        most = max(most, total)
    return most
