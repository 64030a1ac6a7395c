"""The commands ``berth replay`` and ``berth journal redact``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cache.kept_annotations import keep_annotations
from scheduler.journal import frames
from scheduler.journal.frames import Header, JournalError
from scheduler.journal.replay import Counts, Replay
from scheduler.journal.replay_text import as_json, as_text
from scheduler.process.log_setup import configure_logging
from scheduler.user_plugins.for_commands import add_kept_annotations, add_plugin_dir, known_plugins

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_EQUAL, _DIFFERENT = 0, 1


def add_journal_commands(commands: Any) -> None:
    """Add the commands to the subparsers ``commands``."""
    replay = commands.add_parser(
        "replay",
        help="decide everything again that a journal holds, and compare",
        description="Without --config: prove that each decision comes out as it was recorded; the "
        "exit status is 1 if one does not.",
    )
    replay.set_defaults(command=_replay)
    replay.add_argument("directory", metavar="DIR", type=Path, help="the journal")
    add_plugin_dir(replay)
    add_kept_annotations(replay)
    replay.add_argument("-o", "--output", choices=("text", "json"), default="text")


def files_in(directory: Path) -> list[tuple[Path, Header]]:
    """Return the files of a journal with their headers, the oldest first.

    Raises
    ------
    JournalError
        When there are none, one cannot be read, or they are of different clusters.
    """
    found = []
    for path in frames.files_of(directory):
        header = frames.read_header(path)
        if header is not None:
            found.append((path, header))
    if not found:
        raise JournalError(f"{directory} holds no journal")
    clusters: dict[str, Path] = {}
    for path, header in found:
        if header.cluster:
            clusters.setdefault(header.cluster, path)
    if len(clusters) > 1:
        named = " and ".join(f"{path.name} of {uid}" for uid, path in list(clusters.items())[:2])
        raise JournalError(f"{directory} holds journals of different clusters: {named}")
    return found


def _replay(options: argparse.Namespace) -> int:
    configure_logging("console", "error")
    keep_annotations(options.keep_annotations)
    files = files_in(options.directory)
    counts = replayed(files, Replay(known_plugins(options.plugin_dir)))
    told = as_json if options.output == "json" else as_text
    sys.stdout.write(told(counts, [header for _, header in files]))
    return _DIFFERENT if counts.different else _EQUAL


def replayed(files: Sequence[tuple[Path, Header]], replay: Replay) -> Counts:
    """Replay files, and return what was found.

    Raises
    ------
    JournalError
        When a file cannot be read; the message names it.
    """
    for path, _ in files:
        try:
            replay.file(frames.read_frames(path))
        except (JournalError, msgspec.DecodeError, msgspec.ValidationError) as error:
            text = str(error)
            raise JournalError(text if str(path) in text else f"{path}: {text}") from error
    return replay.counts
