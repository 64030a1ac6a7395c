"""The promises about devices, each judged on what the API server has recorded."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.controlplane.access import USER
from tests.controlplane.audit import check_binds
from tests.devices.claim_writes import (
    ALLOCATION,
    DEALLOCATION,
    FINALIZER,
    NOTHING,
    RELEASE,
    RESERVATION,
    claim_writes,
    find_changes,
)
from tests.devices.overlaps import find_overlaps
from tests.scenarios.failovers import binds_carried_out
from tests.scenarios.lease_witness import testify, writer_of
from tests.scenarios.replicas import LEASE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tests.devices.claim_writes import Change
    from tests.devices.faulty_life import Life
    from tests.devices.histories import ClaimVersion, PodVersion

MAX_SHOWN: Final = 10


class Promise(NamedTuple):
    """A promise, the figures behind it, and what breaks it.

    Attributes
    ----------
    broken
        A sentence for each case; empty when the promise is kept.
    """

    text: str
    figures: str
    broken: Sequence[str]


def judge(life: Life) -> list[Promise]:
    """Return all promises about a life with faults."""
    changes = list(find_changes(life.claims, claim_writes(life.events)))
    return [
        _allocated_once(life, changes),
        _never_in_two(life),
        _reserved_when_bound(life),
        _written_once(changes),
        _bound_once(life),
        _written_by_leaders(life),
        _freed(life),
    ]


def _allocated_once(life: Life, changes: Sequence[Change]) -> Promise:
    counts = Counter(each.uid for each in changes if each.what == ALLOCATION)
    names = {each.uid: each.name for each in life.claims}
    broken = [
        f"{name} was allocated {counts[uid]} times"
        for uid, name in names.items()
        if counts[uid] != 1
    ]
    if len(names) != life.size.pods:
        broken.append(f"{len(names)} claims for {life.size.pods} pods")
    return Promise("each claim is allocated once", f"{len(names)} claims", broken)


def _never_in_two(life: Life) -> Promise:
    names = {each.uid: each.name for each in life.claims}
    broken = [
        f"{'/'.join(each.device)} was in {names[each.first]} and {names[each.second]}"
        for each in find_overlaps(life.claims)
    ]
    figures = f"{len(life.claims)} versions of claims replayed"
    return Promise("no device is in two claims at any moment", figures, broken)


def _reserved_when_bound(life: Life) -> Promise:
    broken, bound = [], 0
    for pod, claim in claims_when_bound(life.pods, life.claims):
        bound += 1
        pools = set() if claim is None else {pool for pool, _ in claim.devices}
        if claim is None or pod.uid not in claim.reserved or not claim.has_finalizer:
            broken.append(f"{pod.name} was bound without a reserved claim")
        elif pools != {pod.node}:
            broken.append(f"{pod.name} was bound to {pod.node}, its devices are on {pools}")
    if bound != life.size.pods:
        broken.append(f"{bound} of {life.size.pods} pods were bound")
    return Promise("its claim is reserved for a pod that is bound", f"{bound} binds", broken)


def claims_when_bound(
    pods: Iterable[PodVersion], claims: Iterable[ClaimVersion]
) -> Iterator[tuple[PodVersion, ClaimVersion | None]]:
    """Yield each pod at the version at which it got a node, and its claim as it was then."""
    bound: dict[str, PodVersion] = {}
    for each in pods:
        if each.node:
            bound.setdefault(each.uid, each)
    of_pod: defaultdict[str, list[ClaimVersion]] = defaultdict(list)
    for claim in claims:
        of_pod[claim.owner].append(claim)
    for pod in bound.values():
        before = [each for each in of_pod[pod.uid] if each.version <= pod.version]
        yield pod, before[-1] if before else None


def _written_once(changes: Sequence[Change]) -> Promise:
    by_claim: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in changes:
        if each.user in (USER, ""):
            by_claim[each.uid][each.what] += 1
    broken = []
    for uid, counts in by_claim.items():
        wanted = Counter({FINALIZER: 1, ALLOCATION: 1, RESERVATION: 1 + counts[RELEASE]})
        surplus = counts - wanted - Counter({RELEASE: counts[RELEASE]})
        missing = wanted - counts
        broken += [f"claim {uid}: {what}, {count} too many" for what, count in surplus.items()]
        broken += [f"claim {uid}: {what}, {count} too few" for what, count in missing.items()]
    total: Counter[str] = sum(by_claim.values(), Counter())
    kinds = (FINALIZER, ALLOCATION, RESERVATION, RELEASE, DEALLOCATION, NOTHING)
    figures = ", ".join(f"{what} {total[what]}" for what in kinds if total[what])
    return Promise("each change of a claim is written once", figures, broken)


def _bound_once(life: Life) -> Promise:
    last = {each.uid: each for each in life.pods if each.node}
    pods = [
        {
            "metadata": {"uid": pod.uid, "name": pod.name, "namespace": "default"},
            "spec": {"nodeName": pod.node},
        }
        for pod in last.values()
    ]
    counts = Counter(binds_carried_out(life.events, pods))
    broken = [
        f"{number} pods were bound {times} times" for times, number in counts.items() if times != 1
    ]
    broken += check_binds(life.events, user="", pods=pods)
    by_writer: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for event in life.events:
        by_writer[writer_of(event)].append(event)
    for events in by_writer.values():
        broken += check_binds(events, user=USER)
    return Promise("each pod is bound once", f"{len(last)} pods", broken)


def _written_by_leaders(life: Life) -> Promise:
    testimony = testify(life.events, user=USER, lease=LEASE)
    broken = testimony.violations(life.size.times.lease_s)
    if len(testimony.tenures) != 2:
        broken.append(f"{len(testimony.tenures)} leaders instead of 2")
    figures = f"{len(testimony.tenures)} leaders, {len(testimony.writes)} writes"
    return Promise("only the leader writes", figures, broken)


def _freed(life: Life) -> Promise:
    total = life.size.nodes * life.size.devices
    broken = [f"{name} is left" for name in life.left]
    last = {each.uid: each for each in life.claims}
    broken += [f"{each.name} was not deleted" for each in last.values() if not each.is_gone]
    if life.free != total:
        broken.append(f"Berth reports {life.free:.0f} of {total} devices as free")
    figures = f"{life.free:.0f} of {total} devices are free"
    return Promise("all claims and devices are freed with their pods", figures, broken)
