"""The commands ``berth replay``, ``berth journal redact`` and ``berth journal print``."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cache.kept_annotations import keep_annotations
from scheduler.journal import frames
from scheduler.journal.frames import Header, JournalError
from scheduler.journal.records import OBJECT, TYPES
from scheduler.journal.redaction import Redaction
from scheduler.journal.replay import Counts, Replay
from scheduler.journal.replay_text import as_json, as_text, redaction_text
from scheduler.user_plugins.for_commands import add_kept_annotations, add_plugin_dir, known_plugins

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_EQUAL, _DIFFERENT = 0, 1
_KEY_BYTES, _LEAST_KEY_BYTES = 32, 16


def add_journal_commands(commands: Any) -> argparse.ArgumentParser:
    """Add the commands to the subparsers ``commands``; return the parser of ``berth replay``."""
    replay: argparse.ArgumentParser = commands.add_parser(
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
    journal = commands.add_parser("journal", help="print a journal, or make it fit to be sent")
    verbs = journal.add_subparsers(metavar="COMMAND", required=True)
    redact = verbs.add_parser(
        "redact",
        help="replace names, labels, images and texts by aliases",
        description="The redacted journal is replayed to the same decisions. It still shows "
        "counts, sizes, times and quantities: look through it before you send it.",
    )
    redact.set_defaults(command=_redact)
    redact.add_argument("directory", metavar="DIR", type=Path, help="the journal")
    redact.add_argument(
        "-o", "--output", metavar="NEWDIR", type=Path, required=True, help="a new directory"
    )
    redact.add_argument(
        "--key-file",
        metavar="F",
        type=Path,
        help="at least 16 bytes: the same words get the same digest with the same key; without it, "
        "the key is random and forgotten",
    )
    redact.add_argument(
        "--plugin-dir",
        metavar="DIR",
        type=Path,
        help="directory of the plugins that decided: their names stay, and their decisions are "
        "made again and compared",
    )
    add_kept_annotations(redact)
    show = verbs.add_parser(
        "print",
        help="print all that a journal contains",
        description="One record a line, as JSON; objects as they are stored, digests in base64.",
    )
    show.set_defaults(command=_print)
    show.add_argument("directory", metavar="DIR", type=Path, help="the journal")
    return replay


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


def _print(options: argparse.Namespace) -> int:
    try:
        for path, header in files_in(options.directory):
            _print_line(header)
            for records in frames.read_frames(path):
                for record in records:
                    if record[0] == OBJECT:
                        record = [*record[:2], TYPES[record[2]].__name__, frames.decode(record[3])]
                    _print_line(record)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough, as ``head`` has; Python must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _print_line(told: Any) -> None:
    sys.stdout.write(msgspec.json.encode(told).decode() + "\n")


def _redact(options: argparse.Namespace) -> int:
    keep_annotations(options.keep_annotations)
    files = files_in(options.directory)
    plugins = None if options.plugin_dir is None else known_plugins(options.plugin_dir)
    key = secrets.token_bytes(_KEY_BYTES) if options.key_file is None else _key_in(options.key_file)
    counts = Redaction(files, key, plugins).write(options.output)
    sys.stdout.write(redaction_text(counts, options.output))
    return 0


def _key_in(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error
    if len(key) < _LEAST_KEY_BYTES:
        raise JournalError(f"{path} has {len(key)} bytes; a key has at least {_LEAST_KEY_BYTES}")
    return key


def _replay(options: argparse.Namespace) -> int:
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
