"""What a replay found, as text and as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scheduler.journal.frames import Header
    from scheduler.journal.redaction import RedactionCounts
    from scheduler.journal.replay import Counts, Difference

_SHOWN: Final = 5

_FIELDS: Final = (
    "node",
    "score",
    "feasible nodes",
    "evaluated nodes",
    "status",
    "nominated node",
    "preemption asked",
    "budget",
    "diagnosis",
)
_PLAN_FIELDS: Final = (
    "verdict",
    "status",
    "fitting",
    "counted",
    "domain",
    "preferred domain",
    "placed",
    "refused",
)


def as_text(counts: Counts, headers: Sequence[Header]) -> str:
    """Return what a replay found, for people."""
    lines = [_about(headers), ""]
    lines.append(f"{counts.decisions:>9} decisions, {counts.groups} of them about groups")
    lines.append(f"{counts.equal:>9} came out equal: node, score and diagnosis")
    if counts.reordered:
        lines.append(
            f"{counts.reordered:>9} of these saw a change that arrived while they were made"
        )
    lines.append(f"{counts.different:>9} came out otherwise")
    for why, number in sorted(counts.not_compared.items()):
        lines.append(f"{number:>9} were not compared: {why}")
    for each in counts.differences[:_SHOWN]:
        lines += ["", *_difference(each)]
    return "\n".join([*lines, ""])


def _about(headers: Sequence[Header]) -> str:
    first, last = headers[0], headers[-1]
    began = datetime.fromtimestamp(first.began_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    runs = len({header.run for header in headers})
    lost = sum(header.lost for header in headers)
    text = f"journal of cluster {last.cluster or 'unknown'}, from {began}: "
    text += f"{len(headers)} files of {runs} processes, berth {last.berth}"
    if first.redacted:
        text += ", redacted"
    return text + (f"\n{lost} records are missing in gaps" if lost else "")


def _difference(difference: Difference) -> list[str]:
    lines = [f"decision {difference.number}: {difference.about}"]
    fields = _FIELDS if len(difference.then) == len(_FIELDS) else _PLAN_FIELDS
    if len(difference.then) != len(difference.now) or len(difference.then) != len(fields):
        return [*lines, f"  then {difference.then}", f"  now  {difference.now}"]
    for name, then, now in zip(fields, difference.then, difference.now, strict=True):
        if then != now:
            lines += [f"  {name}: {then!r} then", f"  {' ' * len(name)}  {now!r} now"]
    return lines + [f"  {other}" for other in difference.others]


def as_json(counts: Counts, headers: Sequence[Header]) -> str:
    """Return what a replay found as one JSON object in a line."""
    told: dict[str, Any] = {
        "cluster": headers[-1].cluster,
        "berth": headers[-1].berth,
        "files": len(headers),
        "lost": sum(header.lost for header in headers),
        "decisions": counts.decisions,
        "groups": counts.groups,
        "placed": counts.placed,
        "equal": counts.equal,
        "reordered": counts.reordered,
        "different": counts.different,
        "notCompared": counts.not_compared,
        "differences": [
            {
                "decision": each.number,
                "about": each.about,
                "then": _readable(each.then),
                "now": _readable(each.now),
                "others": list(each.others),
            }
            for each in counts.differences
        ],
    }
    return msgspec.json.encode(told).decode() + "\n"


def redaction_text(counts: RedactionCounts, directory: Path) -> str:
    """Return what a redaction found, for people."""
    lines = [
        f"{counts.files} files with {counts.words} aliases in {directory}",
        "",
        f"{counts.kept:>9} decisions come out of them as they came out of the journal",
        f"{counts.not_compared:>9} could not be compared before, or came out otherwise: "
        "their texts are hidden",
        f"{counts.hidden:>9} cannot be compared any more: the redaction hides what they depend on",
        "",
        "Counts, sizes, times and quantities are still there: look through it before you send it.",
    ]
    return "\n".join([*lines, ""])


def _readable(form: Any) -> Any:
    if isinstance(form, list):
        return [_readable(each) for each in form]
    return form.hex() if isinstance(form, bytes) else form
