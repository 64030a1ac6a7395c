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
"""How often the files' metadata is looked at. Not inotify: a ConfigMap is a swapped symlink, and a
network's file system tells nobody."""


class DirectoryWatch:
    """Looks at the files again and again, on a thread of its own.

    Parameters
    ----------
    directory
        Where the files are; it may be missing for a while.
    catalogue
        Gets the files that are there.

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
        """Take over the files if any has changed; return whether any had."""
        stamp = stamp_of(self._directory)
        if stamp == self._stamp:
            return False
        # Taken before the files are read: what changes meanwhile is seen by the next look.
        self._stamp = stamp
        self._catalogue.replace("directory", files_of(self._directory))
        return True

    def start(self) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._run, name="plugin-dir", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Cease to look, once the look under way is over or two seconds have passed."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(2.0)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            try:
                self.look()
            except Exception:
                # Whatever it is, the plugins that run go on running.
                log.exception("cannot look at the plugin directory", directory=str(self._directory))
