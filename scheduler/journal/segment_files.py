"""The files of a journal being written: created, appended, synced, and deleted when old."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Final

from scheduler.journal.frames import JournalError, files_of

if TYPE_CHECKING:
    from pathlib import Path

    from scheduler.journal.options import JournalOptions

_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


class SegmentFiles:
    """Write one file after another into a directory.

    Notes
    -----
    *Concurrency*: one thread, that of the disk. Every method may raise OSError.
    """

    def __init__(self, options: JournalOptions) -> None:
        self._options = options
        self._file = -1
        self._path: Path | None = None
        self._is_synced = True

    def open(self, name: str, content: bytes) -> None:
        """Begin another file, and delete those beyond the bounds."""
        self.close()
        directory = self._options.directory
        directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        path = directory / name
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
        self._path = path
        self.append(content)
        self.sync()
        self._sync_directory(directory)
        self.prune()

    def append(self, content: bytes) -> None:
        """Append to the file."""
        self._is_synced = False
        left = memoryview(content)
        while left:
            left = left[os.write(self._file, left) :]

    def sync(self) -> None:
        """Have everything on the disk that was appended."""
        if not self._is_synced:
            os.fsync(self._file)
            self._is_synced = True

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._file >= 0:
            try:
                self.sync()
            finally:
                os.close(self._file)
                self._file, self._path, self._is_synced = -1, None, True

    def prune(self) -> None:
        """Delete the oldest files until the others are within the bounds."""
        try:
            files = files_of(self._options.directory)
        except JournalError:
            return
        oldest_s = time.time() - self._options.max_age_s
        sizes = {}
        for path in files:
            with contextlib.suppress(OSError):
                told = path.stat()
                sizes[path] = told.st_size, told.st_mtime
        total = sum(size for size, _ in sizes.values())
        for path, (size, changed_s) in sizes.items():
            if path == self._path or (total <= self._options.max_bytes and changed_s >= oldest_s):
                continue
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size

    def _sync_directory(self, directory: Path) -> None:
        file = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
