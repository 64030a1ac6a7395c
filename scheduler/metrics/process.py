"""Report the standard process metrics of Prometheus clients.

*Source*: Prometheus, "Writing client libraries", process metrics.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from scheduler.metrics.instruments import Pulled
from scheduler.process.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.metrics.instruments import Kind, Registry

    _Read: TypeAlias = Callable[[], Mapping[tuple[str, ...], float]]

_MEMORY_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Of version 2 and 1 of cgroups."""

_NO_LIMIT_BYTES: Final = 1 << 60
"""Version 1 says a number of this order for none."""

_PROC: Final = Path("/proc")

_COLLECTOR: Final = (
    ("collections", "python_gc_collections_total", "Runs of the cyclic garbage collector."),
    ("collected", "python_gc_objects_collected_total", "Objects that it found to be garbage."),
    ("uncollectable", "python_gc_objects_uncollectable_total", "Garbage that it cannot free."),
)


def add_process_metrics(registry: Registry) -> None:
    """Take up what runs here, and what the system and the garbage collector know of it."""
    what: Mapping[tuple[str, ...], float] = {(VERSION, platform.python_version()): 1.0}
    text = "Which version this is; the value is always 1."
    registry.pull(Pulled("gauge", "berth_build_info", text, ("version", "python"), lambda: what))
    text = "Memory that the container may use; absent where there is no limit."
    registry.pull(Pulled("gauge", "berth_memory_limit_bytes", text, (), _memory_limit))
    for kind, name, text, value in _PROCESS:
        registry.pull(Pulled(kind, name, text, (), _read_by(value)))
    for key, name, text in _COLLECTOR:
        registry.pull(Pulled("counter", name, text, ("generation",), _of_collector(key)))


def _memory_limit() -> Mapping[tuple[str, ...], float]:
    """Return the limit of our own cgroup, which a container sees at the top."""
    for file in _MEMORY_LIMITS:
        try:
            limit = int(file.read_text())
        except (OSError, ValueError):
            continue  # another version of cgroups, or "max"
        if limit < _NO_LIMIT_BYTES:
            return {(): float(limit)}
    return {}


def _read_by(value: Callable[[], float]) -> _Read:
    def read() -> Mapping[tuple[str, ...], float]:
        try:
            return {(): value()}
        except (OSError, ValueError, IndexError):
            return {}  # a system without /proc

    return read


def _pages(index: int) -> float:
    """Return bytes of memory, by a column of ``statm``."""
    return float((_PROC / "self/statm").read_text().split()[index]) * resource.getpagesize()


def _started_s() -> float:
    """Return when the process was started, in seconds since 1970."""
    # After the program's name, which may contain anything; see proc_pid_stat(5).
    ticks = float((_PROC / "self/stat").read_text().rpartition(")")[2].split()[19])
    boot = next(
        line.split()[1]
        for line in (_PROC / "stat").read_text().splitlines()
        if line.startswith("btime ")
    )
    return float(boot) + ticks / os.sysconf("SC_CLK_TCK")


_PROCESS: Final[tuple[tuple[Kind, str, str, Callable[[], float]], ...]] = (
    ("counter", "process_cpu_seconds_total", "CPU time of user and system.", time.process_time),
    ("gauge", "process_resident_memory_bytes", "Memory that is resident.", lambda: _pages(1)),
    ("gauge", "process_virtual_memory_bytes", "Memory that is mapped.", lambda: _pages(0)),
    ("gauge", "process_start_time_seconds", "When it started, since 1970.", _started_s),
    (
        "gauge",
        "process_open_fds",
        "File descriptors in use.",
        lambda: float(len(list((_PROC / "self/fd").iterdir()))),
    ),
    (
        "gauge",
        "process_max_fds",
        "File descriptors that it may use.",
        lambda: float(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    ),
)


def _of_collector(key: str) -> _Read:
    return lambda: {
        (str(generation),): float(numbers[key]) for generation, numbers in enumerate(gc.get_stats())
    }
