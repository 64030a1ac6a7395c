"""Collect the errors of a configuration, each with the path of the bad value."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.process.expected_error import ExpectedError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

_MAX_SHOWN: Final = 80
"""Characters of a bad value that a message repeats; it may be a megabyte."""


_MAX_LISTED: Final = 50
"""Mistakes that a message lists; all of them stay in the error."""

_NEAR: Final = 0.75
"""How alike two names are (of 1) if one may be a misspelling of the other."""


def child(path: str, key: str) -> str:
    """Return the path of a field: ``profiles[0]`` and ``plugins`` make ``profiles[0].plugins``."""
    if _PLAIN_KEY.fullmatch(key) is None:
        return f"{path}[{key[:_MAX_SHOWN]}]"
    return f"{path}.{key[:_MAX_SHOWN]}" if path else key[:_MAX_SHOWN]


def item(path: str, index: int) -> str:
    """Return the path of a list's item."""
    return f"{path}[{index}]"


def shown(value: object) -> str:
    """Return a value as a message may repeat it: one line, not long, texts in quotes."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_SHOWN else value[:_MAX_SHOWN] + "...")
    if isinstance(value, (int, float)):
        return str(value)
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean X?"`` for the known name that is nearest, ``""`` if none is near."""
    names = sorted(known)
    by_folded = {each.casefold(): each for each in names}
    near = by_folded.get(name.casefold()) or next(
        iter(difflib.get_close_matches(name[:_MAX_SHOWN], names, 1, _NEAR)), ""
    )
    return f"; did you mean {near}?" if near else ""


class Mistake(NamedTuple):
    """One bad value: where it stands (``""`` for the whole file) and what is wrong with it."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


class ConfigError(ExpectedError, ValueError):
    """A configuration that cannot be used.

    Parameters
    ----------
    path
        Where the bad value stands, for example
        ``profiles[0].pluginConfig[2].args.scoringStrategy.type``.
    why
        What is wrong with it.
    further
        The other mistakes of the same configuration.
    source
        What was read, normally the name of a file; put before the message.
    """

    def __init__(
        self, path: str, why: str, *, further: Iterable[Mistake] = (), source: str = ""
    ) -> None:
        self.path = path
        self.why = why
        self.source = source
        self.mistakes = (Mistake(path, why), *further)
        """All mistakes, in the order of the file as far as it is known."""
        super().__init__(self._message())

    def _message(self) -> str:
        before = f"{self.source}: " if self.source else ""
        if len(self.mistakes) == 1:
            return f"{before}{self.mistakes[0]}"
        listed = self.mistakes[:_MAX_LISTED]
        lines = "".join(f"\n  {mistake}" for mistake in listed)
        if len(self.mistakes) > len(listed):
            lines += f"\n  ... and {len(self.mistakes) - len(listed)} more"
        return f"{before}{len(self.mistakes)} mistakes:{lines}"

    @classmethod
    def of(cls, mistakes: Iterable[Mistake], source: str = "") -> ConfigError:
        """Return one error for at least one mistake."""
        first, *further = mistakes
        return cls(first.path, first.why, further=further, source=source)
