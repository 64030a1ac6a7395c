"""The plugins that commands such as ``berth explain`` load, without trial and containment."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cache.kept_annotations import OWN_PREFIX
from scheduler.config import ConfigError
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.finding import Found, entry_points, files_of
from scheduler.user_plugins.profile_of_directory import usable_as_they_are

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.interfaces import Plugin


def add_plugin_dir(parser: argparse._ActionsContainer) -> None:
    """Add the flag ``--plugin-dir``, the directory of the configuration's plugins."""
    parser.add_argument(
        "--plugin-dir", metavar="DIR", type=Path, help="directory of the plugins that F names"
    )


def add_kept_annotations(parser: argparse._ActionsContainer) -> None:
    """Add the flag for the annotations that plugins may read."""
    parser.add_argument(
        "--keep-annotations",
        metavar="PREFIX",
        action="append",
        default=[],
        type=_prefix,
        help="keep annotations of pods and nodes with this key prefix, for plugins to read; may "
        f"be repeated ({OWN_PREFIX} always)",
    )


def _prefix(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("an empty prefix would keep every annotation")
    return text


def known_plugins(directory: Path | None) -> Mapping[str, type[Plugin]]:
    """Return every plugin by name: Berth's own, the installed ones, and those of a directory.

    Errors are reported for plugins that a profile names, so an installed plugin that cannot be used
    is only missing here; a file of the directory that cannot be used is an error.

    Raises
    ------
    ConfigError
        When a file of the directory cannot be used.
    """
    catalogue = PluginCatalogue()
    catalogue.replace("entry-point", Found(entry_points()))
    if directory is not None:
        found = files_of(directory)
        catalogue.replace("directory", found)
        names = {str(directory), *found.problems, *(each.name for each in found.sources)}
        for name, why in catalogue.problems.items():
            if name in names:
                raise ConfigError("--plugin-dir", why if name in why else f"{name} {why}")
    return catalogue.plugins


def enabled_names(directory: Path | None, plugins: Mapping[str, type[Plugin]]) -> tuple[str, ...]:
    """Return the plugins of a directory that ``berth run`` would enable without a configuration.

    ``plugins`` is the result of :func:`known_plugins`.
    """
    if directory is None:
        return ()
    return usable_as_they_are(sorted(plugins.keys() - known_plugins(None).keys()), plugins)
