"""Write a journal again with aliases, and prove that each decision comes out as it did.

The journal is read twice: for its words (:class:`~scheduler.journal.aliases.WordCollector`), and to
replace them. In the second pass two replays run side by side, one of the journal and one of the
redacted journal. A decision that comes out of the first as recorded, and of the second the same but
for names and texts, is written as the second one made it: so texts contain aliases without being
searched for names. Of all other decisions, which a replay counts as different or not compared, the
texts are replaced by digests.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plugins.registry import PLUGINS
from scheduler.journal.aliases import Aliases, WordCollector
from scheduler.journal.frames import (
    Header,
    JournalError,
    encode,
    file_name,
    frame,
    header_frame,
    read_frames,
)
from scheduler.journal.redacted_records import (
    DECISIONS,
    hidden,
    mark,
    redacted_record,
    skeleton,
)
from scheduler.journal.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from plugins.framework.interfaces import Plugin
    from scheduler.journal.replay import Decide
    from scheduler.journal.replayed_services import Answers

HIDDEN: Final = "redaction hides what it depends on"
"""Why a decision of a redacted journal is not compared."""

_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_UNREADABLE: Final = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


@dataclass(slots=True)
class RedactionCounts:
    """What a redaction found.

    Attributes
    ----------
    kept
        Decisions that come out of the redacted journal as recorded.
    not_compared
        Those that could not be made again before either, or came out otherwise.
    hidden
        Those that cannot be made again because of the redaction.
    words
        The words that have an alias.
    """

    files: int = 0
    kept: int = 0
    not_compared: int = 0
    hidden: int = 0
    words: int = 0


class _Original(Replay):
    """A replay that tells how the last decision came out.

    Attributes
    ----------
    seen
        With how many of the changes that arrived meanwhile the decision came out equal, or None.
    """

    seen: int | None = None

    def observe(self, record: Sequence[Any]) -> bool:
        """Decide again; return whether the result is the recorded one."""
        self.seen = None
        equal = self.counts.equal
        has_task = self._task is not None
        self.take(record)
        if record[0] == "victims":  # its plan was counted as equal, which it is no longer if not
            return has_task and self.counts.equal == equal
        return self.counts.equal > equal

    def _decide(
        self, then: Any, decide: Decide, answer: Callable[[], Answers]
    ) -> tuple[int | None, Sequence[str], Any]:
        start = len(self._meanwhile or ())

        def try_again() -> Answers:
            self.seen = start - len(self._meanwhile or ())
            return answer()

        found = super()._decide(then, decide, try_again)
        if found[0] is None:
            self.seen = None
        return found


class _Redacted(Replay):
    """A replay that decides once, after as many changes as the original one needed.

    Attributes
    ----------
    seen
        This number.
    now
        What was decided; None if it was not.
    """

    seen: int = 0
    now: Any = None

    def decide(self, record: Sequence[Any], seen: int) -> Any:
        """Decide again; return the form, or None if it was not decided or asks something else."""
        self.seen, self.now = seen, None
        self.take(record)
        return self.now

    def _decide(
        self, then: Any, decide: Decide, answer: Callable[[], Answers]
    ) -> tuple[int | None, Sequence[str], Any]:
        self._see(self.seen)
        answers = answer()
        now = decide()
        self.now = None if answers.others else now
        return 0, (), now


class Redaction:
    """Redact the files of a journal.

    Parameters
    ----------
    key
        Of the digests in aliases. It is not written.
    plugins
        The plugins that profiles may name. Names of users' plugins among them stay as they are.

    Notes
    -----
    *Concurrency*: confined to its owner. *Cost*: that of two replays.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, Header]],
        key: bytes,
        plugins: Mapping[str, type[Plugin]] | None = None,
    ) -> None:
        self.counts = RedactionCounts()
        self._plugins = PLUGINS if plugins is None else plugins
        self._files = files
        self._key = key
        self._has_plan = False

    def write(self, directory: Path) -> RedactionCounts:
        """Write the redacted files into a new or empty directory.

        Raises
        ------
        JournalError
            When a file cannot be read or written. The files that were written by then are complete.
        """
        try:
            directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise JournalError(f"{directory} is not empty")
            aliases = self._aliases()
            self.counts.words = aliases.count
            for path, header in self._files:
                self._write_file(path, header, aliases, directory)
        except OSError as error:
            raise JournalError(f"{directory} cannot be written: {error.strerror}") from error
        return self.counts

    # --- first pass ---------------------------------------------------------------------------

    def _aliases(self) -> Aliases:
        collector = WordCollector(frozenset(self._plugins.keys() - PLUGINS.keys()))
        for path, _ in self._files:
            for records in read_frames(path):
                for record in records:
                    try:
                        self._collect(record, collector)
                    except _UNREADABLE as error:
                        raise _unreadable(path, record, error) from error
        return Aliases(collector, self._key)

    def _collect(self, record: Sequence[Any], collector: WordCollector) -> None:
        redacted_record(record, collector, self._plugins)
        place = DECISIONS.get(record[0])
        if place is not None:
            hidden(record[place], record[0], collector)

    # --- second pass --------------------------------------------------------------------------

    def _write_file(self, path: Path, header: Header, aliases: Aliases, directory: Path) -> None:
        header = msgspec.structs.replace(
            header,
            cluster=aliases.hidden(header.cluster),
            run=aliases.hidden(header.run),
            redacted=True,
        )
        target = directory / file_name(header)
        partial = target.with_suffix(".partial")
        file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
        try:
            with os.fdopen(file, "wb") as out:
                out.write(header_frame(header))
                for records in self._redacted_frames(path, aliases):
                    out.write(frame(encode(records)))
            partial.rename(target)
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise
        self.counts.files += 1

    def _redacted_frames(self, path: Path, aliases: Aliases) -> Iterator[list[Any]]:
        original, redacted = _Original(self._plugins), _Redacted(self._plugins)
        for records in read_frames(path):
            out = []
            for record in records:
                try:
                    out.append(self._redacted(record, original, redacted, aliases))
                except _UNREADABLE as error:
                    raise _unreadable(path, record, error) from error
            yield out

    def _redacted(
        self, record: Sequence[Any], original: _Original, redacted: _Redacted, aliases: Aliases
    ) -> list[Any]:
        what = record[0]
        found = redacted_record(record, aliases, self._plugins)
        if what not in DECISIONS:
            original.take(record)
            redacted.take(found)
            return found
        place = DECISIONS[what]
        found[place] = hidden(record[place], what, aliases)
        if not original.observe(record):
            redacted.settle()
            self._count(what, "not_compared")
            return found
        now = redacted.decide(found, original.seen or 0)
        if now is not None and skeleton(now, what) == skeleton(found[place], what):
            found[place] = now
            self._count(what, "kept")
        else:
            mark(found, HIDDEN)
            self._count(what, "hidden")
        return found

    def _count(self, what: str, outcome: str) -> None:
        """Count a decision; one about a group is counted with its victims."""
        if what == "victims":
            if not self._has_plan or outcome == "kept":
                return
            self.counts.kept -= 1
        setattr(self.counts, outcome, getattr(self.counts, outcome) + 1)
        self._has_plan = what == "plan" and outcome == "kept"


def _unreadable(path: Path, record: Any, error: Exception) -> JournalError:
    if isinstance(error, JournalError):
        return JournalError(f"{path}: {error}")
    kind = record[0] if isinstance(record, list) and record else None
    return JournalError(f"{path}: a record of kind {kind!r}: {type(error).__name__}: {error}")
