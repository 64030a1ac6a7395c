"""Define where a journal is written, and how much of it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.value import Value

if TYPE_CHECKING:
    from pathlib import Path

MIB: Final = 1 << 20

SEGMENT_BYTES: Final = 64 * MIB
"""Of one file. It begins with a checkpoint, which takes some 3 MiB with 5 000 nodes and 20 000
pods."""

SEGMENT_S: Final = 3600.0
"""After which another file is begun."""

PENDING_BYTES: Final = 64 * MIB
"""Encoded records that may wait for the disk; what comes beyond is a gap."""

PENDING_RECORDS: Final = 400_000
"""Records that may wait to be encoded; beyond it the journal ends until the next start."""


class JournalOptions(Value, frozen=True):
    """Where a journal is written, and how much of it is kept.

    Attributes
    ----------
    directory
        Created if it does not exist; its files are readable by their owner only.
    max_bytes, max_age_s
        The oldest files are deleted beyond it. The file being written stays.
    segment_bytes, segment_s
        Size and age beyond which another file is begun.
    """

    directory: Path
    max_bytes: int = 1024 * MIB
    max_age_s: float = 24 * 3600.0
    segment_bytes: int = SEGMENT_BYTES
    segment_s: float = SEGMENT_S
    pending_bytes: int = PENDING_BYTES
    pending_records: int = PENDING_RECORDS
