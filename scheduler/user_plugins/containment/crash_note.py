"""The crash note: a file that names the running plugin call and survives the process.

The note is a memory page that is mapped to a file: its content is in the file even if the process
is killed in the next moment, and writing a word takes a tenth of a microsecond. Words are 64 bits
wide:

    0          1                2          3         4...
    magic      plugin and       number of  verdict   one record for each plugin:
               method           the call             digest (64 bytes), name (192 bytes)
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import TYPE_CHECKING, Final

from cache.value import Value

if TYPE_CHECKING:
    from pathlib import Path

POINTS: Final = ("filter", "filter_one", "score", "score_one", "signature", "other")
"""The plugin methods, in the order of their numbers in the note."""

_MAGIC: Final = int.from_bytes(b"berthn01", "little")
_SIZE: Final = 64 * 1024
_RECORDS_AT: Final = 64
_RECORD: Final = 256
_DIGEST: Final = 64
_MAX_PLUGINS: Final = (_SIZE - _RECORDS_AT) // _RECORD
_NO_RECORD: Final = _MAX_PLUGINS
"""The number of all plugins for which no record was free; their calls are counted as well."""

_HUNG: Final = 1
_ENDED: Final = 2


class StateDirError(Exception):
    """The state directory cannot be used; the message states the reason."""


class AtWork(Value, frozen=True):
    """A plugin call that has begun and has not ended.

    Parameters
    ----------
    number
        The number of the call, counted from the start of the process.
    hung
        Whether the watchdog ended the process because the call took too long.
    """

    plugin: str
    digest: str
    point: str
    number: int
    hung: bool = False


class Note:
    """The crash note of this process.

    Parameters
    ----------
    path
        The file; None for a note that ends with the process.

    Attributes
    ----------
    before
        The call that was running when the previous process ended; None if there was none.

    Raises
    ------
    StateDirError
        When the file cannot be written, or another process uses it.

    Notes
    -----
    *Concurrency*: :meth:`begin` and :meth:`end` on the scheduling thread; the rest on any thread.
    """

    def __init__(self, path: Path | None) -> None:
        self.before: AtWork | None = None
        self._file: int | None = None
        if path is None:
            self._page = mmap.mmap(-1, _SIZE)
        else:
            self._page = self._map(path)
            self.before = self.at_work()
            self._page[:] = bytes(_SIZE)
        self._words = memoryview(self._page).cast("Q")
        self._words[0] = _MAGIC
        self._records: list[tuple[str, str]] = []

    def _map(self, path: Path) -> mmap.mmap:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, _SIZE)
            return mmap.mmap(self._file, _SIZE)
        except BlockingIOError as error:
            raise StateDirError(f"{path}: another process is using it") from error
        except OSError as error:
            raise StateDirError(f"{path}: {error.strerror}") from error

    def enroll(self, plugin: str, digest: str) -> int:
        """Return the number of a plugin for :meth:`begin`."""
        entry = (plugin, digest)
        if entry in self._records:
            return self._records.index(entry)
        slot = len(self._records)
        if slot >= _MAX_PLUGINS:
            return _NO_RECORD
        self._records.append(entry)
        at = _RECORDS_AT + slot * _RECORD
        name = plugin.encode()[: _RECORD - _DIGEST]
        self._page[at : at + _RECORD] = digest.encode()[:_DIGEST].ljust(_DIGEST, b"\0") + (
            name.ljust(_RECORD - _DIGEST, b"\0")
        )
        return slot

    def begin(self, slot: int, point: int) -> int:
        """Record that a call begins; return the call that was running before, for :meth:`end`.

        Parameters
        ----------
        slot
            The number from :meth:`enroll`.
        point
            An index into :data:`POINTS`.
        """
        words = self._words
        before = words[1]
        words[2] += 1
        words[1] = slot * len(POINTS) + point + 1
        return before

    def end(self, before: int) -> None:
        """Record that a call has ended."""
        self._words[1] = before

    def at_work(self) -> AtWork | None:
        """Return the running call, or None."""
        page = self._page
        magic, who, number, verdict = (
            int.from_bytes(page[at : at + 8], "little") for at in (0, 8, 16, 24)
        )
        if magic != _MAGIC or not who or verdict == _ENDED:
            return None
        slot, point = divmod(who - 1, len(POINTS))
        if slot >= _MAX_PLUGINS:
            return AtWork("", "", POINTS[point], number, verdict == _HUNG)
        at = _RECORDS_AT + slot * _RECORD
        digest = page[at : at + _DIGEST].rstrip(b"\0").decode(errors="replace")
        name = page[at + _DIGEST : at + _RECORD].rstrip(b"\0").decode(errors="replace")
        return AtWork(name, digest, POINTS[point], number, verdict == _HUNG)

    def calls(self) -> int:
        """Return the number of calls that have begun."""
        return self._words[2]

    def give_up(self) -> None:
        """Record that the process is ended because the running call does not return."""
        self._words[3] = _HUNG

    def close(self) -> None:
        """Record that the process shut down normally, and close the file.

        A call that is still running may continue to write; these writes are not read.
        """
        self._words[3] = _ENDED
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = None
