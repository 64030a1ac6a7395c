"""A SchedulingProfile: the object as the API has it, and what it asks for, decoded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from cache.resource_versions import parse_resource_version
from scheduler.config.file_profile import FileStruct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.config import Extender, Mistake, Profile


@dataclass(frozen=True, slots=True)
class ProfileObject:
    """One version of a SchedulingProfile as the API has it.

    Parameters
    ----------
    version
        Its resourceVersion as a number, 0 if it is none.
    spec, status
        As they stand there; never changed.
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
        """Return an object of the API server, whose metadata can be trusted, taken apart."""
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
    """What is done with a policy."""

    ACTIVE = "Active"
    """It decides."""
    SHADOW = "Shadow"
    """It is asked beside the one that decides, and its answers are only compared."""


class ShadowOptions(FileStruct, frozen=True):
    """How long, and at which cost, a policy runs in the shadow of the one that decides.

    Parameters
    ----------
    decisions
        How many live decisions it is held against.
    budget
        The share of the scheduling thread's time that it may take, more than 0 and at most 1.
    """

    decisions: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1000
    budget: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05


@dataclass(frozen=True, slots=True)
class PythonSource:
    """Python that brings plugins for one profile.

    Plugins that it brings run in the profile at every point that they serve, with weight 1, unless
    the profile's ``plugins`` say otherwise.

    Parameters
    ----------
    kind
        ``config-map`` or ``entry-point``.
    name
        ``NAMESPACE/NAME/KEY`` of a ConfigMap, or the entry point's name.
    text
        The source; None for an entry point, and for a ConfigMap or key that does not exist.
    args
        The arguments of its plugins, as ``args`` of ``pluginConfig``; None where ``pluginConfig``
        has them or there are none.
    """

    kind: Literal["config-map", "entry-point"]
    name: str
    text: str | None = None
    args: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ProfileVersion:
    """One version of a SchedulingProfile, with what it names elsewhere. Immutable.

    Parameters
    ----------
    name, uid, generation
        Of its metadata.
    created
        ``metadata.creationTimestamp``: of two for one schedulerName the older counts.
    profile
        As a file would write it: decoded, plugin arguments not yet looked at.
    python
        Its own plugins.
    extenders
        Asked for the pods of this profile instead of those of the file. None for the file's.
    mistakes
        What was wrong with it when it was read. With any it cannot be used, whatever else it says.
    object
        What it was read from; None for one that has been made up.
    """

    name: str
    uid: str
    generation: int
    profile: Profile
    created: str = ""
    mode: Mode = Mode.ACTIVE
    python: tuple[PythonSource, ...] = ()
    shadow: ShadowOptions = field(default_factory=ShadowOptions)
    extenders: tuple[Extender, ...] | None = None
    mistakes: tuple[Mistake, ...] = ()
    object: ProfileObject | None = None

    def asks_for_the_same_as(self, other: ProfileVersion) -> bool:
        """Return whether both ask for the same; the status of their objects may differ."""
        return replace(self, object=None) == replace(other, object=None)
