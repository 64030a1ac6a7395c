"""Define the state machine of a reflector as one table: state, outcome, next state.

::

    STREAMING_LIST --synced--> WATCHING            the same connection goes on as the watch
    STREAMING_LIST --unsupported--> PAGED_LIST     an API server without streaming lists
    STREAMING_LIST --ended, failed, denied, expired, too_large, rewound, restored--> STREAMING_LIST
    PAGED_LIST --synced--> WATCHING
    PAGED_LIST --failed, denied, expired, too_large, rewound, restored, unsupported--> PAGED_LIST
    WATCHING --ended--> WATCHING                   resumed from the last version, at once
    WATCHING --failed, denied--> WATCHING          resumed from the last version, after a delay
    WATCHING --expired, too_large, rewound, restored, unsupported, lossy--> STREAMING_LIST

A reflector of an API server that reads pages from its cache begins with PAGED_LIST, and comes from
WATCHING back to it: such a list costs that server half of the CPU of a streaming list, and comes in
half of the time.

The store and the last version are kept through every step. A reflector that may not list or watch
any more keeps its objects, and keeps retrying.

*Source*: client-go 1.36, tools/cache/reflector.go. Differs: client-go lists in pages after any
refusal of a streaming list. Here a streaming list that only failed is retried first, because pages
cost a server more that reads them from etcd.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class State(enum.Enum):
    """What a reflector is doing."""

    STREAMING_LIST = "streaming_list"
    """A watch that begins with all objects (``sendInitialEvents``)."""

    PAGED_LIST = "paged_list"
    """Lists with ``limit`` and ``continue``."""

    WATCHING = "watching"
    """A watch from the last version."""


class Outcome(enum.Enum):
    """How that ended."""

    SYNCED = "synced"
    """The list was complete and has been taken in."""

    ENDED = "ended"
    """The stream is over: a watch that brought something new, or a list without its end."""

    FAILED = "failed"
    """No connection, silence, 429, 5xx, or a watch that ended without anything new."""

    DENIED = "denied"
    """401 or 403."""

    EXPIRED = "expired"
    """410: the version (or the page) is too old."""

    TOO_LARGE = "too_large"
    """The server has not got as far as the version yet."""

    REWOUND = "rewound"
    """The server is behind what has been seen already."""

    RESTORED = "restored"
    """Another resource has shown that etcd was restored: this one is listed anew and believed."""

    UNSUPPORTED = "unsupported"
    """The server does not take the request as it is (400, 422)."""

    LOSSY = "lossy"
    """The watch ended, and a deletion on it may have been unreadable."""


class Delay(enum.Enum):
    """How long to wait before the next step."""

    NONE = "none"
    RETRY = "retry"
    """Short: a watch from the last version costs the server nothing."""
    LIST = "list"
    """Longer, for a list costs the server much, and all of its clients may have to list at once."""


class Step(NamedTuple):
    """What comes next.

    Attributes
    ----------
    most_recent
        Whether lists, until one is synced, ask for the most recent state instead of one that is
        not older than the last version.
    """

    state: State
    delay: Delay
    most_recent: bool = False


_S, _P, _W = State.STREAMING_LIST, State.PAGED_LIST, State.WATCHING

STEPS: Final[Mapping[tuple[State, Outcome], Step]] = {
    (_S, Outcome.SYNCED): Step(_W, Delay.NONE),
    (_S, Outcome.ENDED): Step(_S, Delay.LIST),
    (_S, Outcome.FAILED): Step(_S, Delay.LIST),
    (_S, Outcome.DENIED): Step(_S, Delay.LIST),
    (_S, Outcome.EXPIRED): Step(_S, Delay.LIST, most_recent=True),
    (_S, Outcome.TOO_LARGE): Step(_S, Delay.LIST),
    (_S, Outcome.REWOUND): Step(_S, Delay.LIST, most_recent=True),
    (_S, Outcome.RESTORED): Step(_S, Delay.LIST, most_recent=True),
    (_S, Outcome.UNSUPPORTED): Step(_P, Delay.NONE),
    (_P, Outcome.SYNCED): Step(_W, Delay.NONE),
    (_P, Outcome.FAILED): Step(_P, Delay.LIST),
    (_P, Outcome.DENIED): Step(_P, Delay.LIST),
    (_P, Outcome.EXPIRED): Step(_P, Delay.LIST, most_recent=True),
    (_P, Outcome.TOO_LARGE): Step(_P, Delay.LIST),
    (_P, Outcome.REWOUND): Step(_P, Delay.LIST, most_recent=True),
    (_P, Outcome.RESTORED): Step(_P, Delay.LIST, most_recent=True),
    (_P, Outcome.UNSUPPORTED): Step(_P, Delay.LIST, most_recent=True),
    (_W, Outcome.ENDED): Step(_W, Delay.NONE),
    (_W, Outcome.FAILED): Step(_W, Delay.RETRY),
    (_W, Outcome.DENIED): Step(_W, Delay.RETRY),
    (_W, Outcome.EXPIRED): Step(_S, Delay.LIST),
    (_W, Outcome.TOO_LARGE): Step(_S, Delay.LIST),
    (_W, Outcome.REWOUND): Step(_S, Delay.LIST, most_recent=True),
    (_W, Outcome.RESTORED): Step(_S, Delay.LIST, most_recent=True),
    (_W, Outcome.UNSUPPORTED): Step(_S, Delay.LIST, most_recent=True),
    (_W, Outcome.LOSSY): Step(_S, Delay.LIST),
}
"""All pairs that can happen. A list is never LOSSY, pages never END, a watch is never SYNCED."""


_STREAMING_ATTEMPTS: Final = 2
"""Streaming lists in a row that began and were not completed, before pages are tried."""

_TOO_LARGE_ATTEMPTS: Final = 3
"""A server that is a little behind catches up in this time: it waits 3 s before it says so."""

_REWOUND_ATTEMPTS: Final = 5
"""Reads of the most recent state in a row, over half a minute, that must agree that history is
shorter than what was seen."""


class ReflectorMachine:
    """Where a reflector is in the table, and how often it has been sent back.

    Parameters
    ----------
    lists_in_pages
        Whether lists are paged, where the table has a streaming list.

    Attributes
    ----------
    state
        What it is doing.
    most_recent
        See :class:`Step`.
    """

    def __init__(self, *, lists_in_pages: bool = False) -> None:
        self._list = State.PAGED_LIST if lists_in_pages else State.STREAMING_LIST
        self.state = self._list
        self.most_recent = False
        self._incomplete = 0
        self._too_large = 0
        self._rewound = 0
        self._restored = False

    @property
    def believes_rewind(self) -> bool:
        """Whether a list that is older than what was seen is to be taken in this time."""
        if self._restored:
            return True
        return self.most_recent and self._rewound >= _REWOUND_ATTEMPTS - 1

    @property
    def is_restored(self) -> bool:
        """Whether every object of the next list is to be taken in, whatever its version."""
        return self._restored

    def step(self, outcome: Outcome) -> Delay:
        """Go on to the next state and return how long to wait before.

        What has happened too often in a row counts as something else: an incomplete streaming list
        as UNSUPPORTED, a version that the server does not reach as EXPIRED.

        Raises
        ------
        KeyError
            The outcome cannot happen in this state.
        """
        if self.state is not State.WATCHING:
            outcome = self._weigh(outcome)
        step = STEPS[self.state, outcome]
        self.state = self._list if step.state is State.STREAMING_LIST else step.state
        self.most_recent |= step.most_recent
        if outcome is Outcome.SYNCED:
            self.most_recent = False
            self._incomplete = self._too_large = self._rewound = 0
            self._restored = False
        self._restored |= outcome is Outcome.RESTORED
        return step.delay

    def _weigh(self, outcome: Outcome) -> Outcome:
        if outcome is Outcome.ENDED:
            self._incomplete += 1
            if self._incomplete >= _STREAMING_ATTEMPTS:
                return Outcome.UNSUPPORTED
        elif outcome is Outcome.TOO_LARGE:
            self._too_large += 1
            if self._too_large >= _TOO_LARGE_ATTEMPTS:
                return Outcome.EXPIRED
        elif outcome is Outcome.REWOUND:
            self._rewound += self.most_recent
        return outcome


class Ending(NamedTuple):
    """How something ended, and what is to be said about it.

    Attributes
    ----------
    problem
        For the log; empty when nothing went wrong.
    retry_after_s
        What the server asked for.
    """

    outcome: Outcome
    problem: str = ""
    retry_after_s: float | None = None


def ending_of(status: int | None, reason: str, message: str, retry_after_s: float | None) -> Ending:
    """Return what follows from an error, be it an HTTP answer, an ERROR event or no answer.

    *Source*: k8s.io/apimachinery 1.36, pkg/api/errors (410 comes as Gone or Expired);
    k8s.io/apiserver 1.36, pkg/storage/errors.go (a version from the future is a Timeout).
    """
    if status == 410 or reason in ("Expired", "Gone"):
        outcome = Outcome.EXPIRED
    elif "Too large resource version" in message:
        outcome = Outcome.TOO_LARGE
    elif status in (401, 403):
        outcome = Outcome.DENIED
    elif status in (400, 422):
        outcome = Outcome.UNSUPPORTED
    else:
        outcome = Outcome.FAILED
    described = f"{status} {reason}" if status else reason
    return Ending(outcome, f"{described}: {message}", retry_after_s)
