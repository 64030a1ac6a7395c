"""What two schedulers did to each other's devices, and the promises of Berth about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.controlplane import peer
from tests.controlplane.access import USER
from tests.controlplane.audit import bind_records, check_binds
from tests.devices.claim_writes import ALLOCATION, DEALLOCATION, claim_writes, find_changes
from tests.devices.overlaps import find_overlaps, forgotten
from tests.devices.promises import Promise
from tests.devices.rival_life import BERTH, KUBE_SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.devices.claim_writes import Change, ClaimWrite
    from tests.devices.overlaps import Overlap
    from tests.devices.rival_life import Rivalry

NAMES: Final = {USER: BERTH, peer.USER: KUBE_SCHEDULER}


class Collision(NamedTuple):
    """A device that two claims had.

    Attributes
    ----------
    first, second
        The schedulers that allocated it first and second.
    is_withdrawn
        Whether Berth withdrew its allocation before its pod was bound.
    both_bound
        Whether both pods were bound while both claims had the device.
    second_is_bound
        Whether the pod of the second claim was bound meanwhile.
    gap_s
        From the answer to the first write until the second arrived; negative where they overlapped.
    is_forgotten
        Whether a set of devices, such as kube-scheduler's, took the device for free: it was in two
        claims before, and one of them was deallocated. Otherwise both schedulers raced for it.
    """

    overlap: Overlap
    first: str
    second: str
    is_withdrawn: bool
    both_bound: bool
    second_is_bound: bool
    gap_s: float
    is_forgotten: bool


@dataclass(frozen=True, slots=True)
class Findings:
    """What became of the rivalry.

    Attributes
    ----------
    bound
        Pods that were bound, by scheduler.
    withdrawals
        Allocations that Berth withdrew.
    checks_s
        From the answer to Berth's allocation until its bind arrived, for each pod; sorted.
    """

    collisions: Sequence[Collision]
    bound: Counter[str]
    withdrawals: int
    checks_s: Sequence[float]

    def between(self, first: str, second: str) -> list[Collision]:
        """Return the collisions of claims that these schedulers allocated, in this order."""
        return [each for each in self.collisions if (each.first, each.second) == (first, second)]


def examine(rivalry: Rivalry) -> Findings:
    """Find the collisions, and what became of each."""
    writes = claim_writes(rivalry.events)
    changes = list(find_changes(rivalry.claims, writes))
    bound: dict[str, int] = {}
    schedulers: dict[str, str] = {}
    for pod in rivalry.pods:
        if pod.node:
            bound.setdefault(pod.uid, pod.version)
            schedulers[pod.uid] = pod.scheduler
    judge = _Judge(rivalry, writes, changes, bound)
    return Findings(
        collisions=[judge.collision(each) for each in find_overlaps(rivalry.claims)],
        bound=Counter(schedulers.values()),
        withdrawals=len(judge.withdrawn),
        checks_s=sorted(_checks_s(rivalry, writes, changes)),
    )


class _Judge:
    def __init__(
        self,
        rivalry: Rivalry,
        writes: Sequence[ClaimWrite],
        changes: Sequence[Change],
        bound: dict[str, int],
    ) -> None:
        self._owners = {each.uid: each.owner for each in rivalry.claims}
        self._bound = bound
        self._writes = {(x.after.uid, x.after.version): x for x in writes}
        withdrawn = [x for x in changes if x.what == DEALLOCATION and x.user == USER]
        self.withdrawn = {(each.uid, each.version) for each in withdrawn}
        self._forgotten = forgotten(rivalry.claims)

    def collision(self, overlap: Overlap) -> Collision:
        """Return what became of a device in two claims."""
        keys = (overlap.first, overlap.first_since), (overlap.second, overlap.since)
        first, second = (self._writes[key] for key in keys)
        bound = [self._bound_in(overlap, uid) for uid in (overlap.first, overlap.second)]
        return Collision(
            overlap=overlap,
            first=NAMES.get(first.user, first.user),
            second=NAMES.get(second.user, second.user),
            is_withdrawn=(overlap.ended_by, overlap.until) in self.withdrawn,
            both_bound=all(bound),
            second_is_bound=bound[1],
            gap_s=(second.received - first.done).total_seconds(),
            is_forgotten=(overlap.second, overlap.device) in self._forgotten,
        )

    def _bound_in(self, overlap: Overlap, claim: str) -> bool:
        """Return whether the pod of a claim was bound before the overlap ended."""
        return self._bound.get(self._owners[claim], overlap.until) < overlap.until


def _checks_s(
    rivalry: Rivalry, writes: Sequence[ClaimWrite], changes: Sequence[Change]
) -> list[float]:
    """Return for each bind of Berth how long after the answer to its allocation it arrived."""
    allocated = {(x.uid, x.version) for x in changes if x.what == ALLOCATION and x.user == USER}
    done: defaultdict[str, list[ClaimWrite]] = defaultdict(list)
    for write in writes:
        if (write.after.uid, write.after.version) in allocated:
            done[write.after.owner].append(write)
    found = []
    for record in bind_records(rivalry.events):
        before = [x.done for x in done[record.uid] if x.done <= record.time]
        if record.user == USER and record.accepted and before:
            found.append((record.time - before[-1]).total_seconds())
    return found


def judge(rivalry: Rivalry, findings: Findings) -> list[Promise]:
    """Return the promises of Berth where it shares a pool with another scheduler."""
    names = {each.uid: each.name for each in rivalry.claims}

    def describe(each: Collision) -> str:
        overlap = each.overlap
        return (
            f"{'/'.join(overlap.device)} of {names[overlap.first]} was given to "
            f"{names[overlap.second]}"
        )

    late = [x for x in findings.collisions if x.second == BERTH and x.second_is_bound]
    own = findings.between(BERTH, BERTH)
    of_berth = findings.bound[BERTH]
    return [
        Promise(
            "no pod is bound by Berth with a device that an earlier claim holds",
            f"{of_berth} pods bound by Berth",
            [describe(each) for each in late],
        ),
        Promise(
            "Berth gives no device to two of its own pods",
            f"{len(rivalry.claims)} versions of claims replayed",
            [describe(each) for each in own],
        ),
        Promise(
            "each pod is bound once",
            f"{sum(findings.bound.values())} pods",
            check_binds(rivalry.events, user=USER),
        ),
        Promise(
            "both schedulers bind pods",
            f"Berth {of_berth}, kube-scheduler {findings.bound[KUBE_SCHEDULER]}",
            [name for name in (BERTH, KUBE_SCHEDULER) if not findings.bound[name]],
        ),
        Promise("all claims are freed with their pods", "", list(rivalry.left)),
        *_separated(rivalry, findings, describe),
    ]


def _separated(
    rivalry: Rivalry, findings: Findings, describe: Callable[[Collision], str]
) -> Iterator[Promise]:
    if rivalry.contest.separated:
        found = [describe(each) for each in findings.collisions]
        yield Promise("no device of separated pools is in two claims", "", found)
