"""The entry points of the group for plugins, with the distributions that they belong to.

The metadata of every installed distribution is read, so it is read once.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import metadata
from typing import Final, NamedTuple

GROUP: Final = "berth.plugins"
"""The group of the entry points for plugins."""


class Installed(NamedTuple):
    """An entry point.

    Attributes
    ----------
    distribution, version
        Of the distribution that has it; empty where there is none.
    """

    entry_point: metadata.EntryPoint
    distribution: str
    version: str


def installed() -> tuple[Installed, ...]:
    """Return all entry points of the group, without importing any."""
    return _installed(tuple(sys.path))


@lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> tuple[Installed, ...]:
    about: dict[int, tuple[str, str]] = {}
    found = []
    for each in metadata.entry_points(group=GROUP):
        if each.dist is None:
            found.append(Installed(each, "", ""))
            continue
        if id(each.dist) not in about:
            said = each.dist.metadata
            about[id(each.dist)] = said["Name"], said["Version"]
        found.append(Installed(each, *about[id(each.dist)]))
    return tuple(found)
