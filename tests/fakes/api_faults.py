"""What can be made to go wrong on the fake API server, on demand.

Every switch names a resource (``"pods"``; None means any) and how often it fires (`times`; None
means until :meth:`Faults.clear`). A verb is one of ``list`` (the first page), ``continue`` (a
later page), ``watch``, ``watchlist`` (a watch with sendInitialEvents), ``get``, ``create``,
``update``, ``patch``, ``delete``, ``bind`` and ``status``; None means any.

Concurrency: loop-confined, like the server.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tests.fakes.api_objects import ApiProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.api_objects import Change


@dataclass(slots=True, kw_only=True)
class Fault:
    """Base of all faults: where it strikes and how often."""

    resource: str | None
    verb: str | None = None
    times: int | None = 1
    armed: bool = True


@dataclass(slots=True, kw_only=True)
class Refusal(Fault):
    """Answer with an error instead of doing what was asked."""

    problem: ApiProblemError


@dataclass(slots=True, kw_only=True)
class LostAnswer(Fault):
    """Do what was asked (or not even that) and reset the connection."""

    carried_out: bool


@dataclass(slots=True, kw_only=True)
class Hold(Fault):
    """Keep requests waiting until :meth:`release`; `arrived` is set when the first one waits."""

    times: int | None = None
    waiting: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let all go, also those still to come."""
        self.times = 0
        self.gate.set()


@dataclass(slots=True, kw_only=True)
class WatchStrike(Fault):
    """What befalls one watch when it has sent so many more events."""

    after_events: int


@dataclass(slots=True, kw_only=True)
class Cut(WatchStrike):
    """End a watch."""

    reset: bool


@dataclass(slots=True, kw_only=True)
class HalfOpen(WatchStrike):
    """Let a watch fall silent; its connection stays."""


@dataclass(slots=True, kw_only=True)
class ErrorEvent(WatchStrike):
    """Send an ERROR event and end the watch."""

    problem: ApiProblemError


@dataclass(slots=True, kw_only=True)
class HeldWatch(Fault):
    """Deliver no events to any watch, old or new, until released."""


@dataclass(slots=True, kw_only=True)
class StaleList(Fault):
    """Serve a list as it was `behind` versions ago, whatever was asked for."""

    behind: int


@dataclass(slots=True, kw_only=True)
class EndlessList(Fault):
    """Leave out the bookmark at the end of a streaming list, as servers that ignore it would."""


@dataclass(slots=True, kw_only=True)
class DroppedEvent(Fault):
    """Tell no watch of a change."""

    event_type: str | None
    name: str | None


FaultT = TypeVar("FaultT", bound=Fault)


class Faults:
    """The switches. Each method arms one fault; several may be armed at once.

    Parameters
    ----------
    poke
        Called after each change, so that watches that are already open take notice.
    """

    def __init__(self, poke: Callable[[], None]) -> None:
        self._poke = poke
        self._armed: list[Fault] = []

    # --- requests -----------------------------------------------------------------------------

    def refuse(
        self,
        resource: str | None,
        verb: str | None,
        status: int,
        *,
        reason: str = "",
        message: str = "refused by a fault",
        retry_after_s: int | None = None,
        times: int | None = 1,
    ) -> None:
        """Answer with `status`; `reason` defaults to the API's word for it."""
        problem = ApiProblemError(
            status, reason or _REASONS.get(status, ""), message, retry_after_s=retry_after_s
        )
        self._arm(Refusal(resource=resource, verb=verb, times=times, problem=problem))

    def lose_answer(
        self,
        resource: str | None,
        verb: str | None,
        *,
        carried_out: bool = True,
        times: int | None = 1,
    ) -> None:
        """Reset the connection after the request was carried out (or before it)."""
        self._arm(LostAnswer(resource=resource, verb=verb, times=times, carried_out=carried_out))

    def hold(self, resource: str | None, verb: str | None) -> Hold:
        """Keep requests waiting; the result tells how many wait and lets them go."""
        hold = Hold(resource=resource, verb=verb)
        self._arm(hold)
        return hold

    def stale_list(self, resource: str | None, *, behind: int, times: int | None = 1) -> None:
        """Serve lists, paged or streamed, as of `behind` versions ago."""
        self._arm(StaleList(resource=resource, times=times, behind=behind))

    def endless_list(self, resource: str | None, *, times: int | None = 1) -> None:
        """Never say that a streaming list is complete."""
        self._arm(EndlessList(resource=resource, times=times))

    # --- watches ------------------------------------------------------------------------------

    def cut_watch(
        self,
        resource: str | None,
        *,
        after_events: int,
        reset: bool = False,
        times: int | None = 1,
    ) -> None:
        """End watches cleanly (or by a reset) once each has sent `after_events` events."""
        self._arm(Cut(resource=resource, times=times, after_events=after_events, reset=reset))

    def half_open(
        self, resource: str | None, *, after_events: int = 0, times: int | None = 1
    ) -> None:
        """Let `times` watches fall silent for ever after `after_events` events."""
        self._arm(HalfOpen(resource=resource, times=times, after_events=after_events))

    def error_event(
        self,
        resource: str | None,
        status: int,
        *,
        reason: str = "",
        message: str = "ended by a fault",
        retry_after_s: int | None = None,
        after_events: int = 0,
        times: int | None = 1,
    ) -> None:
        """Send an ERROR event and end the watch."""
        problem = ApiProblemError(
            status, reason or _REASONS.get(status, ""), message, retry_after_s=retry_after_s
        )
        self._arm(
            ErrorEvent(resource=resource, times=times, problem=problem, after_events=after_events)
        )

    def hold_watch(self, resource: str | None) -> None:
        """Deliver no events of `resource` until :meth:`release_watch`."""
        self._arm(HeldWatch(resource=resource, times=None))

    def release_watch(self, resource: str | None) -> None:
        """Undo :meth:`hold_watch`: what was held back is delivered."""
        self._armed = [
            fault
            for fault in self._armed
            if not (isinstance(fault, HeldWatch) and fault.resource == resource)
        ]
        self._poke()

    def drop_event(
        self,
        resource: str | None,
        event_type: str | None = None,
        name: str | None = None,
        *,
        times: int | None = 1,
    ) -> None:
        """Tell no watch of the next change that fits."""
        self._arm(DroppedEvent(resource=resource, times=times, event_type=event_type, name=name))

    # --- all ----------------------------------------------------------------------------------

    def clear(self) -> None:
        """Disarm everything and let everything that is held go, silent watches included."""
        for fault in self._armed:
            fault.armed = False
            if isinstance(fault, Hold):
                fault.release()
        self._armed.clear()
        self._poke()

    def _arm(self, fault: Fault) -> None:
        self._armed.append(fault)
        self._poke()

    # --- the server's side --------------------------------------------------------------------

    def take(self, kind: type[FaultT], resource: str, verb: str | None = None) -> FaultT | None:
        """Return the first armed fault that strikes here, using up one of its times."""
        for fault in self._armed:
            if not isinstance(fault, kind) or fault.times == 0:
                continue
            if fault.resource not in (None, resource) or fault.verb not in (None, verb):
                continue
            if fault.times is not None:
                fault.times -= 1
            return fault
        return None

    def drops(self, resource: str, change: Change) -> bool:
        """Say whether no watch shall be told of `change`."""
        for fault in self._armed:
            if (
                isinstance(fault, DroppedEvent)
                and fault.times != 0
                and fault.resource in (None, resource)
                and fault.event_type in (None, change.type)
                and fault.name in (None, change.obj["metadata"]["name"])
            ):
                if fault.times is not None:
                    fault.times -= 1
                return True
        return False


_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
