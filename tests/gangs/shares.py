"""The schedulers' shares of random cases (``make gangs KIND=placements CONTENDERS=...``).

The cases are those that the planner is held against without an API server. All objects exist
before a scheduler starts; once it has bound nothing for a while, the API server's pods are judged.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.devices.summary import table
from tests.gangs.contenders import BERTH, arena
from tests.gangs.exhaustive import Exhaustive
from tests.gangs.gangs import SCHEDULER_NAME
from tests.gangs.random_gangs import random_case
from tests.gangs.shared_cluster import Tried, Verdicts, judge
from tests.scheduler.pod_groups.groups import default_framework

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rich.console import Console

    from tests.controlplane.server_process import ServerProcess
    from tests.gangs.contenders import Arena, Attempts

_POLL_S: Final = 2.0
_SHOWN: Final = 10


class Patience(NamedTuple):
    """How long a scheduler may take.

    Attributes
    ----------
    quiet_s
        One that has bound nothing for so long is at rest. kube-scheduler goes on trying what it
        refused, but that rarely helps: of 173 gangs that fit it had placed 158 after 35 s, and
        160 after 225 s and 6 000 attempts. Which ones it places differs between runs.
    deadline_s
        The longest time for one scheduler.
    """

    quiet_s: float = 40.0
    deadline_s: float = 600.0


class Share(NamedTuple):
    """What one scheduler did until it was at rest.

    Attributes
    ----------
    last_s
        From its start to the last member that was bound.
    is_quiet
        False when the time was up before it was at rest.
    """

    name: str
    verdicts: Verdicts
    attempts: Attempts
    last_s: float
    is_quiet: bool

    def problems(self) -> list[str]:
        """Return what must not be, for Berth."""
        found = [] if self.is_quiet else ["it did not come to rest"]
        for kind in ("missed", "partial", "impossible", "scattered"):
            cases = getattr(self.verdicts, kind)
            if cases:
                shown = ", ".join(each.name for each in cases[:_SHOWN])
                found.append(f"{len(cases)} {kind} ({shown})")
        return found


def campaign(
    console: Console, names: Sequence[str], cases: int, seed: int, patience: Patience
) -> int:
    """Give so many cases to each scheduler; return 0 when Berth places those that fit, else 1."""
    tried = cases_of(seed, cases)
    shares = []
    for name in names:
        with arena(name) as place:
            shares.append(_play(tried, place, patience))
        console.print(f"{name}: {len(shares[-1].verdicts.whole)} placed", highlight=False)
    fits = sum(each.fits for each in tried)
    console.print(
        f"seed {seed}: {len(tried)} cases, {fits} fit; {cases - len(tried)} with a preferred "
        "topology, which PodGroups of scheduling.k8s.io cannot have, left out",
        highlight=False,
    )
    console.print(_rows(tried, shares))
    for share in shares:
        console.print(f"{share.name}: {'; '.join(share.problems()) or 'all as searched'}")
    return int(any(share.problems() for share in shares if share.name == BERTH))


def cases_of(seed: int, count: int) -> list[Tried]:
    """Return the cases of :func:`tests.gangs.placements.campaign` that every scheduler can get."""
    framework, tried = default_framework(), []
    for index in range(count):
        case = random_case(seed * 1_000_000 + index)
        if not case.rules.preferred_topology_key:
            tried.append(Tried(f"case-{index}", case, Exhaustive(framework, case).fits()))
    return tried


def _play(tried: Sequence[Tried], place: Arena, patience: Patience) -> Share:
    objects = [manifest for each in tried for manifest in each.objects()]
    for wave in ({"Namespace", "Node"}, {"Pod", "PodGroup"}):
        place.api.create_many(each for each in objects if each["kind"] in wave)
    with place.running() as process:
        is_quiet, last_s = _wait_for_rest(place, process, patience)
        attempts = place.attempts()
    return Share(place.name, judge(tried, _bound(place)), attempts, last_s, is_quiet)


def _wait_for_rest(place: Arena, process: ServerProcess, patience: Patience) -> tuple[bool, float]:
    """Return whether it has bound pods and then none for a while, and when the last one."""
    begun_s = last_s = now_s = time.monotonic()
    count = 0
    while process.running and now_s - begun_s < patience.deadline_s:
        time.sleep(_POLL_S)
        now_s = time.monotonic()
        bound = len(_bound(place))
        if bound > count:
            count, last_s = bound, now_s
        if count and now_s - last_s > patience.quiet_s:
            return True, last_s - begun_s
    return False, last_s - begun_s


def _bound(place: Arena) -> list[dict[str, Any]]:
    selector = f"spec.schedulerName={SCHEDULER_NAME},spec.nodeName!="
    return place.api.list_all("/api/v1/pods", fieldSelector=selector)


def _rows(tried: Sequence[Tried], shares: Sequence[Share]) -> object:
    fits = sum(each.fits for each in tried)
    made = table(right=tuple(range(1, len(shares) + 1)))
    made.add_row("", *(share.name for share in shares), style="bright_black")
    whole = [len(share.verdicts.whole) for share in shares]
    made.add_row("placed, of those that fit", *(f"{n} ({n / max(fits, 1):.1%})" for n in whole))
    made.add_row("not placed, though they fit", *(str(len(x.verdicts.missed)) for x in shares))
    made.add_row("partial", *(str(len(x.verdicts.partial)) for x in shares))
    wrong = (len(x.verdicts.impossible) for x in shares)
    made.add_row("placed, though they do not fit", *map(str, wrong))
    made.add_row("not in one domain", *(str(len(x.verdicts.scattered)) for x in shares))
    made.add_row("from the start to the last binding, s", *(f"{x.last_s:.0f}" for x in shares))
    made.add_row("attempts for groups", *(f"{x.attempts.total:.0f}" for x in shares))
    fit = Counter(note for each in tried if each.fits for note in each.case.notes)
    missed = [Counter(note for e in x.verdicts.missed for note in e.case.notes) for x in shares]
    for note, count in sorted(fit.items()):
        made.add_row(f"not placed, of {count} with: {note}", *(str(x[note]) for x in missed))
    return made
