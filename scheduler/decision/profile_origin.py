"""The origin of a running profile: its source and version."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

FROM_FILE: Final = "file"
FROM_DEFAULT: Final = "default"
_OF_RESOURCE: Final = "schedulingprofile/"


@dataclass(frozen=True, slots=True)
class PolicyOrigin:
    """The source and version of a running profile.

    Parameters
    ----------
    source
        ``file``, ``default`` (no file was given), or ``schedulingprofile/NAME``.
    generation
        ``metadata.generation`` of a SchedulingProfile; for a file, 1 and one more with each content
        that was adopted.
    uid
        The UID of the SchedulingProfile; empty for other sources.

    Attributes
    ----------
    text
        The text form, for example ``schedulingprofile/gpu@7``.
    """

    source: str
    generation: int
    uid: str = ""
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Made once: every log line about a pod has it.
        object.__setattr__(self, "text", f"{self.source}@{self.generation}")

    @classmethod
    def of_resource(cls, name: str, generation: int, uid: str) -> PolicyOrigin:
        """Return the origin of a profile that a SchedulingProfile describes."""
        return cls(f"{_OF_RESOURCE}{name}", generation, uid)

    @property
    def resource_name(self) -> str:
        """The name of the SchedulingProfile; empty for others."""
        return self.source.removeprefix(_OF_RESOURCE) if self.uid else ""

    def __str__(self) -> str:
        """Return :attr:`text`."""
        return self.text


DEFAULT_ORIGIN: Final = PolicyOrigin(FROM_DEFAULT, 1)
