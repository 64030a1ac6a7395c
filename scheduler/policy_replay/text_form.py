"""The text form of a comparison of two policies over a journal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scheduler.policy_replay.packing import Packing
    from scheduler.policy_replay.report import OpenLoopReport, PackingReport, PolicyReport
    from scheduler.policy_replay.tally import ProfileReport, Quantiles, SideReport

MAX_ZONES: Final = 10
MAX_MOVES: Final = 5
MAX_PRIORITIES: Final = 5

_NO_ZONE: Final = "(no zone)"
_NOBODY: Final = "no node"


def as_text(report: PolicyReport) -> str:
    """Return lines for a terminal."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: PolicyReport) -> Iterator[str]:
    journal = report.journal
    yield f"{report.config} instead of the policy of then: {_count(journal.decisions, 'decision')}"
    yield f"  from {_time(journal.began_s)} to {_time(journal.ended_s)}"
    if journal.lost:
        yield f"  {_count(journal.lost, 'record')} are missing in gaps"
    if journal.not_exact:
        yield f"  {journal.not_exact} of them were not made again exactly by the policy of then"
    for name, number in sorted(report.unserved.items()):
        yield f"  {report.config} has no profile {name}: its pods stay where they were"
        yield f"  ({_count(number, 'decision')})"
    for profile in report.profiles:
        yield ""
        yield from _profile_lines(profile)
    yield ""
    yield from _packing_lines(report.packing)
    for each in report.open_loop:
        yield ""
        yield from _open_loop_lines(each)


def _table(title: str, rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Yield rows with what was then and what is now, in columns."""
    head = (title, "then", "now")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
    for name, then, now in (head, *rows):
        yield f"{name:{widths[0]}}  {then:>{widths[1]}}  {now:>{widths[2]}}".rstrip()


# --- pods -------------------------------------------------------------------------------------


def _profile_lines(profile: ProfileReport) -> Iterator[str]:
    then, now = profile.then, profile.now
    rows = [
        ("placed", str(then.placed), str(now.placed)),
        ("refused", str(then.refused), str(now.refused)),
        *_zone_rows(then, now),
        ("pods evicted for them", str(then.victims), str(now.victims)),
        *_priority_rows(then, now),
        ("waited, median", _seconds(then.waiting_s.p50), _seconds(now.waiting_s.p50)),
        ("waited, p99", _seconds(then.waiting_s.p99), _seconds(now.waiting_s.p99)),
        ("waited, longest", _seconds(then.waiting_s.max), _seconds(now.waiting_s.max)),
        ("decisions measured", str(then.cycle_ms.count), str(now.cycle_ms.count)),
        ("decision here, median", _millis(then.cycle_ms, "p50"), _millis(now.cycle_ms, "p50")),
        ("decision here, p99", _millis(then.cycle_ms, "p99"), _millis(now.cycle_ms, "p99")),
    ]
    yield from _table(f"{_count(profile.pods, 'pod')} of profile {profile.profile}", rows)
    yield ""
    both = profile.moved + profile.same_node
    yield f"  {profile.moved} of {both} placed by both would be on another node"
    if profile.permit_waits:
        yield (
            f"  Permit plugins would have held pods {_count(profile.permit_waits, 'time')}: these "
            "count as placed at once"
        )
    if profile.only_then or profile.only_now:
        yield f"  {profile.only_then} placed only then, {profile.only_now} placed only now"
    for move in profile.moves[:MAX_MOVES]:
        yield f"  {move.pod}: {move.then or _NOBODY} -> {move.now or _NOBODY}"
    left = profile.moved + profile.only_then + profile.only_now - MAX_MOVES
    if left > 0:
        yield f"  and {left} more"


def _zone_rows(then: SideReport, now: SideReport) -> list[tuple[str, str, str]]:
    zones = sorted(then.zones.keys() | now.zones.keys())
    if zones in ([], [""]):
        return []
    rows = [
        (f"  in {zone or _NO_ZONE}", str(then.zones.get(zone, 0)), str(now.zones.get(zone, 0)))
        for zone in zones[:MAX_ZONES]
    ]
    left = len(zones) - MAX_ZONES
    return [*rows, (f"  and {left} more zones", "", "")] if left > 0 else rows


def _priority_rows(then: SideReport, now: SideReport) -> list[tuple[str, str, str]]:
    was, is_now = then.victim_priorities, now.victim_priorities
    priorities = sorted(was.keys() | is_now.keys())
    rows = [
        (f"  of priority {each}", str(was.get(each, 0)), str(is_now.get(each, 0)))
        for each in priorities[:MAX_PRIORITIES]
    ]
    left = len(priorities) - MAX_PRIORITIES
    return [*rows, (f"  and {left} more priorities", "", "")] if left > 0 else rows


# --- nodes ------------------------------------------------------------------------------------


def _packing_lines(packing: PackingReport) -> Iterator[str]:
    yield from _table("Nodes at the end", _packing_rows(packing.then, packing.now))
    if packing.mean_then is not None and packing.mean_now is not None:
        yield ""
        rows = _packing_rows(packing.mean_then, packing.mean_now)
        yield from _table("Nodes on average", rows)


def _packing_rows(then: Packing, now: Packing) -> list[tuple[str, str, str]]:
    rows = [
        ("nodes", _amount(then.nodes), _amount(now.nodes)),
        ("used", _amount(then.used), _amount(now.used)),
        ("empty", _amount(then.nodes - then.used), _amount(now.nodes - now.used)),
    ]
    for what, was, is_now in (
        ("requested on used nodes", then.requested, now.requested),
        ("fragmented", then.fragmented, now.fragmented),
    ):
        rows += [
            (f"{name} {what}", _share(was.get(name, 0.0)), _share(is_now.get(name, 0.0)))
            for name in was | is_now
        ]
    return rows


def _open_loop_lines(each: OpenLoopReport) -> Iterator[str]:
    yield f"Each decision of {each.profile} by itself, in the cluster as it was recorded:"
    yield (
        f"  {each.decisions} compared, {each.same} the same, {each.other_node} another node, "
        f"{each.only_then} placed only then, {each.only_now} only now"
    )


# --- values -----------------------------------------------------------------------------------


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


def _millis(quantiles: Quantiles, name: str) -> str:
    value: float = getattr(quantiles, name)
    return f"{value:.2f} ms" if quantiles.count else "-"


def _amount(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.1f}"


def _share(value: float) -> str:
    return f"{value:.1%}"
