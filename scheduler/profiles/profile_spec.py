"""One version of a SchedulingProfile: the object of the API, and its decoded spec."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from cache.resource_versions import parse_resource_version
from cache.value import Value
from scheduler.config.file_profile import FileStruct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.config import Extender, Mistake, Profile


class ProfileObject(Value, frozen=True):
    """One version of a SchedulingProfile as the API server returns it.

    Parameters
    ----------
    version
        The resourceVersion as a number, 0 if it is not a number.
    spec, status
        The undecoded fields of the object; must not be modified.
    """

    name: str
    uid: str
    generation: int
    version: int
    created: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Any
    status: Mapping[str, Any]

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> ProfileObject:
        """Return the fields of an object of the API server, which has validated its metadata."""
        metadata = raw["metadata"]
        status = raw.get("status")
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            generation=metadata.get("generation", 1),
            version=parse_resource_version(metadata.get("resourceVersion", "")),
            created=metadata.get("creationTimestamp") or "",
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            spec=raw.get("spec"),
            status=status if isinstance(status, dict) else {},
        )


class Mode(Enum):
    """How Berth uses a SchedulingProfile."""

    ACTIVE = "Active"
    """The profile decides."""
    SHADOW = "Shadow"
    """The profile judges the same pods as the deciding one; the results are only compared."""


class ShadowOptions(FileStruct, frozen=True):
    """Length and cost of a shadow run.

    Parameters
    ----------
    decisions
        Number of live decisions that are compared.
    budget
        The share of the scheduling thread's time that the shadow may use, more than 0 and at
        most 1.
    """

    decisions: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1000
    budget: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05


class PythonSource(Value, frozen=True):
    """A Python source of plugins for one profile.

    Its plugins run in the profile at every extension point that they implement, with weight 1,
    unless the profile's ``plugins`` configure them.

    Parameters
    ----------
    kind
        ``config-map`` or ``entry-point``.
    name
        ``NAMESPACE/NAME/KEY`` of a ConfigMap, or the entry point's name.
    text
        The source code; None for an entry point, and for a ConfigMap or key that does not exist.
    args
        The arguments of its plugins, as ``args`` of ``pluginConfig``; None if ``pluginConfig``
        has them or there are none.
    """

    kind: Literal["config-map", "entry-point"]
    name: str
    text: str | None = None
    args: Mapping[str, object] | None = None


class ProfileVersion(Value, frozen=True):
    """One decoded version of a SchedulingProfile, with the sources that it refers to. Immutable.

    Parameters
    ----------
    name, uid, generation
        From the metadata of the object.
    created
        ``metadata.creationTimestamp``: of two objects with one schedulerName the older is used.
    profile
        The profile as in a configuration file: decoded, plugin arguments not validated yet.
    python
        The sources of the profile's own plugins.
    extenders
        The extenders for the pods of this profile, in place of the file's. None for the file's.
    mistakes
        The mistakes that were found during decoding. A version with any mistake cannot be used.
    object
        The object that was decoded; None for a version that does not come from the API.
    """

    name: str
    uid: str
    generation: int
    profile: Profile
    created: str = ""
    mode: Mode = Mode.ACTIVE
    python: tuple[PythonSource, ...] = ()
    shadow: ShadowOptions = msgspec.field(default_factory=ShadowOptions)
    extenders: tuple[Extender, ...] | None = None
    mistakes: tuple[Mistake, ...] = ()
    object: ProfileObject | None = None

    def asks_for_the_same_as(self, other: ProfileVersion) -> bool:
        """Return whether both versions are equal, apart from the object with its status."""
        return replace(self, object=None) == replace(other, object=None)
