"""Report the standard process metrics of Prometheus clients.

*Source*: Prometheus, "Writing client libraries", process metrics.
"""

from __future__ import annotations

import gc
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from scheduler.metrics.instruments import Pulled
from scheduler.process.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client.process_collector import ProcessCollector

    from scheduler.metrics.instruments import Kind, Registry

    _Read: TypeAlias = Callable[[], Mapping[tuple[str, ...], float]]

_MEMORY_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Of version 2 and 1 of cgroups."""

_NO_LIMIT_BYTES: Final = 1 << 60
"""Version 1 says a number of this order for none."""

_PROCESS: Final[tuple[tuple[Kind, str, str], ...]] = (
    ("counter", "process_cpu_seconds_total", "CPU time of user and system."),
    ("gauge", "process_resident_memory_bytes", "Memory that is resident."),
    ("gauge", "process_virtual_memory_bytes", "Memory that is mapped."),
    ("gauge", "process_start_time_seconds", "When it started, since 1970."),
    ("gauge", "process_open_fds", "File descriptors in use."),
    ("gauge", "process_max_fds", "File descriptors that it may use."),
)

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
    for kind, name, text in _PROCESS:
        registry.pull(Pulled(kind, name, text, (), _of_process(name)))
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


def _of_process(name: str) -> _Read:
    def read() -> Mapping[tuple[str, ...], float]:
        for family in _collector().collect():
            for sample in family.samples:
                if sample.name == name:
                    return {(): sample.value}
        return {}

    return read


@cache
def _collector() -> ProcessCollector:
    # With the first scrape: the library imports an HTTP server, which no pod has to wait for.
    from prometheus_client import CollectorRegistry  # noqa: PLC0415
    from prometheus_client.process_collector import ProcessCollector  # noqa: PLC0415

    return ProcessCollector(registry=CollectorRegistry())


def _of_collector(key: str) -> _Read:
    return lambda: {
        (str(generation),): float(numbers[key]) for generation, numbers in enumerate(gc.get_stats())
    }
