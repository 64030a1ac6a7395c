"""Decode the plugin arguments of a profile strictly, check them, and make them immutable.

*Source*: k8s.io/kube-scheduler config/v1/types.go (PluginConfig.decodeNestedObjects, 0.36);
kube-scheduler 1.36, pkg/scheduler/apis/config/validation/validation.go (validatePluginConfig).

# Differs: arguments of NodeResourcesFit are checked like all others; upstream looks for them
# under a name that no plugin has and only finds their mistakes when it makes the plugin.

*Source*: k8s.io/kube-scheduler config/v1/types_pluginargs.go and types.go (0.36); kube-scheduler
1.36, pkg/scheduler/apis/config/v1/defaults.go and validation/validation_pluginargs.go, with the
feature gates as they stand by default: StorageCapacityScoring off, those of dynamic resource
allocation on.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn, cast

from plugins import names
from plugins.framework.args import ArgsError, CheckedArgs
from scheduler.config.config_error import Mistake, child, item, shown
from scheduler.config.configuration import API_VERSION
from scheduler.config.file_profile import PluginConfig
from scheduler.config.strict_decoding import cleaned, convert_cleaned

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from plugins.framework.handle import Handle
    from plugins.framework.interfaces import Plugin

REMOVED: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(
        ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"),
        "no longer exists; NodeVolumeLimits counts the volumes of every driver",
    )
)
"""Plugins that version v1 refuses, and what became of them."""


def check_plugin_config(
    entries: Sequence[PluginConfig], plugins: Mapping[str, type[Plugin]], path: str
) -> tuple[tuple[PluginConfig, ...], list[Mistake]]:
    """Return the entries with their arguments decoded, and everything wrong with them.

    Arguments of a plugin that takes some are an ``args_type`` afterwards; others are plain data
    that nobody can change.

    Parameters
    ----------
    entries
        ``pluginConfig`` of one profile.
    plugins
        The plugins that exist, by name. Each is made once on trial, with a handle that lends
        nothing.
    path
        Where ``pluginConfig`` stands.
    """
    checked: list[PluginConfig] = []
    mistakes: list[Mistake] = []
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        where = item(path, index)
        if entry.name in seen:
            mistakes.append(
                Mistake(child(where, "name"), f"{shown(entry.name)} stands there twice")
            )
        seen.add(entry.name)
        if not entry.name:
            mistakes.append(Mistake(child(where, "name"), "must not be empty"))
        elif entry.name in REMOVED:
            why = f"{entry.name} {REMOVED[entry.name]}"
            mistakes.append(Mistake(child(where, "name"), why))
        args, wrong = _checked_args(entry, plugins, child(where, "args"))
        mistakes += wrong
        checked.append(PluginConfig(entry.name, args))
    return tuple(checked), mistakes


def _checked_args(
    entry: PluginConfig, plugins: Mapping[str, type[Plugin]], path: str
) -> tuple[object, list[Mistake]]:
    cls = plugins.get(entry.name)
    args_type = None if cls is None else cls.args_type
    if args_type is None:
        return frozen(entry.args), _superfluous(entry, cls, path)
    args, mistakes = _decoded(entry, args_type, path)
    if args is None:
        return None, mistakes
    problems = list(args.problems()) if isinstance(args, CheckedArgs) else []
    if not problems and cls is not None:
        problems = _problems_on_trial(cls, args)
    found = [Mistake(f"{path}.{e.path}" if e.path else path, e.why) for e in problems]
    return args, found


def _decoded(
    entry: PluginConfig, args_type: type[msgspec.Struct], path: str
) -> tuple[msgspec.Struct | None, list[Mistake]]:
    raw: object = {} if entry.args is None else entry.args
    if isinstance(raw, args_type):
        # Of a configuration that is checked once more, against other plugins.
        return raw, []
    mistakes = _check_kind(entry.name, raw, path)
    if mistakes:
        return None, mistakes
    clean, mistakes = cleaned(raw, args_type, path)
    return (None, mistakes) if mistakes else convert_cleaned(clean, args_type, path)


def _superfluous(entry: PluginConfig, cls: type[Plugin] | None, path: str) -> list[Mistake]:
    """Return a mistake for arguments that a plugin of somebody's own does not take.

    Kube-scheduler does not look at those of its own plugins; what it takes, we take.
    """
    if cls is None or entry.name in names.IN_TREE or not entry.args:
        return []
    return [Mistake(path, f"{entry.name} takes no arguments")]


def _check_kind(name: str, raw: object, path: str) -> list[Mistake]:
    """Return what is wrong with ``apiVersion`` and ``kind``, which may be absent."""
    if not isinstance(raw, Mapping) or name not in names.IN_TREE:
        return []
    expected = {"apiVersion": API_VERSION, "kind": f"{name}Args"}
    return [
        Mistake(child(path, key), f"must be {value}, not {shown(raw[key])}")
        for key, value in expected.items()
        if raw.get(key) not in (None, "", value)
    ]


def _problems_on_trial(cls: type[Plugin], args: msgspec.Struct) -> list[ArgsError]:
    """Make the plugin as a profile would: only its constructor knows all that it demands."""
    try:
        cls(args, cast("Handle", _LendsNothing()))
    except ArgsError as error:
        return [error]
    return []


class _LendsNothing:
    """A handle for plugins on trial: constructors keep their handle and do not use it."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a plugin's constructor must not use its handle ({name})")


def frozen(data: object) -> object:
    """Return plain data that nobody can change: read-only mappings and tuples."""
    if isinstance(data, Mapping):
        return MappingProxyType({key: frozen(value) for key, value in data.items()})
    if isinstance(data, (list, tuple)):
        return tuple(frozen(value) for value in data)
    return data
