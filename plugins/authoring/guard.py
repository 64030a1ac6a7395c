"""Who stands between the scheduler and a user's code: see :class:`Guard`."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Absent(Enum):
    """The plugin is passed over: the type of :data:`ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""A filter that is absent passes every node, a score that is absent is equal for all."""


class Guard(Protocol):
    """Runs the calls into one plugin class, and decides what becomes of those that fail.

    *Concurrency*: scheduling thread, but for plugins on trial and ``explain``, which have guards
    of their own or none.
    """

    @property
    def calls(self) -> int:
        """Grows when calls begin to be made again or cease to be.

        Answers that are kept for pods of one signature die with it.
        """
        ...

    def call(self, plugin: str, point: str, function: Callable[[], T]) -> T | Absent:
        """Return what ``function`` returns, or :data:`ABSENT` to pass over the plugin this time.

        Parameters
        ----------
        plugin
            The plugin's name.
        point
            The method: ``filter``, ``filter_one``, ``score``, ``score_one`` or ``signature``.
        function
            The user's method with its arguments, the check of its answer included: what is wrong
            with that comes as a :class:`plugins.authoring.checked_results.PolicyAnswerError`.

        Raises
        ------
        Exception
            When this pod's cycle is to end with an ``Error`` status; its text is the reason.
        """
        ...


class Unguarded:
    """Calls, and lets every failure through: for tests and for ``explain``."""

    calls = 0

    def call(self, plugin: str, point: str, function: Callable[[], T]) -> T | Absent:
        """Return what ``function`` returns."""
        return function()
