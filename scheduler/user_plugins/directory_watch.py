"""Watches a plugin directory and updates the catalogue when its files change."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import structlog

from scheduler.user_plugins.finding import files_of, stamp_of

if TYPE_CHECKING:
    from pathlib import Path

    from scheduler.user_plugins.catalogue import PluginCatalogue

log = structlog.get_logger(__name__)

INTERVAL_S: Final = 0.5
"""The interval in which the files' metadata is read. Not inotify: a ConfigMap is a swapped symlink,
and a network file system sends no notifications."""


class DirectoryWatch:
    """Checks the files periodically, on its own thread.

    Parameters
    ----------
    directory
        The directory of the files; it may be missing for a while.
    catalogue
        The catalogue that receives the files.

    Notes
    -----
    *Concurrency*: :meth:`start` and :meth:`stop` from one thread, :meth:`look` before the start.
    """

    def __init__(
        self, directory: Path, catalogue: PluginCatalogue, interval_s: float = INTERVAL_S
    ) -> None:
        self._directory = directory
        self._catalogue = catalogue
        self._interval_s = interval_s
        self._stamp: object = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self) -> bool:
        """Update the catalogue if a file has changed; return whether one had."""
        stamp = stamp_of(self._directory)
        if stamp == self._stamp:
            return False
        # Read before the files: the next check sees a change that happens meanwhile.
        self._stamp = stamp
        self._catalogue.replace("directory", files_of(self._directory))
        return True

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="plugin-dir", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; wait for a running check, at most two seconds."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(2.0)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            try:
                self.look()
            except Exception:
                # In any case the current plugins keep running.
                log.exception("cannot read the plugin directory", directory=str(self._directory))
