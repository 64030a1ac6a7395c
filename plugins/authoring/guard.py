"""The interface of guards, which run every call from the scheduler into a user's code."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Absent(Enum):
    """The type of :data:`ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The plugin is skipped: a skipped filter accepts every node, a skipped score is equal for all."""


class Guard(Protocol):
    """Runs the calls into one plugin class, and handles their failures.

    *Concurrency*: confined to the scheduling thread. Plugins on trial and ``explain`` have their
    own guards or none.
    """

    @property
    def calls(self) -> int:
        """A number that grows when calls are suspended or resumed.

        Results that are cached for pods of one signature become invalid when it changes.
        """
        ...

    def call(self, plugin: str, point: str, function: Callable[[], T]) -> T | Absent:
        """Return the result of ``function``, or :data:`ABSENT` to skip the plugin this time.

        Parameters
        ----------
        plugin
            The plugin's name.
        point
            The method: ``filter``, ``filter_one``, ``score``, ``score_one`` or ``signature``.
        function
            Calls the user's method and validates its result; an invalid result raises
            :class:`plugins.authoring.checked_results.PolicyAnswerError`.

        Raises
        ------
        Exception
            When this pod's cycle has to end with an ``Error`` status; its text is the reason.
        """
        ...


class Unguarded:
    """A guard that lets every exception propagate, for tests and for ``explain``."""

    calls = 0

    def call(self, plugin: str, point: str, function: Callable[[], T]) -> T | Absent:
        """Return the result of ``function``."""
        return function()
