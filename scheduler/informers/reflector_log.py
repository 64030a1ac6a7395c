"""Log the problems of a reflector: each problem once as a warning, and its end.

*Concurrency*: loop-confined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from scheduler.informers.reflector_states import Outcome

if TYPE_CHECKING:
    from scheduler.informers.reflector_states import Ending, State
    from scheduler.informers.watch_events import UnreadableEvent

_UIDS_KEPT: Final = 10_000
"""Unreadable objects that are remembered, so that each is named once and not with each change."""


class Diary:
    """The log of one reflector.

    Parameters
    ----------
    resource
        Bound to every line.
    """

    def __init__(self, resource: str) -> None:
        self._log = structlog.stdlib.get_logger(__name__, resource=resource)
        self._last_problem = ""
        self._unreadable_uids: set[str] = set()

    def problem(self, ending: Ending, state: State, objects: int, version: str) -> None:
        """Say that a list or watch came to an `ending`; a repetition goes to the debug log."""
        denied = ending.outcome is Outcome.DENIED
        log = self._log.error if denied else self._log.warning
        if ending.problem == self._last_problem:
            log = self._log.debug
        self._last_problem = ending.problem
        log(
            "watch denied" if denied else "watch interrupted",
            problem=ending.problem,
            state=state.value,
            objects_kept=objects,
            resource_version=version,
        )

    def recovered(self, version: str) -> None:
        """Say that the last problem is over, if there was one."""
        if self._last_problem:
            self._log.info("watch recovered", after=self._last_problem, resource_version=version)
            self._last_problem = ""

    def history_went_back(self, listed: str, seen: str) -> None:
        """Say that the server's history is shorter than what was seen, and believed."""
        self._log.error("history went back", listed=listed, seen=seen)

    def mistake(self, state: State) -> None:
        """Say that the reflector itself raised what it should not, with the traceback."""
        self._log.exception("internal error in reflector", state=state.value)

    def unreadable(self, event: UnreadableEvent) -> None:
        """Name an object that could not be read; the same one again goes to the debug log."""
        log = self._log.warning
        identity = event.identity
        if identity is None:
            log("unreadable line", type=event.type and event.type.value, problem=event.problem)
            return
        if identity.uid in self._unreadable_uids:
            log = self._log.debug
        elif len(self._unreadable_uids) < _UIDS_KEPT:
            self._unreadable_uids.add(identity.uid)
        log(
            "unreadable object",
            type=event.type and event.type.value,
            namespace=identity.namespace,
            name=identity.name,
            uid=identity.uid,
            problem=event.problem,
        )
