"""The source of users' plugins: its kind, its name, its code and the digest of the code."""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from typing import Final, Literal, TypeAlias

from cache.value import Value

SourceKind: TypeAlias = Literal["entry-point", "directory", "config-map"]

SOURCE_ATTRIBUTE: Final = "plugin_source"
"""The attribute of a user's plugin class that holds its source."""


class PluginSource(Value, frozen=True):
    """One piece of code that defines plugins. Immutable.

    Parameters
    ----------
    kind
        ``entry-point``: installed, found by its group; ``directory``: a file of ``--plugin-dir``;
        ``config-map``: a key of a ConfigMap that a SchedulingProfile names.
    name
        The entry point's name, the file's path, or ``NAMESPACE/NAME/KEY``.
    digest
        The digest of the code: trials and quarantine entries apply to one digest.
    text
        The code; None for an entry point, which is imported.
    """

    kind: SourceKind
    name: str
    digest: str
    text: str | None = None

    @classmethod
    def of_text(cls, kind: SourceKind, name: str, text: str) -> PluginSource:
        """Return the source of a text, with its digest."""
        return cls(kind, name, digest_of(text.encode()), text)

    @property
    def file(self) -> str:
        """The file name that tracebacks show."""
        return self.name if self.kind == "directory" else f"<{self.kind} {self.name}>"

    @property
    def stem(self) -> str:
        """A short name: the file's or the key's without its folder and ending."""
        return PurePath(self.name).stem

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def digest_of(code: bytes) -> str:
    """Return the digest of some code, hexadecimal."""
    return hashlib.sha256(code).hexdigest()
