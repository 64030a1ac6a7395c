"""The committed record: for each seed how much was written, and digests of what.

A line is ``seed writes events in-order in-any-order``. The first digest is of every write in its
order; in the second the writes of one step are sorted first. Where only the first one differs, the
same is written after each step, in another order.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.worlds.playing import Played

PATH: Final = Path(__file__).with_name("record.txt")

SEEDS: Final = range(500)


class Entry(NamedTuple):
    """What is recorded of a seed."""

    seed: int
    writes: int
    events: int
    in_order: str
    in_any_order: str

    def __str__(self) -> str:
        return " ".join(map(str, self))

    def differs(self, other: Entry) -> str:
        """Return how another entry of the seed differs, as part of a sentence; "" if not."""
        if self == other:
            return ""
        if self.in_any_order == other.in_any_order:
            return "the same writes after each step, in another order"
        if (self.writes, self.events) == (other.writes, other.events):
            return "as many writes, but others"
        return f"{other.writes} writes ({self.writes}), {other.events} of Events ({self.events})"


def entry_of(played: Played) -> Entry:
    """Return what is to be recorded of a world that was played."""
    writes = [write for _, written in played.steps for write in written]
    events = sum(write.startswith("event ") for write in writes)
    return Entry(
        played.seed,
        len(writes),
        events,
        _digest(played, (written for _, written in played.steps)),
        _digest(played, (tuple(sorted(written)) for _, written in played.steps)),
    )


def _digest(played: Played, writes: Iterable[tuple[str, ...]]) -> str:
    said = hashlib.sha256()
    for (step, _), written in zip(played.steps, writes, strict=True):
        said.update("\n".join((step, *written, "")).encode())
    said.update("\n".join((*played.placements, str(played.has_died))).encode())
    return said.hexdigest()[:16]


def read() -> Mapping[int, Entry]:
    """Return the record, by seed."""
    entries = {}
    for line in PATH.read_text(encoding="utf-8").splitlines():
        seed, writes, events, in_order, in_any_order = line.split()
        entries[int(seed)] = Entry(int(seed), int(writes), int(events), in_order, in_any_order)
    return entries


def write(entries: Iterable[Entry]) -> None:
    """Replace the record."""
    PATH.write_text("".join(f"{entry}\n" for entry in entries), encoding="utf-8")


def differences(entries: Iterable[Entry]) -> list[str]:
    """Return how what was found differs from the record, a line for each seed that does."""
    recorded = read()
    lines = []
    for entry in entries:
        how = recorded[entry.seed].differs(entry)
        if how:
            lines.append(f"world {entry.seed}: {how}")
    return lines


HELP: Final = """\
Look at what a world writes:       python -m tests.worlds show SEED
... and where two checkouts part:  python -m tests.worlds compare CHECKOUT --seeds SEED
If the difference is wanted, say so in the commit and record again: python -m tests.worlds record"""
"""What to do about a difference."""
