"""One version of a user's plugin: its name, the digest of its source and its failure policy."""

from __future__ import annotations

from types import FunctionType
from typing import Literal, TypeAlias, cast

from cache.value import Value
from plugins.authoring import policy_name

FailurePolicy: TypeAlias = Literal["Ignore", "Fail"]


class PluginCode(Value, frozen=True):
    """One version of a user's plugin. Immutable.

    Parameters
    ----------
    name
        The plugin's name.
    digest
        The digest of its source: a changed file is a new version with its own quarantine entry.
        Empty if there is none; such code is never in quarantine at the next start.
    file
        The file name that its tracebacks show.
    failure_policy
        What happens to pods while the plugin is switched off: with ``Ignore`` they are scheduled
        without it, with ``Fail`` they wait.
    """

    name: str
    digest: str = ""
    file: str = ""
    failure_policy: FailurePolicy = "Ignore"

    @classmethod
    def of(cls, plugin: type, digest: str = "") -> PluginCode:
        """Return the version that a user's class represents.

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
