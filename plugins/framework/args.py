"""The arguments of plugins, and the errors in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self


class ArgsError(ValueError):
    """An argument that cannot be used.

    Parameters
    ----------
    path
        The path of the value within ``args``, for example ``scoringStrategy.resources[1].weight``.
    why
        The error in the value.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why


@runtime_checkable
class CheckedArgs(Protocol):
    """Arguments that can report all of their errors, where a constructor stops at the first."""

    def problems(self) -> Iterator[ArgsError]:
        """Yield the errors in the arguments."""
        ...


class PluginArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of the arguments of the plugins that exist here: camelCase, an unknown name is an error.

    Parameters
    ----------
    api_version, kind
        As every argument object may carry them; checked by who knows the plugin.
    """

    api_version: str = ""
    kind: str = ""

    def problems(self) -> Iterator[ArgsError]:
        """Yield the errors in the arguments; by default none."""
        yield from ()

    @classmethod
    def checked(cls, args: msgspec.Struct | None) -> Self:
        """Return the arguments of a plugin, or the defaults if it has none.

        Raises
        ------
        ArgsError
            For the first error.
        """
        given = args if isinstance(args, cls) else cls()
        for problem in given.problems():
            raise problem
        return given
