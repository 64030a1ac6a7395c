"""A cache of trial reports: each source is tried once."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from msgspec.structs import replace

from scheduler.process.version import VERSION
from scheduler.user_plugins.installed import installed
from scheduler.user_plugins.plugin_trial import TrialReport, try_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.user_plugins.plugin_source import PluginSource
    from scheduler.user_plugins.plugin_trial import ClusterCopy, TrialLimits

MAX_KEPT: Final = 256
_OWN_DISTRIBUTION: Final = "berth"

_MIN_BYTES: Final = 64 << 20
"""Below this limit the allocator's own memory (arenas of threads) would count as the plugin's."""

_CGROUP_FILES: Final = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)

log = structlog.get_logger(__name__)


class _Tried(msgspec.Struct):
    """The digests of the sources that this version of Berth has accepted."""

    version: str = VERSION
    accepted: list[str] = []


class Trials:
    """Runs the trials of sources, and stores by digest which sources were accepted.

    Parameters
    ----------
    limits
        The limits of the child process.
    path
        A file with the accepted digests for the next process; None for no file.

    Attributes
    ----------
    cluster
        Returns a copy of the cluster for trials; None if there is no cluster yet.

    Notes
    -----
    *Concurrency*: thread-safe; two threads may try the same source at the same time.
    """

    def __init__(self, limits: TrialLimits, path: Path | None = None) -> None:
        self.cluster: Callable[[], ClusterCopy] | None = None
        self._limits = limits
        self._path = path
        self._lock = threading.Lock()
        self._accepted = _read(path)
        self._own = _own_entry_points()

    def report(self, source: PluginSource) -> TrialReport:
        """Return the trial report of a source; run the trial if it was not accepted before.

        Plugins that are part of Berth are not tried: they were tried before the release.
        """
        if source.kind == "entry-point" and source.name in self._own:
            return TrialReport()
        with self._lock:
            if source.digest in self._accepted:
                return TrialReport()
        copy = None if self.cluster is None else self.cluster()
        # The kernel may kill a whole container because of the memory of one of its processes.
        limits = replace(self._limits, memory_bytes=_within_room(self._limits.memory_bytes))
        report = try_source(source, limits, cluster=copy)
        if report.accepted:
            log.info("plugin code tried", source=str(source), plugins=report.plugins)
            self._accept(source.digest)
        else:
            log.error("plugin code rejected", source=str(source), why=report.problems)
        return report

    def _accept(self, digest: str) -> None:
        with self._lock:
            self._accepted = [*self._accepted[-MAX_KEPT:], digest]
            raw = msgspec.json.encode(_Tried(accepted=self._accepted))
        if self._path is None:
            return
        try:
            self._path.write_bytes(raw)
        except OSError as error:
            log.error("cannot write the trial cache", error=str(error))


def _read(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        tried = msgspec.json.decode(path.read_bytes(), type=_Tried)
    except (OSError, msgspec.DecodeError):
        return []  # another trial costs a second
    return tried.accepted if tried.version == VERSION else []


def cgroup_room_bytes(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the memory that the container may still allocate, or None without a limit."""
    for limit, used in _CGROUP_FILES:
        with contextlib.suppress(OSError, ValueError):
            return max(int((root / limit).read_text()) - int((root / used).read_text()), 0)
    return None


def _within_room(wanted_bytes: int) -> int:
    """Return a memory limit that leaves at least as much memory to the rest of the container."""
    room = cgroup_room_bytes()
    if room is None:
        return wanted_bytes
    return max(min(wanted_bytes, room // 2), min(_MIN_BYTES, wanted_bytes))


def _own_entry_points() -> frozenset[str]:
    return frozenset(
        each.entry_point.name for each in installed() if each.distribution == _OWN_DISTRIBUTION
    )
