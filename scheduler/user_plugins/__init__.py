"""Plugins of users: where their code is found, how it is loaded, and which there are."""

from scheduler.user_plugins.catalogue import Admit, GuardFor, PluginCatalogue
from scheduler.user_plugins.directory_watch import DirectoryWatch
from scheduler.user_plugins.finding import Found, entry_points, files_of
from scheduler.user_plugins.for_commands import (
    add_kept_annotations,
    add_plugin_dir,
    enabled_names,
    known_plugins,
)
from scheduler.user_plugins.loading import PluginLoadError, load_source
from scheduler.user_plugins.new_plugin import add_new_command
from scheduler.user_plugins.plugin_source import PluginSource
from scheduler.user_plugins.profile_of_directory import usable_as_they_are, with_plugins
from scheduler.user_plugins.python_profiles import PythonProfiles

__all__ = [
    "Admit",
    "DirectoryWatch",
    "Found",
    "GuardFor",
    "PluginCatalogue",
    "PluginLoadError",
    "PluginSource",
    "PythonProfiles",
    "add_kept_annotations",
    "add_new_command",
    "add_plugin_dir",
    "enabled_names",
    "entry_points",
    "files_of",
    "known_plugins",
    "load_source",
    "usable_as_they_are",
    "with_plugins",
]
