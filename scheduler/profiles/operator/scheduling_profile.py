"""The kind SchedulingProfile: names of its API, and strict decoding of its spec.

``spec`` is a profile as in a KubeSchedulerConfiguration, with three additional fields: the mode,
plugins in Python, and its own extenders. The API server validates it against the schema of the kind
first. Mistakes that only Berth can find are found here and in
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
    """A key of a ConfigMap in Berth's own namespace."""

    name: str
    key: str


class PythonEntry(FileStruct, frozen=True):
    """A source of plugins: exactly one of a ConfigMap's key and an installed entry point."""

    config_map: ConfigMapKey | None = None
    entry_point: str | None = None
    args: dict[str, object] | None = None


class SchedulingProfileSpec(FileStruct, frozen=True):
    """The decoded ``spec``; only ``mode``, ``shadow``, ``python`` and ``extenders`` are added."""

    scheduler_name: str
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = NO_PLUGINS
    plugin_config: tuple[PluginConfig, ...] = ()
    extenders: tuple[Extender, ...] | None = None
    mode: Mode = Mode.ACTIVE
    shadow: ShadowOptions = ShadowOptions()
    python: tuple[PythonEntry, ...] = ()


def read_version(profile_object: ProfileObject, options: OperatorOptions) -> ProfileVersion:
    """Return the decoded version of an object, with all its mistakes; paths start at ``spec``.

    Names of plugins and their arguments are not validated. ConfigMaps that it names are not read.
    """
    data = {} if profile_object.spec is None else profile_object.spec
    spec, mistakes = decode(data, SchedulingProfileSpec, "spec")
    if spec is not None:
        mistakes += _mistakes(spec, options)
    mistakes += (Mistake(path, f"is too deep: {TOO_DEEP}") for path in too_deep(data, "spec"))
    if spec is None or mistakes:
        name = data.get("schedulerName") if isinstance(data, dict) else None
        # A version with mistakes cannot be used, so only its schedulerName is kept.
        spec = SchedulingProfileSpec(name if isinstance(name, str) else "")
    extenders = spec.extenders
    if extenders is not None:
        extenders = tuple(map(defaulted_extender, extenders))
    return ProfileVersion(
        name=profile_object.name,
        uid=profile_object.uid,
        generation=profile_object.generation,
        created=profile_object.created,
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
        object=profile_object,
    )


def _mistakes(spec: SchedulingProfileSpec, options: OperatorOptions) -> list[Mistake]:
    """Return the mistakes that the schema allows, and Berth or its flags do not."""
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
