"""Mistakes in the arguments of a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator


class ArgsError(ValueError):
    """An argument that cannot be used.

    Parameters
    ----------
    path
        Where it stands within ``args``, for example ``scoringStrategy.resources[1].weight``.
    why
        What is wrong with it.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why


@runtime_checkable
class CheckedArgs(Protocol):
    """Arguments that can name all of their mistakes, where a constructor stops at the first."""

    def problems(self) -> Iterator[ArgsError]:
        """Yield what is wrong with the arguments."""
        ...
