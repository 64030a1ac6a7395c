"""What a SchedulingProfile asks for, decoded."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.config import Extender, Mistake, Profile


class Mode(Enum):
    """What is done with a policy."""

    ACTIVE = "Active"
    """It decides."""
    SHADOW = "Shadow"
    """It is asked beside the one that decides, and its answers are only compared."""


@dataclass(frozen=True, slots=True)
class ShadowOptions:
    """How long, and at which cost, a policy runs in the shadow of the one that decides.

    Parameters
    ----------
    decisions
        How many live decisions it is held against.
    budget
        The share of the scheduling thread's time that it may take, more than 0 and at most 1.
    """

    decisions: int = 1000
    budget: float = 0.05


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
class PolicySpec:
    """One version of a SchedulingProfile. Immutable.

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
