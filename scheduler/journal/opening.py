"""Make the journal of a scheduler, with its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.journal.recorder import Journal
from scheduler.journal.writer import JournalWriter

if TYPE_CHECKING:
    from scheduler.journal.options import JournalOptions
    from scheduler.metrics import Metrics
    from scheduler.metrics.declarations import State

DECISIONS: Final[State] = (
    "counter",
    "berth_journal_decisions_total",
    "Decisions recorded in the journal.",
    (),
)
BYTES: Final[State] = (
    "counter",
    "berth_journal_bytes_total",
    "Bytes of the journal, as written to its files.",
    (),
)
GAPS: Final[State] = (
    "counter",
    "berth_journal_gaps_total",
    "Gaps in the journal: the disk was too slow or failed, an entry could not be encoded, or too "
    "many entries waited.",
    (),
)
ENDED: Final[State] = (
    "gauge",
    "berth_journal_ended",
    "Whether the journal has ended because entries were lost; it begins again at the next start.",
    (),
)


def open_journal(
    options: JournalOptions, seed: int | None, metrics: Metrics
) -> tuple[Journal, JournalWriter]:
    """Return the journal, and what writes it once it is started."""
    journal = Journal(seed, options.pending_records)
    writer = JournalWriter(journal, options)
    metrics.watch(DECISIONS, lambda: writer.decisions)
    metrics.watch(BYTES, lambda: writer.bytes)
    metrics.watch(GAPS, lambda: writer.gaps)
    metrics.watch(ENDED, lambda: float(journal.is_over))
    return journal, writer
