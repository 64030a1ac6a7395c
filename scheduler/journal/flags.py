"""The flags of ``berth run`` about the journal."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from scheduler.config import ConfigError
from scheduler.journal.options import MIB, SEGMENT_BYTES, SEGMENT_S, JournalOptions

_DEFAULT: Final = JournalOptions(Path())
_PARTS: Final = 8
"""A journal has at least so many files, so that deleting the oldest one leaves most of it."""


def add_journal_flags(run: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = run.add_argument_group("journal")
    group.add_argument(
        "--journal",
        metavar="DIR",
        type=Path,
        help="record what is known and decided in files of this directory, for berth replay",
    )
    group.add_argument(
        "--journal-max-size",
        metavar="MIB",
        type=_positive,
        default=_DEFAULT.max_bytes // MIB,
        help="the oldest files are deleted beyond this size (%(default)s)",
    )
    group.add_argument(
        "--journal-max-age",
        metavar="SECONDS",
        type=_positive,
        default=int(_DEFAULT.max_age_s),
        help="and those that are older (%(default)s)",
    )


def journal_options(flags: argparse.Namespace) -> JournalOptions | None:
    """Return what the flags say; None for no journal.

    Raises
    ------
    ConfigError
        When the directory cannot be used.
    """
    directory: Path | None = flags.journal
    if directory is None:
        return None
    if directory.exists() and not directory.is_dir():
        raise ConfigError("--journal", f"{directory} is not a directory")
    max_bytes = flags.journal_max_size * MIB
    max_age_s = float(flags.journal_max_age)
    return JournalOptions(
        directory,
        max_bytes,
        max_age_s,
        min(SEGMENT_BYTES, max_bytes // _PARTS),
        min(SEGMENT_S, max_age_s / _PARTS),
    )


def _positive(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
