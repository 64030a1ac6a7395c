"""Finds plugin sources: installed entry points, and the files of a plugin directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cache.value import Value
from scheduler.user_plugins.installed import installed
from scheduler.user_plugins.plugin_source import PluginSource, digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_BYTES: Final = 1 << 20
"""The largest size of a file: that of a ConfigMap."""


class Found(Value, frozen=True):
    """The sources that one search found.

    Parameters
    ----------
    sources
        The sources, sorted by name.
    problems
        The reasons why sources cannot be read, by name of the source.
    """

    sources: tuple[PluginSource, ...] = ()
    problems: Mapping[str, str] = msgspec.field(default_factory=dict)


def entry_points() -> tuple[PluginSource, ...]:
    """Return one source for each installed entry point, without importing any.

    The digest represents the version of the distribution of the entry point.
    """
    sources: dict[str, PluginSource] = {}
    for each in installed():
        name, value = each.entry_point.name, each.entry_point.value
        version = f"{each.distribution} {each.version}" if each.distribution else ""
        digest = digest_of(f"{value} {version}".encode())
        sources.setdefault(name, PluginSource("entry-point", name, digest))
    return tuple(sources[name] for name in sorted(sources))


def files_of(directory: Path) -> Found:
    """Return one source for each ``*.py`` of a directory, except ``.*`` and ``_*``.

    Subdirectories are not read: a mounted ConfigMap stores its old versions in some.
    """
    try:
        paths = sorted(
            path
            for path in directory.iterdir()
            if path.suffix == ".py" and path.name[0] not in "._"
        )
    except OSError as error:
        return Found(problems={str(directory): f"cannot be read: {error.strerror}"})
    sources, problems = [], {}
    for path in paths:
        try:
            sources.append(_of_file(path))
        except (OSError, ValueError) as error:
            told = error.strerror if isinstance(error, OSError) else str(error)
            problems[str(path)] = f"cannot be read: {told}"
    return Found(tuple(sources), problems)


def stamp_of(directory: Path) -> object:
    """Return a value that changes when a file of the directory changes, and is equal otherwise.

    *Cost*: reads the metadata of each file.
    """
    stamps = []
    try:
        for path in sorted(directory.iterdir()):
            if path.suffix == ".py":
                stat = path.stat()
                stamps.append((path.name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    except OSError as error:
        return f"cannot be read: {error.errno}"
    return tuple(stamps)


def _of_file(path: Path) -> PluginSource:
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    return PluginSource("directory", str(path), digest_of(raw), text)
