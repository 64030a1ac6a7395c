"""The flag ``--config`` of ``berth replay``: what another policy would have done."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cache.kept_annotations import MIRROR_ANNOTATION, keep_annotations
from scheduler.config import ConfigError, load_config, running_profiles
from scheduler.journal.command import files_in
from scheduler.journal.frames import JournalError, read_frames
from scheduler.policy_replay.replay import PolicyReplay
from scheduler.policy_replay.report import as_json, report_of
from scheduler.policy_replay.text_form import as_text
from scheduler.user_plugins.for_commands import known_plugins

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from scheduler.journal.frames import Header

PROGRESS_EVERY_S: Final = 5.0


def add_policy_flags(replay: argparse.ArgumentParser) -> None:
    """Add ``--config`` to the parser of ``berth replay``."""
    without = replay.get_default("command")
    replay.add_argument(
        "--config",
        metavar="NEW",
        type=Path,
        help="tell what this configuration would have done with what the journal recorded",
    )
    replay.set_defaults(
        command=lambda options: without(options) if options.config is None else _replay(options)
    )


def _replay(options: argparse.Namespace) -> int:
    keep_annotations([*options.keep_annotations, MIRROR_ANNOTATION])
    plugins = known_plugins(options.plugin_dir)
    config = load_config(options.config, plugins)
    if config.extenders:
        sys.stderr.write("berth: the extenders of the configuration are not called\n")
    files = files_in(options.directory)
    try:
        replay = PolicyReplay(running_profiles(config, plugins), plugins)
        run(replay, files, Progress(len(files), replay))
        report = report_of(replay, [header for _, header in files], str(options.config))
    except ConfigError as error:
        raise ConfigError(error.path, error.why, source=str(options.config)) from error
    sys.stdout.write((as_json if options.output == "json" else as_text)(report))
    return 0


def run(
    replay: PolicyReplay, files: Sequence[tuple[Path, Header]], progress: Callable[[int], object]
) -> None:
    """Replay all files.

    Parameters
    ----------
    progress
        Called often, with the number of the file.

    Raises
    ------
    JournalError
        When a file cannot be read; the message names it.
    """
    for number, (path, _) in enumerate(files, 1):

        def frames(path: Path = path, number: int = number) -> Iterator[list[Any]]:
            for records in read_frames(path):
                progress(number)
                yield records

        try:
            replay.file(frames())
        except (JournalError, msgspec.DecodeError, msgspec.ValidationError) as error:
            text = str(error)
            raise JournalError(text if str(path) in text else f"{path}: {text}") from error


class Progress:
    """Says on standard error how far a replay is, if it takes longer than some seconds."""

    def __init__(
        self, files: int, replay: PolicyReplay, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files = files
        self._replay = replay
        self._clock = clock
        self._told_s = clock()

    def __call__(self, number: int) -> None:
        """Say it if it is time."""
        now_s = self._clock()
        if now_s - self._told_s >= PROGRESS_EVERY_S:
            self._told_s = now_s
            decisions = self._replay.decisions
            sys.stderr.write(f"berth: {decisions} decisions, file {number} of {self._files}\n")
