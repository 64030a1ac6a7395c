"""The identity of a user's plugin code: the plugin's name and the digest of its source."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import Literal, TypeAlias, cast

from plugins.authoring import policy_name

FailurePolicy: TypeAlias = Literal["Ignore", "Fail"]


@dataclass(frozen=True, slots=True)
class PluginCode:
    """One version of one plugin of a user's. Immutable.

    Parameters
    ----------
    name
        The plugin's.
    digest
        Of the source that it came from: a changed file is other code, and is judged anew. Empty
        where nobody took one; such code is never left out at the next start.
    file
        The file name that its tracebacks show.
    failure_policy
        What becomes of pods while the plugin is switched off: ``Ignore`` passes it over, ``Fail``
        lets them wait.
    """

    name: str
    digest: str = ""
    file: str = ""
    failure_policy: FailurePolicy = "Ignore"

    @classmethod
    def of(cls, plugin: type, digest: str = "") -> PluginCode:
        """Return what a user's class says of itself.

        Raises
        ------
        ValueError
            When its ``failure_policy`` is neither ``Ignore`` nor ``Fail``.
        """
        policy = getattr(plugin, "failure_policy", "Ignore")
        if policy not in ("Ignore", "Fail"):
            raise ValueError(f"failure_policy is {policy!r}, it must be 'Ignore' or 'Fail'")
        return cls(
            policy_name(plugin),
            digest,
            _file_of(plugin),
            cast("FailurePolicy", policy),
        )


def _file_of(plugin: type) -> str:
    """Return the file of the first method that a class defines."""
    for value in vars(plugin).values():
        if isinstance(value, FunctionType):
            return value.__code__.co_filename
    return ""
