"""The kind SchedulingProfile: what stands in one, read strictly.

``spec`` is a profile as a KubeSchedulerConfiguration has it, with what that has nowhere: the mode,
plugins in Python, and extenders of its own. The API server checks it against the schema of the
kind first; what only the plugins can tell is found here and in
:class:`~scheduler.profiles.known_profiles.Policies`.
"""

# No postponed annotations: msgspec reads those of structs at run time.
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from cache.resource_versions import parse_resource_version
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
from scheduler.profiles import Mode, PolicySpec, PythonSource, ShadowOptions
from scheduler.profiles.operator.extender_limits import check_own_extenders
from scheduler.profiles.operator.history import seals_of
from scheduler.profiles.operator.options import OperatorOptions

GROUP: Final = "scheduling.berth.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "schedulingprofiles"
KIND: Final = "SchedulingProfile"
PATH: Final = f"/apis/{GROUP}/{VERSION}/{PLURAL}"

_SHADOW: Final = ShadowOptions()


class ConfigMapKey(FileStruct, frozen=True):
    """A key of a ConfigMap in berth's own namespace."""

    name: str
    key: str


class PythonEntry(FileStruct, frozen=True):
    """Where plugins come from: exactly one of a ConfigMap's key and an installed entry point."""

    config_map: ConfigMapKey | None = None
    entry_point: str | None = None
    args: dict[str, object] | None = None


class ShadowEntry(FileStruct, frozen=True):
    """How long and at which cost the policy runs in the shadow."""

    decisions: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = _SHADOW.decisions
    budget: Annotated[float, msgspec.Meta(gt=0, le=1)] = _SHADOW.budget


class SchedulingProfileSpec(FileStruct, frozen=True):
    """``spec``; all but ``mode``, ``shadow``, ``python`` and ``extenders`` as in a file."""

    scheduler_name: str
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = NO_PLUGINS
    plugin_config: tuple[PluginConfig, ...] = ()
    extenders: tuple[Extender, ...] | None = None
    mode: Mode = Mode.ACTIVE
    shadow: ShadowEntry = ShadowEntry()
    python: tuple[PythonEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileObject:
    """One version of a SchedulingProfile as the API has it.

    Parameters
    ----------
    version
        Its resourceVersion as a number, 0 if it is none.
    spec, status
        As they stand there; never changed.
    seals
        What the annotation says of its good generations, see
        :mod:`~scheduler.profiles.operator.history`.
    """

    name: str
    uid: str
    generation: int
    version: int
    created: str
    labels: Mapping[str, str]
    spec: Any
    status: Mapping[str, Any]
    seals: tuple[str, ...] = ()

    def has_spec_of(self, other: "ProfileObject") -> bool:
        """Tell whether both say the same, and as the same generation."""
        return (self.generation, self.spec) == (other.generation, other.spec)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "ProfileObject":
        """Take an object of the API server apart, whose metadata can be trusted."""
        metadata = raw["metadata"]
        status = raw.get("status")
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            generation=metadata.get("generation", 1),
            version=parse_resource_version(metadata.get("resourceVersion", "")),
            created=metadata.get("creationTimestamp") or "",
            labels=metadata.get("labels") or {},
            spec=raw.get("spec"),
            status=status if isinstance(status, dict) else {},
            seals=seals_of(metadata.get("annotations") or {}),
        )


def decode_spec(
    data: object, options: OperatorOptions
) -> tuple[SchedulingProfileSpec | None, list[Mistake]]:
    """Return what a ``spec`` says, or None and all that is wrong with it, paths from ``spec``.

    Names of plugins and their arguments are not looked at.
    """
    spec, mistakes = decode({} if data is None else data, SchedulingProfileSpec, "spec")
    if spec is None:
        return None, mistakes
    if not spec.scheduler_name:
        mistakes.append(Mistake("spec.schedulerName", "must not be empty"))
    elif options.scheduler_names is not None and (
        spec.scheduler_name not in options.scheduler_names
    ):
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
    return (None, mistakes) if mistakes else (spec, [])


def policy_spec(
    found: ProfileObject,
    spec: SchedulingProfileSpec,
    namespace: str,
    texts: Mapping[str, Mapping[str, str] | None],
) -> PolicySpec:
    """Return what :class:`~scheduler.profiles.known_profiles.Policies` takes.

    Parameters
    ----------
    namespace
        That of the ConfigMaps.
    texts
        ``data`` of each ConfigMap that the spec names; None for one that does not exist.
    """
    extenders = spec.extenders
    if extenders is not None:
        extenders = tuple(map(defaulted_extender, extenders))
    return PolicySpec(
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
        python=tuple(_source(entry, namespace, texts) for entry in spec.python),
        shadow=ShadowOptions(spec.shadow.decisions, spec.shadow.budget),
        extenders=extenders,
    )


def unreadable(found: ProfileObject, mistakes: Sequence[Mistake]) -> PolicySpec:
    """Return a version whose spec says nothing that can be used, but for its schedulerName."""
    said = found.spec.get("schedulerName") if isinstance(found.spec, dict) else None
    name = said if isinstance(said, str) else ""
    return PolicySpec(
        name=found.name,
        uid=found.uid,
        generation=found.generation,
        created=found.created,
        profile=Profile(scheduler_name=name),
        mistakes=tuple(mistakes),
    )


def config_maps_of(spec: SchedulingProfileSpec) -> frozenset[str]:
    """Return the names of the ConfigMaps that a spec names."""
    return frozenset(entry.config_map.name for entry in spec.python if entry.config_map)


def _source(
    entry: PythonEntry, namespace: str, texts: Mapping[str, Mapping[str, str] | None]
) -> PythonSource:
    if entry.config_map is None:
        return PythonSource("entry-point", entry.entry_point or "", args=entry.args)
    name, key = entry.config_map.name, entry.config_map.key
    text = (texts.get(name) or {}).get(key)
    return PythonSource("config-map", f"{namespace}/{name}/{key}", text, entry.args)
