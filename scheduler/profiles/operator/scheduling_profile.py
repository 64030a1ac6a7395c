"""The kind SchedulingProfile: what stands in one, read strictly.

``spec`` is a profile as a KubeSchedulerConfiguration has it, with what that has nowhere: the mode,
plugins in Python, and extenders of its own. The API server checks it against the schema of the
kind first; what only the plugins can tell is found here and in
:class:`~scheduler.profiles.known_profiles.KnownProfiles`.
"""

# No postponed annotations: msgspec reads those of structs at run time.
from typing import Final

from scheduler.config import Extender, Mistake, Profile
from scheduler.config.config_error import child, item, shown
from scheduler.config.defaults import defaulted_extender
from scheduler.config.file_profile import (
    NO_PLUGINS,
    FileStruct,
    Percentage,
    PluginConfig,
    Plugins,
)
from scheduler.config.strict_decoding import decode
from scheduler.profiles.operator.extender_limits import check_own_extenders
from scheduler.profiles.operator.options import OperatorOptions
from scheduler.profiles.operator.shallow_json import TOO_DEEP, too_deep
from scheduler.profiles.profile_spec import (
    Mode,
    ProfileObject,
    ProfileVersion,
    PythonSource,
    ShadowOptions,
)

GROUP: Final = "scheduling.berth.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "schedulingprofiles"
KIND: Final = "SchedulingProfile"
PATH: Final = f"/apis/{GROUP}/{VERSION}/{PLURAL}"


class ConfigMapKey(FileStruct, frozen=True):
    """A key of a ConfigMap in berth's own namespace."""

    name: str
    key: str


class PythonEntry(FileStruct, frozen=True):
    """Where plugins come from: exactly one of a ConfigMap's key and an installed entry point."""

    config_map: ConfigMapKey | None = None
    entry_point: str | None = None
    args: dict[str, object] | None = None


class SchedulingProfileSpec(FileStruct, frozen=True):
    """``spec``; all but ``mode``, ``shadow``, ``python`` and ``extenders`` as in a file."""

    scheduler_name: str
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = NO_PLUGINS
    plugin_config: tuple[PluginConfig, ...] = ()
    extenders: tuple[Extender, ...] | None = None
    mode: Mode = Mode.ACTIVE
    shadow: ShadowOptions = ShadowOptions()
    python: tuple[PythonEntry, ...] = ()


def read_version(found: ProfileObject, options: OperatorOptions) -> ProfileVersion:
    """Return what an object asks for, or all that is wrong with it, paths from ``spec``.

    Names of plugins and their arguments are not looked at. ConfigMaps that it names are not read.
    """
    data = {} if found.spec is None else found.spec
    spec, mistakes = decode(data, SchedulingProfileSpec, "spec")
    if spec is not None:
        mistakes += _mistakes(spec, options)
    mistakes += (Mistake(path, f"is too deep: {TOO_DEEP}") for path in too_deep(data, "spec"))
    if spec is None or mistakes:
        name = data.get("schedulerName") if isinstance(data, dict) else None
        # Nothing else of it counts.
        spec = SchedulingProfileSpec(name if isinstance(name, str) else "")
    extenders = spec.extenders
    if extenders is not None:
        extenders = tuple(map(defaulted_extender, extenders))
    return ProfileVersion(
        name=found.name,
        uid=found.uid,
        generation=found.generation,
        created=found.created,
        profile=Profile(
            scheduler_name=spec.scheduler_name,
            percentage_of_nodes_to_score=spec.percentage_of_nodes_to_score,
            plugins=spec.plugins,
            plugin_config=spec.plugin_config,
        ),
        mode=spec.mode,
        python=tuple(_source(entry, options.namespace) for entry in spec.python),
        shadow=spec.shadow,
        extenders=extenders,
        mistakes=tuple(mistakes),
        object=found,
    )


def _mistakes(spec: SchedulingProfileSpec, options: OperatorOptions) -> list[Mistake]:
    """Return what the schema allows and berth does not, or not here."""
    mistakes: list[Mistake] = []
    names = options.scheduler_names
    if not spec.scheduler_name:
        mistakes.append(Mistake("spec.schedulerName", "must not be empty"))
    elif names is not None and spec.scheduler_name not in names:
        why = f"{shown(spec.scheduler_name)} is not allowed; see --scheduling-profiles-names"
        mistakes.append(Mistake("spec.schedulerName", why))
    mistakes += check_own_extenders(spec.extenders or (), options.extender_urls, "spec.extenders")
    for index, entry in enumerate(spec.python):
        path = item("spec.python", index)
        if (entry.config_map is None) == (entry.entry_point is None):
            mistakes.append(Mistake(path, "needs exactly one of configMap and entryPoint"))
        elif entry.config_map is not None and not options.allow_python:
            why = "Python from the cluster is not allowed; see --allow-python-profiles"
            mistakes.append(Mistake(child(path, "configMap"), why))
        elif entry.config_map is not None and not options.namespace:
            why = "berth does not know its namespace; see --python-profiles-namespace"
            mistakes.append(Mistake(child(path, "configMap"), why))
    return mistakes


def _source(entry: PythonEntry, namespace: str) -> PythonSource:
    if entry.config_map is None:
        return PythonSource("entry-point", entry.entry_point or "", args=entry.args)
    key = entry.config_map
    return PythonSource("config-map", f"{namespace}/{key.name}/{key.key}", args=entry.args)
