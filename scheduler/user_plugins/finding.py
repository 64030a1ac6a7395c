"""Finds plugin sources: installed entry points, and the files of a plugin directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Final

from scheduler.user_plugins.loading import GROUP
from scheduler.user_plugins.plugin_source import PluginSource, digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_BYTES: Final = 1 << 20
"""Of one file: as much as a ConfigMap holds."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one look found.

    Parameters
    ----------
    sources
        In order of their names.
    problems
        By name of the source, why it cannot be read.
    """

    sources: tuple[PluginSource, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)


def entry_points() -> tuple[PluginSource, ...]:
    """Return one source for each entry point that is installed, without importing any.

    The digest stands for the version of the distribution that brings it.
    """
    sources: dict[str, PluginSource] = {}
    for each in metadata.entry_points(group=GROUP):
        version = "" if each.dist is None else f"{each.dist.name} {each.dist.version}"
        digest = digest_of(f"{each.value} {version}".encode())
        sources.setdefault(each.name, PluginSource("entry-point", each.name, digest))
    return tuple(sources[name] for name in sorted(sources))


def files_of(directory: Path) -> Found:
    """Return one source for each ``*.py`` of a directory, but for names with ``.`` or ``_`` first.

    Folders in it are not looked into: a mounted ConfigMap keeps its past in some.
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
    """Return what changes when a file of the directory does; equal if nothing did.

    *Cost*: one look at each file's metadata.
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
